"""What opens the firewall, by the tool that keeps its rules: additions alone, which undo takes back."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from avahi_gpu.checks import fixes
from avahi_gpu.model import HANDLE, Change, Facts, Fix, PacketFate

PORTS = (1024, 65535)  # what programs listen on that are no services of the system
COMMENT = "avahi-gpu"
HINT_MDNS = "let UDP port 5353 to and from 224.0.0.251 (ff02::fb over IPv6) pass"
HINT_TCP = f"let TCP ports {PORTS[0]} to {PORTS[1]} from and to the LAN's subnet pass"
QUESTION_MDNS = "Open the firewall for mDNS, UDP port 5353?"
QUESTION_TCP = "Open the firewall's TCP ports from 1024 on for the LAN's subnet {lan}?"


class Place(NamedTuple):
    """A base chain that drops, and who takes rules for it."""

    tool: str
    family: str
    table: str
    chain: str


def open_mdns(facts: Facts, dropped: Iterable[PacketFate]) -> Fix | None:
    """Return the fix that lets mDNS pass, None where it is not certain how."""
    dropped = list(dropped)
    firewall = facts.network.firewall
    keeper = firewall.keeper if firewall else ""
    inward = all(p.kind.endswith("-in") for p in dropped)
    if keeper == "firewalld" and firewall is not None and inward:
        changes = [
            c
            for zone in _zones(facts, dropped)
            for c in _firewalld("mDNS", zone, "service=mdns", QUESTION_MDNS)
        ]
    elif keeper == "ufw":
        way = "allow" if inward else "allow out"
        changes = [_ufw("mDNS", way, ("5353/udp",), _by_user(dropped), QUESTION_MDNS)]
    elif keeper:
        return None
    else:
        changes = [
            _insert(place, "mDNS", _udp(place), QUESTION_MDNS)
            for place in dict.fromkeys(_place(p) for p in dropped)
        ]
    return _fix("open the firewall for mDNS", changes)


def open_lan(facts: Facts, dropped: Iterable[PacketFate]) -> Fix | None:
    """Return the fix that lets connections from the LAN's subnets in, None where it is not certain how."""
    dropped = list(dropped)
    firewall = facts.network.firewall
    keeper = firewall.keeper if firewall else ""
    lans = {(p.interface, p.family): lan_of(facts, p.interface, p.family) for p in dropped}
    changes: list[Change] = []
    for fate in dropped:
        lan = lans[fate.interface, fate.family]
        if lan is None:
            return None
        title, question = f"connections from {lan}", QUESTION_TCP.format(lan=lan)
        ports = f"{PORTS[0]}-{PORTS[1]}"
        if keeper == "firewalld":
            rule = (
                f'rich-rule=rule family="ipv{fate.family}" source address="{lan}" '
                f'port port="{ports}" protocol="tcp" accept'
            )
            for zone in _zones(facts, [fate]):
                changes += _firewalld(title, zone, rule, question)
        elif keeper == "ufw":
            words = ("proto", "tcp", "from", lan, "to", "any", "port", ports.replace("-", ":"))
            changes.append(_ufw(title, "allow", words, _by_user([fate]), question))
        else:
            place = _place(fate)
            changes.append(_insert(place, title, _tcp(place, fate.family, lan), question))
    return _fix("open the firewall for the LAN", list(dict.fromkeys(changes)))


def lan_of(facts: Facts, interface: str, family: int) -> str | None:
    """Return the subnet of an interface: ``10.77.0.0/24``."""
    for one in facts.interfaces:
        for a in one.addresses:
            if one.name == interface and a.family == family and a.scope == "global":
                return str(ipaddress.ip_network(f"{a.ip}/{a.prefix}", strict=False))
    return None


def _fix(title: str, changes: list[Change]) -> Fix | None:
    return Fix(title, tuple(changes)) if changes else None


def _place(fate: PacketFate) -> Place:
    return Place(fate.tool, *fate.table, fate.chain)


def _by_user(dropped: Iterable[PacketFate]) -> bool:
    """Whether a rule of the user's own stands in the way, and ours has to come before it."""
    return any("ufw-user-" in p.because or "ufw6-user-" in p.because for p in dropped)


def _zones(facts: Facts, dropped: Iterable[PacketFate]) -> list[str]:
    firewall = facts.network.firewall
    zones = dict(firewall.zones) if firewall else {}
    return list(dict.fromkeys(zone for p in dropped if (zone := zones.get(p.interface, ""))))


# --- the tools ---------------------------------------------------------------------------------------------


def _firewalld(what: str, zone: str, rule: str, question: str) -> list[Change]:
    """Open now, and in firewalld's own files."""
    changes = []
    for when, title in (((), "now"), (("--permanent",), "for good")):
        head = ("firewall-cmd", *when, f"--zone={zone}")
        changes.append(
            fixes.command(
                f"open firewalld's zone {zone} for {what}, {title}",
                (*head, f"--add-{rule}"),
                undo=(*head, f"--remove-{rule}"),
                verify=(*head, f"--query-{rule}"),
                question=question,
                until_boot=not when,
            )
        )
    return changes


def _ufw(what: str, way: str, words: tuple[str, ...], before: bool, question: str) -> Change:
    rule = (*way.split(), *words, "comment", COMMENT)
    add = ("ufw", "insert", "1", *rule) if before else ("ufw", *rule)
    return fixes.command(
        f"let {what} through ufw", add, undo=("ufw", "delete", *way.split(), *words), question=question
    )


def _insert(place: Place, what: str, rule: tuple[str, ...], question: str) -> Change:
    """Put a rule at the head of the chain that drops: it lets through, and all others stay as they are."""
    title = f"let {what} through {place.table} {place.chain}"
    if place.tool == "nft":
        return fixes.command(
            title,
            ("nft", "--echo", "--handle", "insert", "rule", *place[1:], *rule),
            undo=("nft", "delete", "rule", *place[1:], "handle", HANDLE),
            question=question,
            until_boot=True,
        )
    head = (place.tool, "--wait", "--table", place.table)
    return fixes.command(
        title,
        (*head, "--insert", place.chain, *rule),
        undo=(*head, "--delete", place.chain, *rule),
        verify=(*head, "--check", place.chain, *rule),
        question=question,
        until_boot=True,
    )


def _udp(place: Place) -> tuple[str, ...]:
    if place.tool == "nft":
        return ("udp", "dport", "5353", "accept", "comment", f'"{COMMENT}"')
    return ("-p", "udp", "--dport", "5353", "-m", "comment", "--comment", COMMENT, "-j", "ACCEPT")


def _tcp(place: Place, family: int, lan: str) -> tuple[str, ...]:
    low, high = PORTS
    if place.tool == "nft":
        name = "ip" if family == 4 else "ip6"
        return (name, "saddr", lan, "tcp", "dport", f"{low}-{high}", "accept", "comment", f'"{COMMENT}"')
    ports = f"{low}:{high}"
    return ("-s", lan, "-p", "tcp", "--dport", ports, "-m", "comment", "--comment", COMMENT, "-j", "ACCEPT")
