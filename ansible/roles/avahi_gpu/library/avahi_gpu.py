#!/usr/bin/python
"""Ansible module: run setup, undo or doctor of avahi-gpu, and tell what came of it in Ansible's terms."""

from __future__ import annotations

import platform

from ansible.module_utils.avahi_gpu_command import FINE, PENDING, ask, say, sentence, show
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: avahi_gpu
short_description: Run setup, undo or doctor of avahi-gpu
description:
  - Runs C(avahi-gpu setup), C(avahi-gpu undo) or C(avahi-gpu doctor) with C(--json), and passes on what
    it says.
  - Decides and changes nothing by itself.
version_added: "0.1.0"
author:
  - The avahi-gpu project (@avahi-gpu)
options:
  command:
    description: What to run.
    type: str
    choices: [setup, undo, doctor]
    required: true
  executable:
    description: The C(avahi-gpu) of the environment in use.
    type: path
    default: /opt/avahi-gpu/bin/avahi-gpu
  config_folder:
    description: In check mode, the folder that is read in the place of C(/etc/avahi-gpu).
    type: path
  program:
    description: In check mode, where C(avahi-gpu) will be, if O(executable) is only there to look.
    type: path
  arguments:
    description: More arguments, for example C(--only names).
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Runs C(--check), which changes nothing. The doctor only reads anyway.
    support: full
  diff_mode:
    description: Shows the diffs that avahi-gpu tells.
    support: full
"""

EXAMPLES = r"""
- name: Make this machine a node
  avahi_gpu:
    command: setup

- name: See that it is one
  avahi_gpu:
    command: doctor
    arguments: [--ignore, gpu]
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be; each has C(kind), C(diff), and C(path) or C(argv).
  returned: setup and undo
  type: list
  elements: dict
says:
  description: The changes in words, one a line.
  returned: setup and undo
  type: list
  elements: str
findings:
  description: What the doctor found, without what is fine, not asked or only said for information.
  returned: doctor
  type: list
  elements: dict
errors:
  description: The errors as avahi-gpu prints them, with C(code), C(message) and C(hint).
  returned: on failure
  type: list
  elements: dict
"""


def main():
    """Run what is asked for."""
    module = AnsibleModule(
        argument_spec={
            "command": {"type": "str", "required": True, "choices": ["setup", "undo", "doctor"]},
            "executable": {"type": "path", "default": "/opt/avahi-gpu/bin/avahi-gpu"},
            "config_folder": {"type": "path"},
            "program": {"type": "path"},
            "arguments": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    if module.params["command"] == "doctor":
        diagnose(module)
    change(module)


def change(module):
    """Run setup or undo; in check mode only ask what it would change."""
    action = module.params["command"]
    words = [action, *module.params["arguments"]]
    words += ["--check"] if module.check_mode else ["--yes"]
    if module.check_mode and action == "setup":
        as_if = {"--config-folder": module.params["config_folder"], "--program": module.params["program"]}
        words += ["--diff", *(word for option in as_if.items() if option[1] for word in option)]
    told = ask(module, module.params["executable"], *words)
    data, code, errors = told["data"], told["exit_code"], told["errors"]
    changes = data.get("changes", [])
    changed = code == PENDING if module.check_mode else data.get("changed", False)
    result = {"changed": changed, "changes": changes, "says": [tell(change) for change in changes]}
    if module._diff:  # AnsibleModule has no other name for it
        result["diff"] = show(changes)
    for path in data.get("kept", []):
        module.warn(f"{platform.node()}: {path} was edited since setup: the edit is kept")
    if errors or code not in (FINE, PENDING):
        said = say(errors) or f"avahi-gpu {action} ended with {code}"
        module.fail_json(msg=said, errors=errors, **result)
    module.exit_json(**result)


def tell(change):
    """Return a change as a line."""
    return f"changed {change['path']}" if change.get("path") else f"ran {' '.join(change['argv'])}"


def diagnose(module):
    """Run the doctor, and fail with its own sentences where it finds an error."""
    told = ask(module, module.params["executable"], "doctor", *module.params["arguments"])
    findings = [f for f in told["data"].get("findings", []) if f["verdict"] in ("warn", "error", "unknown")]
    for finding in findings:
        if finding["verdict"] == "warn":
            module.warn(f"{platform.node()}: {describe(finding)}")
    if told["exit_code"] != FINE:
        wrong = [describe(f) for f in findings if f["verdict"] in ("error", "unknown")]
        said = "\n".join([*wrong, *([say(told["errors"])] if told["errors"] else [])])
        said = said or f"avahi-gpu doctor ended with {told['exit_code']}"
        module.fail_json(msg=said, findings=findings, errors=told["errors"])
    module.exit_json(changed=False, findings=findings)


def describe(finding):
    """Return a finding in the doctor's words: what is, what shows it, and what mends it."""
    shown = "; ".join(finding["evidence"])
    fix = finding["fix"] or {"title": "", "commands": []}
    mend = "; ".join(fix["commands"]) or fix["title"]
    what = f"{finding['id']}: {finding['says']}" + (f" ({shown})" if shown else "")
    return sentence(what, f"to mend: {mend}" if mend else f"avahi-gpu explain {finding['id']} tells more")


if __name__ == "__main__":
    main()
