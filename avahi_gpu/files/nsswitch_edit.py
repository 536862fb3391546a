"""Edits of a parsed nsswitch.conf, each as small as can be: new lines from old lines."""

from __future__ import annotations

import re
from dataclasses import replace

from avahi_gpu.files.nsswitch_chain import (
    IPV6_ONLY,
    MINIMAL,
    answers_ipv4,
    find_barrier,
    find_comment,
    is_miscapitalised,
    judge_line,
    names_service,
)
from avahi_gpu.files.nsswitch_grammar import BLANKS, Line, Nsswitch, Service, parse, parse_line

ENDS = "[NOTFOUND=return]"

# the one slip that can be mended with certainty; only where an action could stand
_NOT_FOUND = re.compile(rf"(?<=[\[!{BLANKS}])(not)[{BLANKS}]+(found)(?=[{BLANKS}]*=)", re.IGNORECASE)


def join(parsed: Nsswitch) -> str:
    """Return the whole text."""
    return "".join(line.text + line.ending for line in parsed.lines)


def newline_of(parsed: Nsswitch) -> str:
    """Return the line ending that the file uses: that of its last ended line."""
    return next((line.ending for line in reversed(parsed.lines) if line.ending), "\n")


def terminate(parsed: Nsswitch) -> Nsswitch:
    """Give the last line its newline: glibc does not read it without."""
    if not parsed.lines or parsed.lines[-1].ending:
        return parsed
    last = replace(parsed.lines[-1], ending=newline_of(parsed))
    return Nsswitch((*parsed.lines[:-1], last))


def append(parsed: Nsswitch, text: str) -> Nsswitch:
    """Add one line behind the last."""
    line = parse_line(text, newline_of(parsed), len(parsed.lines) + 1)
    return Nsswitch((*terminate(parsed).lines, line))


def replace_line(parsed: Nsswitch, new: tuple[Line, ...]) -> Nsswitch:
    """Put ``new`` where the line with the number of ``new[0]`` stands."""
    lines = list(parsed.lines)
    at = new[0].number - 1
    lines[at : at + 1] = new
    return parse_again(Nsswitch(tuple(lines)))


def parse_again(parsed: Nsswitch) -> Nsswitch:
    """Parse the joined text anew, so that numbers and services are those of the new text."""
    return parse(join(parsed))


def mend_not_found(parsed: Nsswitch) -> Nsswitch | None:
    """Join ``NOT FOUND`` on hosts lines; None where a defect remains or stands on another line."""
    if any(line.database != "hosts" for line in parsed.defects):
        return None
    lines = tuple(
        parse_line(_NOT_FOUND.sub(r"\1\2", line.text), line.ending, line.number) if line.defect else line
        for line in parsed.lines
    )
    mended = Nsswitch(lines)
    return None if mended.defects else mended


def improve(line: Line) -> tuple[Line, ...] | None:
    """Let a bare minimal module before the barrier end the search; None where there is none."""
    at = find_barrier(line.services)
    before = line.services if at is None else line.services[:at]
    bare = next((s for s in before if s.name in MINIMAL and not s.explicit), None)
    if bare is None:
        return None
    return _set_text(line, _splice(line.text, bare.name_end, bare.name_end, " " + ENDS))


def widen(line: Line) -> tuple[Line, ...]:
    """Turn the first IPv6-only module into its sibling that answers IPv4 too."""
    narrow = next(service for service in line.services if service.name in IPV6_ONLY)
    wide = narrow.name.replace("mdns6", "mdns")
    (new,) = _set_text(line, _splice(line.text, narrow.start, narrow.name_end, wide))
    judgement = judge_line(new)
    return (new,) if judgement.ends else improve(new) or (new,)


def put_mdns_first(line: Line) -> tuple[Line, ...]:
    """Return the lines that replace a hosts line which does not ask mDNS first.

    In this order: a comment that glibc would obey moves to a line above; wrong capitals before the barrier
    become small; a minimal module behind it moves before it; else one is inserted.
    """
    comment, line = _lift_comment(line)
    if not _kept(line):
        return (*comment, *_append_services(line, "files mdns4_minimal [NOTFOUND=return] dns"))
    at = find_barrier(line.services)
    before = line.services if at is None else line.services[:at]
    wrong = next((service for service in before if is_miscapitalised(service)), None)
    if wrong is not None:
        (line,) = _set_text(line, _splice(line.text, wrong.start, wrong.name_end, wrong.name.lower()))
        judgement = judge_line(line)
        if judgement.asks_first:
            return (*comment, *((not judgement.ends and improve(line)) or (line,)))
        return (*comment, *put_mdns_first(line)) if not judgement.only_ipv6 else (*comment, *widen(line))
    if at is None:
        return (*comment, *_append_services(line, f"mdns4_minimal {ENDS}"))
    behind = next((n for n in range(at, len(line.services)) if _can_move(line, n)), None)
    if behind is not None:
        return (*comment, *_move(line, behind, at))
    name = "mdns_minimal" if any(s.name == "mdns" for s in line.services[at:]) else "mdns4_minimal"
    return (*comment, *_insert(line, at, f"{name} {ENDS}"))


def loses_dns(old: Line | None, new: Line | None) -> bool:
    """Whether DNS was asked before the edit and is not after it."""

    def asks(line: Line) -> bool:
        return any(service.name in ("dns", "resolve") for service in line.services)

    return old is not None and new is not None and asks(old) and not asks(new)


def _set_text(line: Line, text: str) -> tuple[Line, ...]:
    return (parse_line(text, line.ending, line.number),)


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _lift_comment(line: Line) -> tuple[tuple[Line, ...], Line]:
    """Take a trailing comment that glibc would obey off the line; return it as a line above, and the rest."""
    start = find_comment(line)
    if start is None or not names_service(line.text[start:]):
        return (), line
    ending = line.ending or "\n"
    (rest,) = _set_text(line, line.text[:start].rstrip(BLANKS))
    return (Line(line.number, line.text[start:], ending),), rest


def _kept(line: Line) -> list[Service]:
    """Return the services that a person means: those before a trailing comment."""
    comment = find_comment(line)
    return [service for service in line.services if comment is None or service.start < comment]


def _append_services(line: Line, new: str) -> tuple[Line, ...]:
    """Put services behind the last one, before blanks and a comment that stand there."""
    if kept := _kept(line):
        return _set_text(line, _splice(line.text, kept[-1].end, kept[-1].end, " " + new))
    at = line.services_start
    blank = "" if line.text[at - 1 : at] in tuple(" \t") else " "
    tail = " " if line.text[at:] else ""
    return _set_text(line, _splice(line.text, at, at, blank + new + tail))


def _can_move(line: Line, n: int) -> bool:
    """Whether a minimal module can leave its place without its neighbours changing their meaning."""
    # what glibc does not read now would become the actions of the service before it
    keeps_the_rest_unread = line.unread is not None and n + 1 == len(line.services)
    return line.services[n].name in MINIMAL and not keeps_the_rest_unread


def _insert(line: Line, at: int, new: str) -> tuple[Line, ...]:
    start = line.services[at].start
    return _set_text(line, _splice(line.text, start, start, new + " "))


def _move(line: Line, behind: int, at: int) -> tuple[Line, ...]:
    """Move the service ``behind`` directly before ``at``, with actions that leave the rest reachable."""
    service = line.services[behind]
    moved = line.text[service.start : service.end]
    harmless = answers_ipv4(service) and service.actions.unavail != "return"
    if not service.explicit or not harmless:
        moved = f"{service.name} {ENDS}"
    cut = len(line.text[: service.start].rstrip(BLANKS))
    rest = line.text[service.end :]
    if rest and rest[0] not in BLANKS and cut < service.start:
        cut = service.start  # the blank before it must go on parting its neighbours
    start = line.services[at].start
    if behind == at:  # its own answer was thrown away: it gets the actions it needs where it stands
        return _set_text(line, _splice(line.text, service.start, service.end, moved))
    return _set_text(line, line.text[:start] + moved + " " + line.text[start:cut] + rest)
