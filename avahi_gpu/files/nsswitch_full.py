"""The hosts line with full mDNS modules: put one there where DNS claims ``local``, take off one too many."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.files import nsswitch_edit as edit
from avahi_gpu.files.nsswitch import Machine, Repair
from avahi_gpu.files.nsswitch_chain import FULL, MINIMAL, find_barrier, judge_line
from avahi_gpu.files.nsswitch_grammar import (
    BLANKS,
    Line,
    Nsswitch,
    Service,
    decode,
    encode,
    parse,
    parse_line,
)
from avahi_gpu.files.nsswitch_owner import find_owner

TO_FULL = {"mdns4_minimal": "mdns4", "mdns_minimal": "mdns", "mdns4": "mdns4", "mdns": "mdns"}
TO_BOTH = {"mdns4_minimal": "mdns_minimal", "mdns4": "mdns"}
BY_HAND = "put mdns4 before dns on the hosts line and .local into /etc/mdns.allow by hand"


@dataclass(frozen=True)
class Surplus:
    """A full module that look-ups of addresses reach, though another mDNS module did the work before it."""

    module: str
    line: int
    after_full: bool  # another full one was asked before: whatever mdns.allow says, this one adds nothing


def use_full_module(content: bytes | None, machine: Machine) -> Repair:
    """Return the file with a full module in place of the minimal one that glibc asks before DNS.

    Its actions go: names that mDNS does not know must reach DNS, which serves a ``local`` of its own there.
    """
    parsed = parse(decode(content or b""))
    owner = find_owner(parsed, machine)
    line = parsed.hosts
    if owner is not None:
        return Repair("managed", owner.says, owner.hint)
    if line is None or parsed.defects or not judge_line(line).asks_first:
        return Repair("ask", "the hosts line does not ask mDNS before DNS", BY_HAND)
    before = line.services[: find_barrier(line.services)]
    first = next(s for s in before if s.name in MINIMAL + FULL)
    text = line.text[: first.start] + TO_FULL[first.name] + line.text[first.end :]
    new = parse_line(text, line.ending, line.number)
    return _finish(parsed, line, new, f"{TO_FULL[first.name]} in place of {first.name}")


def answer_ipv6(content: bytes | None, machine: Machine) -> Repair:
    """Return the file with a module of both families in place of the one for IPv4 alone."""
    parsed = parse(decode(content or b""))
    owner = find_owner(parsed, machine)
    line = parsed.hosts
    before = line.services[: find_barrier(line.services)] if line else ()
    first = next((s for s in before if s.name in TO_BOTH), None)
    if line is None or first is None or any(s.name in TO_BOTH.values() for s in before):
        return Repair("untouched", "no mDNS module for IPv4 alone is asked before DNS")
    if owner is not None:
        hint = f"put {TO_BOTH[first.name]} in place of {first.name} there"
        return Repair("managed", owner.says, hint, line=line.number)
    text = line.text[: first.start] + TO_BOTH[first.name] + line.text[first.name_end :]
    new = parse_line(text, line.ending, line.number)
    return _finish(parsed, line, new, f"{first.name} gives IPv4 addresses only")


def find_surplus(content: bytes | None) -> Surplus | None:
    """Return the full module that is one too many; None where there is none.

    A minimal module leaves the names of addresses to those behind it, so a full one at the end asks Avahi for
    every address that DNS has no name for, and waits five seconds.
    """
    line = parse(decode(content or b"")).hosts
    found = _surplus(line) if line else None
    if line is None or found is None:
        return None
    before = (s for s in line.services if s.start < found.start)
    return Surplus(found.name, line.number, any(s.name in FULL for s in before))


def drop_surplus(content: bytes | None, machine: Machine) -> Repair:
    """Return the file without the full module that is one too many."""
    parsed = parse(decode(content or b""))
    owner = find_owner(parsed, machine)
    line = parsed.hosts
    found = _surplus(line) if line else None
    if line is None or found is None:
        return Repair("untouched", "no mDNS module is one too many")
    if owner is not None:
        return Repair("managed", owner.says, f"take {found.name} off the hosts line there", line=line.number)
    head, tail = line.text[: found.start], line.text[found.end :]
    if not tail.strip(BLANKS):
        head = head.rstrip(BLANKS)
    else:
        tail = tail.lstrip(BLANKS)
    new = parse_line(head + tail, line.ending, line.number)
    return _finish(parsed, line, new, f"{found.name} is one too many")


def _surplus(line: Line) -> Service | None:
    worked = False
    for service in line.services:
        if service.name in FULL and worked:
            return service
        worked = worked or service.name in MINIMAL + FULL
        # an address without a name: minimal modules say UNAVAIL, all others NOTFOUND
        status = service.actions.unavail if service.name in MINIMAL else service.actions.notfound
        if status == "return":
            return None
    return None


def _finish(parsed: Nsswitch, old: Line, new: Line, says: str) -> Repair:
    changed = edit.replace_line(parsed, (new,))
    again = changed.hosts
    if changed.defects or again is None or judge_line(again).asks_first != judge_line(old).asks_first:
        return Repair("ask", says, BY_HAND, line=old.number)
    return Repair("repair", says, content=encode(edit.join(changed)), line=old.number)
