"""What is to be done about the hosts line where authselect(8) writes it: let it write another one."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.checks import fixes
from avahi_gpu.checks.outcome import Outcome, ok, skip, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.files import nsswitch
from avahi_gpu.files.authselect import CONFIG, FEATURE, REWRITTEN, USER_FILE
from avahi_gpu.files.nsswitch_grammar import decode, parse
from avahi_gpu.model import Authselect, Change, Facts, Fix

CUSTOM = "custom/"  # before the names of profiles that an administrator made, in /etc/authselect/custom
FROM_USER_FILE = "with-custom-hosts"  # of profiles before 1.3 that hold a hosts line of their own


@dataclass(frozen=True)
class Told:
    """The fix, or what to do by hand."""

    fix: Fix | None = None
    hint: str = ""
    evidence: tuple[str, ...] = ()


@check(
    "AG125",
    slug="hosts-line-lasts",
    area="names",
    says="the hosts line outlasts the program that writes nsswitch.conf",
    needs=("AG104",),
)
def hosts_line_lasts(facts: Facts) -> Outcome:
    """authselect writes its files anew with each update of its package, and drops what was edited in them."""
    known = facts.names.authselect
    if known is None and "names.authselect" in facts.unread:
        return unread(facts, "names.authselect", "what authselect would write")
    if known is None:
        return ok()
    if known.present is None:
        return skip("authselect does not tell what it would write")
    if _asks_mdns_first(known.present):
        return ok(f"authselect's profile: {' '.join((known.profile, *known.features))}")
    evidence = [f"authselect would write: {_hosts_line(known.present)}"]
    says = "authselect will take mDNS off the hosts line: somebody edited the line, and not its profile"
    if known.generated is not None and _asks_mdns_first(known.generated):
        command = f"authselect enable-feature {FEATURE}"
        return warn(says, evidence, fix=Fix("let authselect know", commands=(command,)))
    return warn(says, evidence, hint=_by_hand(known, facts.nsswitch.content))


def put_mdns_first(known: Authselect, content: bytes | None) -> Told:
    """Say how authselect comes to write ``content`` with mDNS first.

    A feature is switched on by a command that writes all of its files anew: not where somebody has edited
    one of them, which versions from 1.4 on would forget without a word.
    """
    if not known.installed:
        return Told(
            hint="authselect wrote the file and is not on this machine any more: take its header (the first "
            "comments) out of the file, which makes the file yours, and run setup again"
        )
    if not known.profile:
        return Told(hint="authselect does not tell which profile is selected; see: authselect current")
    evidence = (f"authselect's profile: {' '.join((known.profile, *known.features))}",)
    if (fix := _edit_user_file(known)) is not None:
        return Told(fix, evidence=evidence)
    if known.generated is None or not _asks_mdns_first(known.generated):
        return Told(hint=_by_hand(known, content), evidence=evidence)
    if known.edited is None:
        hint = f"authselect does not tell what it would write; run: authselect enable-feature {FEATURE}"
        return Told(hint=hint, evidence=evidence)
    if known.edited:
        return Told(
            hint="it would write them anew: keep your edits in a profile of your own (authselect "
            f"create-profile), then run: authselect enable-feature {FEATURE}",
            evidence=(*evidence, *(f"{path} was edited since authselect wrote it" for path in known.edited)),
        )
    title = f"let authselect write “{_hosts_line(known.generated)}”"
    change = fixes.command(
        title,
        ("authselect", "enable-feature", FEATURE),
        undo=("authselect", "disable-feature", FEATURE),
        verify=("grep", "--quiet", "--line-regexp", FEATURE, CONFIG),
    )
    return Told(Fix(title, (change,)), evidence=evidence)


def _asks_mdns_first(generated: bytes) -> bool:
    return nsswitch.judge(decode(generated) + "\n").asks_first


def _hosts_line(generated: bytes) -> str:
    line = parse(decode(generated) + "\n").hosts
    return " ".join(line.text.split()) if line else "no hosts line"


def _edit_user_file(known: Authselect) -> Fix | None:
    """Return the fix that puts mDNS into the user's own file, where the hosts line is taken from that one.

    Undo brings all files back as they were: authselect itself would write another date into each. These
    versions refuse to go on where somebody has edited what they wrote.
    """
    state = known.user_file
    if FEATURE in known.offered or state is None or known.present is None or known.edited is None:
        return None
    if _hosts_line(state.content or b"") != _hosts_line(known.present):
        return None  # the profile has a hosts line of its own
    if _asks_mdns_first(known.present):  # the user's file is right, and has only to be applied
        others = [path for path in known.edited if not path.endswith("/nsswitch.conf")]
        return None if others else Fix(f"apply {state.path}", (_apply(known.present),))
    wanted = nsswitch.repair(state.content)
    if known.edited or not wanted.wanted or wanted.content is None:
        return None
    title = f"correct the hosts line of {state.path}"
    return Fix(title, (fixes.write_file(title, state, wanted.content), _apply(wanted.content)))


def _apply(content: bytes) -> Change:
    return fixes.command(
        f"let authselect write “{_hosts_line(content)}”",
        ("authselect", "apply-changes"),
        undo=("authselect", "check"),
        verify=("grep", "--quiet", "^hosts:.*mdns", "/etc/authselect/nsswitch.conf"),
        rewrites=REWRITTEN,
    )


def _by_hand(known: Authselect, content: bytes | None) -> str:
    if known.user_file is not None and FEATURE not in known.offered and not known.profile.startswith(CUSTOM):
        line = _right_line(known.user_file.content)
        enable = FROM_USER_FILE in known.offered and FROM_USER_FILE not in known.features
        command = f"enable-feature {FROM_USER_FILE}" if enable else "apply-changes"
        return f"write “{line}” into {USER_FILE} as its only hosts line, then run: authselect {command}"
    line = _right_line(content)
    if known.profile.startswith(CUSTOM):
        own = known.profile.removeprefix(CUSTOM)
        return (
            f"write “{line}” into /etc/authselect/custom/{own}/nsswitch.conf as its only hosts line, then "
            "run: authselect apply-changes"
        )
    words = " ".join(("custom/avahi-gpu", *known.features))
    return (
        f"this profile has no mDNS: authselect create-profile avahi-gpu --base-on {known.profile}, write "
        f"“{line}” into /etc/authselect/custom/avahi-gpu/nsswitch.conf as its only hosts line, then run: "
        f"authselect select {words}"
    )


def _right_line(content: bytes | None) -> str:
    """Return the hosts line that is right in place of the one in ``content``, whoever writes that file."""
    text = decode(content or b"")
    bare = "".join(f"{line}\n" for line in text.split("\n") if line.strip() and line.strip()[0] != "#")
    wanted = nsswitch.repair(bare.encode("utf-8", "surrogateescape")).content
    found = parse(decode(wanted) if wanted is not None else bare).hosts
    return " ".join((found.text if found else nsswitch.NEW_LINE).split())
