"""The hosts line and /etc/hosts: whether glibc reads that file at all, and stays with what it says."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.files import nsswitch_edit as edit
from avahi_gpu.files.nsswitch import Machine, Repair
from avahi_gpu.files.nsswitch_chain import judge_line
from avahi_gpu.files.nsswitch_grammar import BLANKS, Line, Service, encode, parse_line
from avahi_gpu.files.nsswitch_grammar import decode as decode_file
from avahi_gpu.files.nsswitch_grammar import parse as parse_file
from avahi_gpu.files.nsswitch_owner import find_owner

FILES = "files"  # the module that reads /etc/hosts


@dataclass(frozen=True)
class Unasked:
    """Why glibc does not get what /etc/hosts says, and the number of the line that is to blame."""

    says: str
    line: int


def find_unasked(content: bytes | None) -> Unasked | None:
    """Return why a name in /etc/hosts is not found; None where the hosts line is not to blame."""
    line = parse_file(decode_file(content or b"")).hosts
    says = _explain(line) if line else ""
    return Unasked(says, line.number) if line and says else None


def ask_files(content: bytes | None, machine: Machine) -> Repair:
    """Return the file with ``files`` first on the hosts line, where what it finds ends the search."""
    parsed = parse_file(decode_file(content or b""))
    line = parsed.hosts
    says = _explain(line) if line else ""
    if line is None or not says:
        return Repair("untouched", "the hosts line asks /etc/hosts")
    owner = find_owner(parsed, machine)
    if owner is not None:
        return Repair("managed", says, owner.hint, line=line.number)
    new = _put_files_first(line)
    changed = edit.replace_line(parsed, (new,))
    again = changed.hosts
    worse = again is None or (judge_line(line).asks_first and not judge_line(again).asks_first)
    if changed.defects or worse or again is None or _explain(again):
        return Repair("ask", says, "put files first on the hosts line by hand", line=line.number)
    return Repair("repair", says, content=encode(edit.join(changed)), line=line.number)


def _explain(line: Line) -> str:
    for service in line.services:
        if service.name == FILES:
            if service.actions.success == "return":
                return ""
            actions = line.text[service.name_end : service.end].strip(BLANKS)
            return f"after {FILES} {actions} glibc goes on and forgets what it found in /etc/hosts"
        if "return" in (service.actions.notfound, service.actions.unavail, service.actions.tryagain):
            actions = line.text[service.name_end : service.end].strip(BLANKS)
            if _files(line) is None:
                break
            return f"{service.name} {actions} can end the search before {FILES} is asked"
    if line.services and _files(line) is None:
        return f"{FILES} is not on the hosts line, so /etc/hosts is never read"
    return ""


def _files(line: Line) -> Service | None:
    return next((s for s in line.services if s.name == FILES), None)


def _put_files_first(line: Line) -> Line:
    """Return the line with a plain ``files`` first, and without the one that it had."""
    text, old = line.text, _files(line)
    if old is not None:
        text = text[: old.start] + text[old.end :].lstrip(BLANKS)
    start = line.services[0].start
    return parse_line(f"{text[:start]}{FILES} {text[start:]}", line.ending, line.number)
