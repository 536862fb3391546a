"""The hosts line of nsswitch.conf: does it ask mDNS before DNS, and the smallest edit that makes it do so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from avahi_gpu.files import nsswitch_edit as edit
from avahi_gpu.files.nsswitch_chain import Judgement, judge_line, modules_of
from avahi_gpu.files.nsswitch_grammar import Line, Nsswitch, decode, encode, parse, parse_line
from avahi_gpu.files.nsswitch_owner import (
    PATH,
    Machine,
    Refusal,
    find_mdns_taken_out,
    find_owner,
    find_stranger,
)

__all__ = [
    "PATH",
    "Judgement",
    "Machine",
    "Repair",
    "decode",
    "encode",
    "judge",
    "modules",
    "parse",
    "repair",
]

VENDOR_PATH = "/usr/etc/nsswitch.conf"  # where a distribution's glibc looks if /etc has none
SIZE_MAX = 64 * 1024  # bytes; a real one has a thousand, and judging a megabyte would take half a minute
NEW_LINE = "hosts:          files mdns4_minimal [NOTFOUND=return] dns"

# untouched: right already. works: peers resolve, or were narrowed on purpose; content is an offer.
# repair: content is what is wanted. critical: glibc drops the whole file; content where mending is certain.
# managed: another program owns the file. not-applicable: nothing here reads the file. ask: content is an
# offer to an administrator who seems to have taken mDNS out.
Verdict = Literal["untouched", "works", "repair", "critical", "managed", "not-applicable", "ask"]


@dataclass(frozen=True)
class Repair:
    """What to do about the file. ``content`` is the whole new file, None where there is nothing to write."""

    verdict: Verdict
    says: str  # what is
    hint: str = ""  # what to do (instead)
    content: bytes | None = None
    line: int | None = None  # the line spoken of, in the file as it was

    @property
    def wanted(self) -> bool:
        """Whether ``content`` is to be written without a further question; else it is an offer."""
        return self.content is not None and self.verdict in ("repair", "critical")


def judge(text: str) -> Judgement:
    """Say whether the hosts line that glibc obeys asks mDNS (for IPv4) before DNS, and why not."""
    parsed = parse(text)
    if parsed.defects:
        bad = parsed.defects[0]
        return Judgement(False, False, f"{bad.defect}: glibc drops the whole file", line=bad.number)
    if parsed.hosts is None:
        lost = parsed.last_hosts
        says = (
            "there is no hosts line, and glibc asks files and dns"
            if lost is None
            else "the hosts line is the last line and has no newline: glibc does not read it"
        )
        return Judgement(False, False, says, line=lost.number if lost else None)
    return judge_line(parsed.hosts)


def modules(text: str) -> tuple[str, ...]:
    """Return the names of the modules on the hosts line that glibc obeys, each once, in their order."""
    line = parse(text).hosts
    return modules_of(line) if line else ("files", "dns")


def repair(content: bytes | None, machine: Machine | None = None) -> Repair:
    """Say what is right for the hosts line; ``content`` None: the file does not exist.

    Every byte that is not on the hosts line stays. The new file has been parsed again, asks mDNS before DNS,
    and repairing it once more changes nothing. A vendor's default (/usr/etc/nsswitch.conf) is the caller's
    to pass where /etc has none.
    """
    machine = machine or Machine()
    text = decode(content or b"")
    parsed = parse(text)
    stranger = find_stranger(parsed, glibc=machine.glibc)
    if stranger is not None:
        return Repair("not-applicable", stranger.says, stranger.hint)
    owner = find_owner(parsed, machine)
    if owner is not None and owner.template:
        return Repair("managed", owner.says, owner.hint)
    if parsed.defects:
        return _repair_defects(parsed, machine, owner)
    return _repair_hosts(parsed, machine, owner)


def _repair_defects(parsed: Nsswitch, machine: Machine, owner: Refusal | None) -> Repair:
    bad = parsed.defects[0]
    says = f"{PATH}:{bad.number}: {bad.defect}: glibc drops the whole file, users and groups included"
    mended = edit.mend_not_found(parsed)
    if owner is not None:
        return Repair("critical", says, f"{owner.says}; {owner.hint}", line=bad.number)
    if mended is None:
        return Repair(
            "critical", says, f"correct line {bad.number} by hand, before anything else", line=bad.number
        )
    further = _repair_hosts(mended, machine, None)
    if further.verdict == "critical":
        return further
    result = further.content if further.verdict == "repair" else encode(edit.join(mended))
    return Repair("critical", says, "“NOT FOUND” becomes “NOTFOUND”", result, bad.number)


def _repair_hosts(parsed: Nsswitch, machine: Machine, owner: Refusal | None) -> Repair:
    line = parsed.last_hosts
    if parsed.hosts is not None and parsed.hosts is not line and judge_line(parsed.hosts).asks_first:
        # to end the last one in a newline, as every edit does, would put it in force
        return Repair("works", judge_line(parsed.hosts).says, line=parsed.hosts.number)
    if line is None:
        judgement = Judgement(False, False, "there is no hosts line, and glibc asks files and dns")
    elif not line.read:
        judgement = replace(
            judge_line(line),
            asks_first=False,
            says="the hosts line is the last line and has no newline: glibc does not read it",
        )
    else:
        judgement = judge_line(line)
    number = line.number if line else None
    says = judgement.says
    dead_dns = _explain_dead_dns(judgement, machine)
    offer = edit.improve(line) if line is not None and judgement.asks_first else None
    if judgement.asks_first and (offer is None or judgement.ends):
        if dead_dns:
            return Repair("works", dead_dns, "write .local and .local. instead of * into it", line=number)
        verdict: Verdict = "untouched" if judgement.ends else "works"
        return Repair(verdict, says, _explain_missing(parsed, machine), line=number)
    if owner is not None and judgement.asks_first:
        return Repair("works", says, _explain_missing(parsed, machine), line=number)
    if owner is not None:
        return Repair("managed", owner.says, owner.hint, line=number)
    if offer is not None:
        return _finish("works", edit.replace_line(parsed, offer), says, machine, number)
    if line is not None and judgement.only_ipv6:
        offer = edit.widen(line)
        return _finish("works", edit.replace_line(parsed, offer), says, machine, number)
    changed = edit.append(parsed, NEW_LINE) if line is None else edit.replace_line(parsed, _put_first(line))
    taken_out = find_mdns_taken_out(parsed, unicast_local=machine.unicast_local)
    if taken_out or edit.loses_dns(line, changed.last_hosts):
        reason = taken_out or "DNS is asked only because a comment names it, and the comment would move away"
        return _finish("ask", changed, f"{says}; {reason}", machine, number)
    return _finish("repair", changed, says, machine, number)


def _put_first(line: Line) -> tuple[Line, ...]:
    """Return the lines that replace a hosts line which does not ask mDNS first, or is not read at all."""
    if not line.read and judge_line(parse_line(line.text)).asks_first:
        return (replace(line, ending="\n"),)
    return edit.put_mdns_first(line)


def _finish(verdict: Verdict, changed: Nsswitch, says: str, machine: Machine, number: int | None) -> Repair:
    """Parse what is to be written once more, and give it only if glibc will read it as meant."""
    text = edit.join(edit.terminate(changed))
    again = parse(text)
    if again.defects:
        # a last line without a newline, or what stands behind a misplaced action list: glibc did not read it
        bad = again.defects[0]
        says = f"{PATH}:{bad.number}: {bad.defect}: harmless only because glibc does not read that far now"
        return Repair("critical", says, f"correct line {bad.number} by hand", line=bad.number)
    if again.hosts is None or not judge_line(again.hosts).asks_first:
        return Repair("ask", says, "put mdns4_minimal [NOTFOUND=return] before dns by hand", line=number)
    return Repair(verdict, says, _explain_missing(again, machine), encode(text), number)


def _explain_dead_dns(judgement: Judgement, machine: Machine) -> str:
    """Say where a line that finds peers keeps every other name from DNS; '' where it does not."""
    if judgement.full_ends and machine.mdns_allow is not None and _allows_all(machine.mdns_allow):
        return (
            f"/etc/mdns.allow allows every name (*) and {judgement.full_ends} [NOTFOUND=return] ends each "
            "search: DNS is never asked"
        )
    return ""


def _allows_all(mdns_allow: bytes) -> bool:
    return any(line.partition(b"#")[0].strip() == b"*" for line in mdns_allow.splitlines())


def _explain_missing(parsed: Nsswitch, machine: Machine) -> str:
    """Name the mDNS modules on the hosts line that are not on disk; '' where all are, or nothing is known."""
    names = modules_of(parsed.hosts) if parsed.hosts else ()
    missing = [name for name in names if name.startswith("mdns") and machine.modules.get(name) is False]
    if not missing:
        return ""
    return f"install nss-mdns: its module {missing[0]} is not on this machine"
