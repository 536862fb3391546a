"""What opens the firewall for the LAN's machines, by the tool that keeps its rules.

Additions alone, each for one network on one interface, and each with what takes exactly it back.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from avahi_gpu.checks import fixes
from avahi_gpu.files.firewall_walls import MARK
from avahi_gpu.model import HANDLE, LAN_GROUPS, MDNS_PORT, Change, Facts, Firewall, Fix, Wall, WallKind

BY_HAND = "avahi-gpu setup --firewall opens it for the LAN alone, and lastingly"
HINT_MDNS = "let UDP port 5353 to and from 224.0.0.251 (ff02::fb over IPv6) pass"
HINT_TCP = "let the TCP ports of jobs from and to the LAN's subnet pass: docs/reference/ports.md"
# what ufw and firewalld rewrite when they are told of a rule
UFW_FILES = ("/etc/ufw/user.rules", "/etc/ufw/user6.rules")
ZONE_FILES = ("/etc/firewalld/zones/{}.xml", "/etc/firewalld/zones/{}.xml.old")
# no name that a tool could take for something else
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}")


class Opening(NamedTuple):
    """What lets one network's packets of one kind in (or out) on one interface."""

    what: WallKind
    way: str
    interface: str
    family: int
    network: str


def opening_of(wall: Wall) -> Opening:
    """Return what opens the wall."""
    return Opening(wall.what, wall.way, wall.interface, wall.family, wall.network)


def open_walls(facts: Facts, what: Iterable[WallKind] = ("mdns", "jobs")) -> Fix | None:
    """Return the fix that opens the walls of these kinds that are shut, None where it is not certain how."""
    firewall = facts.network.firewall
    if firewall is None:
        return None
    kinds = tuple(what)
    walls = [w for w in firewall.walls if w.what in kinds and w.shut and can_open(firewall, w)]
    question = ask_about(dict.fromkeys(map(opening_of, walls)), firewall)
    changes = _open(firewall, walls, question)
    return Fix("open the firewall for the LAN", tuple(changes)) if changes else None


def _open(firewall: Firewall, walls: Iterable[Wall], question: str) -> list[Change]:
    """Return what opens these walls, each change once."""
    changes: dict[Change, None] = {}
    for wall in walls:
        keeper = keeper_of(firewall, wall)
        if keeper == "firewalld":
            made = _firewalld(firewall, opening_of(wall), question)
        elif keeper == "ufw":
            made = [_ufw(firewall, opening_of(wall), question, before=_by_user(wall))]
        else:
            made = [_insert(firewall, wall, question)]
        changes.update(dict.fromkeys(made))
    return list(changes)


def keeper_of(firewall: Firewall, wall: Wall) -> str:
    """Return who writes the chain of the wall, '' where it is nobody but nft or iptables.

    Beside the rules of ufw or firewalld there may be tables of others, which neither of them opens.
    """
    if wall.tool == "nft" and wall.table[1] != firewall.keeper:
        return ""
    return firewall.keeper


def can_open(firewall: Firewall, wall: Wall) -> bool:
    """Whether a rule of ours would open the wall, and nothing else."""
    if wall.public or not _NAME.fullmatch(wall.interface):
        return False
    keeper = keeper_of(firewall, wall)
    if keeper == "firewalld":
        return wall.way == "in" and bool(dict(firewall.zones).get(wall.interface))
    if keeper == "ufw":
        return not (_by_user(wall) and wall.others)
    return wall.by_policy or not wall.others


def lines_by_hand(firewall: Firewall, walls: Iterable[Wall]) -> tuple[str, ...]:
    """Return command lines that would open these walls, for somebody who knows that they may be opened."""
    walls = [w for w in walls if _NAME.fullmatch(w.interface)]
    return tuple(shlex.join(change.argv) for change in _open(firewall, walls, ""))


def ask_about(openings: Iterable[Opening], firewall: Firewall) -> str:
    """Return the question about all of these."""
    openings = list(openings)
    networks = list(dict.fromkeys(f"{one.network} on {one.interface}" for one in openings))
    ports = [f"UDP {MDNS_PORT}"] if any(one.what == "mdns" for one in openings) else []
    ports += [f"TCP {ports_of(firewall, '-')}"] if any(one.what == "jobs" for one in openings) else []
    return f"Open the firewall for {' and '.join(networks)} ({'; '.join(ports)})?"


def ports_of(firewall: Firewall, dash: str) -> str:
    """Return the ports of jobs as tools take them: ``29400-29429,29500-29999``."""
    return ",".join(f"{low}{dash}{high}" if low != high else str(low) for low, high in firewall.ports)


def _by_user(wall: Wall) -> bool:
    """Whether a rule of the user's own stands in the way, and ours has to come before it."""
    return "ufw-user-" in wall.because or "ufw6-user-" in wall.because


def _title(one: Opening) -> str:
    what = {"mdns": "mDNS", "jobs": "connections of jobs"}[one.what]
    return f"{what} {'from' if one.way == 'in' else 'to'} {one.network} on {one.interface}"


# --- firewalld and ufw -------------------------------------------------------------------------------------


def _firewalld(firewall: Firewall, one: Opening, question: str) -> list[Change]:
    """Open for good, and now; after a boot what is in force comes from its files."""
    zone = dict(firewall.zones).get(one.interface, "")
    if not zone or one.way == "out":
        return []
    known = {(r.zone, r.rule, r.lasting) for r in firewall.zone_rules}
    return [
        _rich(zone, rule, f"{_title(one)} ({port})", question, lasting=lasting)
        for port, rule in rich_rules(firewall, one)
        for lasting in (True, False)
        if (zone, rule, lasting) not in known
    ]


def rich_rules(firewall: Firewall, one: Opening) -> list[tuple[str, str]]:
    """Return ports, and for each the rule in firewalld's language, written as it prints it."""
    head = f'rule family="ipv{one.family}" source address="{one.network}"'
    ports = [str(MDNS_PORT)] if one.what == "mdns" else ports_of(firewall, "-").split(",")
    protocol = "udp" if one.what == "mdns" else "tcp"
    return [(port, f'{head} port port="{port}" protocol="{protocol}" accept') for port in ports]


def _rich(zone: str, rule: str, title: str, question: str, *, lasting: bool) -> Change:
    head = ("firewall-cmd", *(("--permanent",) if lasting else ()), f"--zone={zone}")
    return fixes.command(
        f"let {title} into firewalld's zone {zone}, {'for good' if lasting else 'now'}",
        (*head, f"--add-rich-rule={rule}"),
        undo=(*head, f"--remove-rich-rule={rule}"),
        verify=(*head, f"--query-rich-rule={rule}"),
        question=question,
        rewrites=tuple(path.format(zone) for path in ZONE_FILES) if lasting else (),
    )


def _ufw(firewall: Firewall, one: Opening, question: str, *, before: bool) -> Change:
    words: tuple[str, ...] = ("allow", one.way, "on", one.interface)
    protocol, ports = ("udp", str(MDNS_PORT)) if one.what == "mdns" else ("tcp", ports_of(firewall, ":"))
    other = LAN_GROUPS[one.family] if one.what == "mdns" else one.network
    if one.way == "in":
        words += ("proto", protocol, "from", one.network, "to", "any", "port", ports)
    else:
        words += ("proto", protocol, "to", other, "port", ports)
    return fixes.command(
        f"let {_title(one)} through ufw",
        ("ufw", *(("prepend",) if before else ()), *words, "comment", MARK),
        undo=("ufw", "delete", *words),
        question=question,
        rewrites=UFW_FILES,
    )


# --- nft and iptables --------------------------------------------------------------------------------------


def _insert(firewall: Firewall, wall: Wall, question: str) -> Change:
    """Put a rule into the chain that drops: at its end where its policy does, else at its head."""
    title = f"let {_title(opening_of(wall))} through {' '.join((*wall.table, wall.chain))}"
    if wall.tool == "nft":
        place = (*wall.table, wall.chain)
        return fixes.command(
            title,
            ("nft", "add" if wall.by_policy else "insert", "rule", *place, *nft_words(firewall, wall)),
            undo=("nft", "delete", "rule", *place, "handle", HANDLE),
            question=question,
        )
    head = (wall.tool, "--wait", "--table", wall.table[1])
    words = (wall.chain, *iptables_words(firewall, wall))
    return fixes.command(
        title,
        (*head, "--append" if wall.by_policy else "--insert", *words),
        undo=(*head, "--delete", *words),
        verify=(*head, "--check", *words),
        question=question,
    )


def comment_of(wall: Wall) -> str:
    """Return what marks a rule as ours, and names it among ours."""
    return f"{MARK}: {_title(opening_of(wall))}"


def nft_words(firewall: Firewall, wall: Wall) -> tuple[str, ...]:
    """Return the rule in nft's words."""
    ip = "ip" if wall.family == 4 else "ip6"
    side, card = ("saddr", "iifname") if wall.way == "in" else ("daddr", "oifname")
    other = LAN_GROUPS[wall.family] if wall.what == "mdns" and wall.way == "out" else wall.network
    if wall.what == "mdns":
        ports: tuple[str, ...] = ("udp", "dport", str(MDNS_PORT))
    else:
        ports = ("tcp", "dport", "{", *ports_of(firewall, "-").replace(",", ", ").split(), "}")
    comment = f'"{comment_of(wall)}"'
    return (card, f'"{wall.interface}"', ip, side, other, *ports, "accept", "comment", comment)


def iptables_words(firewall: Firewall, wall: Wall) -> tuple[str, ...]:
    """Return the rule in the words of iptables."""
    side, card = ("-s", "-i") if wall.way == "in" else ("-d", "-o")
    other = LAN_GROUPS[wall.family] if wall.what == "mdns" and wall.way == "out" else wall.network
    if wall.what == "mdns":
        ports = ("-p", "udp", "-m", "udp", "--dport", str(MDNS_PORT))
    else:
        ports = ("-p", "tcp", "-m", "multiport", "--dports", ports_of(firewall, ":"))
    comment = ("-m", "comment", "--comment", comment_of(wall))
    return (side, other, card, wall.interface, *ports, *comment, "-j", "ACCEPT")
