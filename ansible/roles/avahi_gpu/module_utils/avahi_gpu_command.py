"""Run avahi-gpu on the target and read the one JSON object that it prints."""

from __future__ import annotations

import json

ENVELOPE_VERSION = 1
FINE, FAILED, PENDING = 0, 1, 5  # exit codes of avahi-gpu


def ask(module, executable, *words):
    """Run ``executable WORDS --json`` and return its envelope; end the module where that is none."""
    argv = [executable, *words, "--json"]
    code, out, err = module.run_command(argv)
    try:
        envelope = json.loads(out)
        version = envelope["version"]
    except (ValueError, TypeError, KeyError):
        said = (err or out).strip()[-2000:]
        module.fail_json(msg=f"{' '.join(argv)} ended with {code} and no answer: {said}", rc=code)
    if version != ENVELOPE_VERSION:
        module.fail_json(msg=f"{executable} speaks version {version} of its JSON; this role knows version 1")
    return envelope


def say(errors):
    """Return the errors of an envelope as sentences, one a line."""
    return "\n".join(sentence(f"{e['message']}", e.get("hint")) for e in errors)


def sentence(what, hint):
    """Return what is, and what to do."""
    return f"{what}. {hint[:1].upper()}{hint[1:]}." if hint else f"{what}."


def show(changes):
    """Return changes as Ansible's ``diff``: files as unified diffs, programs as the lines to be run."""
    shown = []
    for change in changes:
        if change.get("path"):
            shown.append({"prepared": change["diff"] or f"mode of {change['path']}\n"})
        else:
            shown.append({"prepared": f"run: {' '.join(change['argv'])}\n"})
    return shown
