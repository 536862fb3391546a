"""/etc/hosts as glibc reads it: what the machine's own name means, and which .local names it pins."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

PATH = "/etc/hosts"
MAPPED = "::ffff:"  # an IPv4 address in IPv6's clothes (RFC 4291 section 2.5.5.2)

ADDRESSES_KEPT = 1024  # most lines of a long file have the same few

_BLANKS = re.compile(r"[ \t\r\v\f]+")  # isspace(3) of the C locale; a no-break space is part of a name

# lan: fine. loopback: gloo would offer its peers an address that each takes for itself. missing: nothing in
# the file. foreign: an address that this machine has not.
OwnNameKind = Literal["lan", "loopback", "missing", "foreign"]


@dataclass(frozen=True, slots=True)  # a list of blocked names has a hundred thousand
class HostEntry:
    """One line: an address and the names it is given."""

    line: int
    address: str
    names: tuple[str, ...]

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.address)


@dataclass(frozen=True)
class OwnName:
    """What a program gets that looks this machine's own name up, and what to do where that is a trap."""

    kind: OwnNameKind
    says: str
    hint: str = ""
    entries: tuple[HostEntry, ...] = ()

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(
            f"{PATH}:{entry.line}: {entry.address} {' '.join(entry.names)}" for entry in self.entries
        )


def is_loopback(address: str) -> bool:
    """Whether ``address`` (with or without a scope) is this machine's alone; False where it is none."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def parse(text: str) -> tuple[HostEntry, ...]:
    """Return the lines that glibc uses; it skips what does not start with an address (hosts(5))."""
    return _read(text)[0]


@lru_cache(maxsize=2)  # the checks ask one by one for the same text
def _read(text: str) -> tuple[tuple[HostEntry, ...], tuple[tuple[int, str], ...]]:
    """Return the lines that glibc uses, and number and words of those that it skips."""
    entries: list[HostEntry] = []
    skipped: list[tuple[int, str]] = []
    for number, line in enumerate(_lines(text), 1):
        if not (words := words_of(line)):
            continue
        entry = _entry(number, words)
        if entry is not None:
            entries.append(entry)
        else:
            skipped.append((number, " ".join(words)))
    return tuple(entries), tuple(skipped)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines one by one: all at once they would take three times the memory of the text."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def read_line(number: int, line: str) -> HostEntry | None:
    """Return what glibc makes of a line, None where that is nothing (nss/nss_files/files-hosts.c)."""
    return _entry(number, words_of(line))


def _entry(number: int, words: Sequence[str]) -> HostEntry | None:
    if len(words) < 2 or not is_address(words[0]):
        return None
    return HostEntry(number, plain(words[0]), tuple(words[1:]))


def words_of(line: str) -> list[str]:
    """Return the words of a line before its comment."""
    return [word for word in _BLANKS.split(line.partition("#")[0].partition("\0")[0]) if word]


@lru_cache(maxsize=ADDRESSES_KEPT)
def is_address(word: str) -> bool:
    """Whether inet_pton(3) takes the word: no zone, no leading zeros, four numbers."""
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return "%" not in word


@lru_cache(maxsize=ADDRESSES_KEPT)
def plain(address: str) -> str:
    """Return an address as it is written usually: one that is mapped into IPv6 is an IPv4 address."""
    value = ipaddress.ip_address(address)
    mapped = value.ipv4_mapped if isinstance(value, ipaddress.IPv6Address) else None
    return str(mapped or value)


def find_malformed(text: str) -> tuple[tuple[int, str], ...]:
    """Return number and words of the lines that are meant to say something and that glibc skips."""
    return _read(text)[1]


def find(entries: Sequence[HostEntry], name: str) -> tuple[HostEntry, ...]:
    """Return the entries for ``name`` in the file's order, capitals aside; glibc answers with all."""
    wanted = name.lower()
    return tuple(entry for entry in entries if any(known.lower() == wanted for known in entry.names))


def judge_own_name(text: str, hostname: str, addresses: Collection[str] | None = None) -> OwnName:
    """Say what the file makes of this machine's own name.

    ``addresses``: those that its interfaces have, None where not known. A loopback line is a trap even with
    a LAN line beside it, in either order: gloo takes what it can bind.
    """
    entries = find(parse(text), hostname)
    loopback = tuple(entry for entry in entries if entry.is_loopback)
    if loopback:
        shown = " and ".join(dict.fromkeys(entry.address for entry in loopback))
        beside = ", beside a LAN address" if len(loopback) < len(entries) else ""
        says = f"the host name {hostname} means {shown}{beside}: offered to peers, it leads each to itself"
        return OwnName("loopback", says, _explain_loopback(text), loopback)
    if not entries:
        says = f"the host name {hostname} is not in {PATH}"
        hint = "add a line with the LAN address and the name, or install nss-myhostname"
        return OwnName("missing", says, hint)
    foreign = tuple(entry for entry in entries if addresses is not None and entry.address not in addresses)
    if foreign:
        says = f"the host name {hostname} means {foreign[0].address}, which no interface of this machine has"
        return OwnName("foreign", says, f"correct or remove {PATH}:{foreign[0].line}", foreign)
    return OwnName("lan", f"the host name {hostname} means {entries[0].address}", "", entries)


def loopback_trap(text: str, hostname: str) -> OwnName | None:
    """Return the evidence where the own name means loopback (127.0.1.1 is Debian's habit); else None."""
    own = judge_own_name(text, hostname)
    return own if own.kind == "loopback" else None


def find_pinned(text: str, domain: str = "local") -> tuple[HostEntry, ...]:
    """Return the entries that give a name in ``.local`` an address: files comes before mDNS, so they win.

    Names of three labels and more are left out: mDNS does not serve them.
    """
    return tuple(entry for entry in parse(text) if any(is_mdns_name(n, domain) for n in entry.names))


def is_mdns_name(name: str, domain: str = "local") -> bool:
    """Whether the name is one that mDNS serves: one label in ``.local``."""
    host, _, rest = name.lower().rstrip(".").partition(".")
    return bool(host) and rest == domain


def find_stale(text: str, name: str, addresses: Collection[str]) -> tuple[HostEntry, ...]:
    """Return the entries that give ``name`` an address other than ``addresses``, those that it has now."""
    return tuple(entry for entry in find(parse(text), name) if entry.address not in addresses)


def _explain_loopback(text: str) -> str:
    if "manage_etc_hosts" in text:
        return "cloud-init writes the file: set manage_etc_hosts: false, and change /etc/cloud/templates"
    return "avahi-gpu launch passes addresses and is not hurt; elsewhere set GLOO_SOCKET_IFNAME"
