"""The chain of a hosts line: who is asked before DNS, and what ends a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from avahi_gpu.files.nsswitch_grammar import Line, Service

MINIMAL = ("mdns4_minimal", "mdns_minimal")
FULL = ("mdns4", "mdns")
IPV6_ONLY = ("mdns6_minimal", "mdns6")
MDNS = MINIMAL + FULL + IPV6_ONLY

# Services that people name, in comments too; glibc would ask any word that is a module on disk.
KNOWN = frozenset(
    (
        *(
            "files",
            "db",
            "compat",
            "cache",
            "altfiles",
            "hesiod",
            "systemd",
            "docker",
            "libvirt",
            "libvirt_guest",
        ),
        *("dns", "resolve", "myhostname", "mymachines", "nis", "nisplus", "ldap", "sss", "wins", "winbind"),
        *MDNS,
    )
)

_DNS = ("dns", "resolve")
_MODULE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")


@dataclass(frozen=True)
class Judgement:
    """What a hosts line does with a ``.local`` name.

    ``asks_first``: an mDNS module that answers IPv4 is asked before anything that can end the search.
    ``ends``: a name that mDNS does not find is not asked of DNS.
    """

    asks_first: bool
    ends: bool
    says: str
    line: int | None = None
    barrier: str = ""  # the service that stands in the way, or before which mDNS stands
    only_ipv6: bool = False  # mDNS is asked first, but for IPv6 addresses alone
    full_ends: str = ""  # the full module before the barrier that returns on NOTFOUND


def find_barrier(services: Sequence[Service]) -> int | None:
    """Return the index of the first service behind which mDNS may never be asked; None: there is none."""
    return next((n for n, service in enumerate(_as_asked(services)) if _is_barrier(service)), None)


def answers_ipv4(service: Service) -> bool:
    """Whether the service is an mDNS module that answers IPv4 and whose answer glibc takes."""
    return service.name in MINIMAL + FULL and service.actions.success == "return"


def judge_line(line: Line) -> Judgement:
    """Judge one hosts line by its services, those that glibc reads out of a trailing comment included."""
    services = _as_asked(line.services)
    at = next((n for n, s in enumerate(services) if _is_barrier(s) and not _never_ends(s)), None)
    before = services if at is None else services[:at]
    barrier = "" if at is None else _show(line, services[at])
    first = [service for service in before if answers_ipv4(service)]
    if first:
        ending = [service for service in first if service.actions.notfound == "return"]
        full = next((service.name for service in ending if service.name in FULL), "")
        says = f"{first[0].name} is asked " + (
            f"before {barrier}" if barrier else "and nothing stands before it"
        )
        return Judgement(True, bool(ending), says, line.number, barrier, full_ends=full)
    if not services:
        return Judgement(False, False, "the hosts line names no service", line.number)
    narrow = next((service for service in before if service.name in IPV6_ONLY), None)
    if narrow is not None:
        says = f"{narrow.name} gives IPv6 addresses only"
        return Judgement(False, False, says, line.number, barrier, only_ipv6=True)
    return Judgement(False, False, _explain(services, at, barrier), line.number, barrier)


def modules_of(line: Line) -> tuple[str, ...]:
    """Return the names of a line's services, each once, in their order, without what can be no module."""
    return tuple(dict.fromkeys(s.name for s in line.services if _MODULE_NAME.fullmatch(s.name)))


def find_comment(line: Line) -> int | None:
    """Return the index of a trailing ``#`` comment, which glibc takes for services; None without one."""
    return next((service.start for service in line.services if service.name.startswith("#")), None)


def names_service(comment: str) -> bool:
    """Whether a comment behind the services holds an action list or a service's name, which glibc obeys."""
    return "[" in comment or any(word in KNOWN for word in re.split(r"[ \t\v\f\r\n]+", comment))


def is_miscapitalised(service: Service) -> bool:
    """Whether the name is an mDNS module but for its capitals: glibc finds no such module."""
    return service.name not in MDNS and service.name.lower() in MDNS


def _as_asked(services: Sequence[Service]) -> tuple[Service, ...]:
    """Return the services as glibc asks them: what the last one found stands, whatever its actions say."""
    if not services or services[-1].actions.success == "return":
        return tuple(services)
    last = services[-1]
    return (*services[:-1], replace(last, actions=replace(last.actions, success="return")))


def _is_barrier(service: Service) -> bool:
    if is_miscapitalised(service):
        return False  # no such module: never NOTFOUND; its capitals are what is wrong with it
    if service.name in MINIMAL + FULL:
        # its answer would be thrown away, or merged, which no lookup of hosts can do
        return service.actions.success != "return"
    if service.name in IPV6_ONLY:
        return service.actions.unavail == "return"  # what it says to every search for IPv4
    returns = "return" in (service.actions.notfound, service.actions.unavail)
    return service.name in _DNS or returns


def _never_ends(service: Service) -> bool:
    """Whether a barrier by rule is none in fact: files, part of glibc, is UNAVAIL only without /etc/hosts."""
    return service.name == "files" and service.actions.notfound != "return"


def _explain(services: Sequence[Service], at: int | None, barrier: str) -> str:
    behind = next((service for service in services if service.name in MDNS), None)
    wrong = next((service for service in services if is_miscapitalised(service)), None)
    if wrong is not None and behind is None:
        return f"{wrong.name} is no module, {wrong.name.lower()} is: names of modules are case-sensitive"
    if behind is None:
        return "no mDNS module is on the hosts line"
    return (
        f"{barrier} stands before {behind.name} and can end the search"
        if at is not None
        else "mDNS is not asked"
    )


def _show(line: Line, service: Service) -> str:
    """Return a service as it stands in the line, its runs of blanks made one."""
    return " ".join(line.text[service.start : service.end].split())
