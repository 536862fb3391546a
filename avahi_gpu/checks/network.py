"""2xx: the interfaces that reach the LAN."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.outcome import Outcome, error, ok, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Facts, Fix, Interface

CORRECT_LIST = "correct the list: `ip link` shows the names; without it all interfaces count"
MDNS_GROUP, MDNS_GROUP_6 = "224.0.0.251", "ff02::fb"  # RFC 6762 section 3


def describe_interface(interface: Interface) -> str:
    """Return ``eth0 10.77.0.1/24 wired 1000 Mbit/s``."""
    words = [interface.name]
    words += [f"{a.ip}/{a.prefix}" for a in interface.addresses if a.scope == "global"]
    words.append(interface.link)
    if interface.speed_mbit:
        words.append(f"{interface.speed_mbit} Mbit/s")
    return " ".join(words)


def usable_interfaces(facts: Facts) -> list[Interface]:
    """Return the interfaces that can carry mDNS: up, with a carrier, multicast and a global address."""
    return [i for i in _lan(facts) if i.up and i.running and i.multicast and _has_address(i)]


@check("AG200", slug="loopback", area="network", says="this machine reaches itself over loopback")
def loopback(facts: Facts) -> Outcome:
    """127.0.0.1 leads nowhere without: local name servers, torch's own store, the programs of a desktop."""
    own = [i for i in facts.interfaces if i.link == "loopback"]
    if not facts.interfaces or any(i.up for i in own):
        return _silent_loopback(facts) if facts.network.loopback is False else ok()
    name = own[0].name if own else "lo"
    switch = ("ip", "link", "set", name)
    up = fixes.command(f"set {name} up", (*switch, "up"), undo=(*switch, "down"), until_boot=True)
    return error(
        "the loopback interface is down: this machine cannot talk to itself",
        [f"{name}: is down" if own else "there is none"],
        fix=Fix(up.title, (up,)) if own else None,
    )


def _silent_loopback(facts: Facts) -> Outcome:
    return error(
        "this machine cannot talk to itself: connections over 127.0.0.1 do not come to be",
        ["a connection to a port of its own on 127.0.0.1 was dropped or refused"],
        hint="a firewall on this machine stops them (nft list ruleset, iptables -L -v): let lo pass first, "
        "as in: nft insert rule inet TABLE CHAIN iif lo accept; or 127.0.0.1 was taken from lo",
    )


@check("AG201", slug="lan-interface", area="network", says="a LAN interface is up and has an address")
def lan_interface(facts: Facts) -> Outcome:
    """Without one there is nobody to talk to."""
    candidates = _lan(facts)
    if not facts.interfaces and "interfaces" in facts.unread:
        return unread(facts, "interfaces", "the interfaces")
    missing = missing_cards(facts)
    if missing and not candidates:
        return error(_say_missing(facts, missing), _others(facts), hint=CORRECT_LIST)
    if not candidates:
        return error(
            "this machine has no LAN interface",
            [f"{i.name}: {i.link}" for i in facts.interfaces],
            hint="connect it to the network of the other machines",
        )
    ready = [i for i in candidates if i.up and i.running and _has_address(i)]
    if ready and missing:
        return warn(_say_missing(facts, missing), _others(facts), hint=CORRECT_LIST)
    if ready:
        return ok(*(describe_interface(i) for i in ready))
    return error(
        "no LAN interface is up with an address",
        [f"{i.name}: {_why_not(i)}" for i in candidates],
        hint="plug the cable in, or give the interface an address (DHCP or static)",
    )


@check(
    "AG202",
    slug="multicast",
    area="network",
    says="a LAN interface can multicast",
    needs=("AG201",),
)
def multicast(facts: Facts) -> Outcome:
    """mDNS is multicast: an interface without the flag carries none of it."""
    ready = [i for i in _lan(facts) if i.up and i.running and _has_address(i)]
    able = [i for i in ready if i.multicast]
    if able:
        return ok(*(i.name for i in able))
    return error(
        "no LAN interface can multicast, so nobody can be found",
        [f"{i.name} lacks the MULTICAST flag" for i in ready],
        fix=_let_multicast(ready[0]) if ready else None,
    )


@check(
    "AG203",
    slug="mdns-group",
    area="network",
    says=f"a LAN interface listens to the mDNS group {MDNS_GROUP} or {MDNS_GROUP_6}",
    needs=("AG202", "AG304", "AG305", "AG308"),
    follows=("AG204", "AG205", "AG207", "AG208", "AG212"),  # whoever hears nobody need not ask further
)
def mdns_group(facts: Facts) -> Outcome:
    """avahi-daemon joins the group on every interface that it uses."""
    able = usable_interfaces(facts)
    if any(i.in_mdns_group for i in able):
        outside = [i for i in able if i.in_mdns_group is False and i.link in ("wired", "wireless")]
        if outside:
            return warn(
                "avahi-daemon does not listen on every LAN interface",
                [_outside(i) for i in outside],
                hint="peers that hang only on those interfaces are not seen; "
                "see allow-interfaces and deny-interfaces in avahi-daemon.conf",
            )
        return ok(*(i.name for i in able if i.in_mdns_group))
    if any(i.in_mdns_group is None for i in able):
        return unknown("the multicast groups of the interfaces could not be read")
    return error(
        "avahi-daemon listens on no LAN interface",
        [_outside(i) for i in able],
        hint="allow-interfaces or deny-interfaces in avahi-daemon.conf may exclude it; "
        "otherwise restart avahi-daemon",
    )


def _let_multicast(interface: Interface) -> Fix:
    title = f"let {interface.name} multicast (until the next boot)"
    switch = ("ip", "link", "set", interface.name, "multicast")
    change = fixes.command(
        title,
        (*switch, "on"),
        undo=(*switch, "off"),
        question=f"Set the MULTICAST flag of {interface.name}?",
        until_boot=True,
    )
    return Fix(title, (change,))


def _lan(facts: Facts) -> list[Interface]:
    """Return the interfaces that may be the LAN's: those of the settings, where they name any."""
    lan = [i for i in facts.interfaces if i.link not in ("loopback", "tunnel")]
    return [i for i in lan if not facts.cards or i.name in facts.cards]


def _say_missing(facts: Facts, missing: list[str]) -> str:
    return f"{facts.cards_source}: {say_lack(missing)}"


def say_lack(missing: list[str]) -> str:
    """Return the sentence about ``missing_cards``."""
    return f"interfaces names {', '.join(missing)}, which this machine does not have"


def missing_cards(facts: Facts) -> list[str]:
    """Return the interfaces that the settings name and this machine does not have."""
    return [name for name in facts.cards if name not in {i.name for i in facts.interfaces}]


def _others(facts: Facts) -> list[str]:
    return [f"{i.name}: {i.link}" for i in facts.interfaces if i.link != "loopback"]


def _outside(interface: Interface) -> str:
    """Say which group an interface has not joined: IPv6's where it has no IPv4 address."""
    return f"{interface.name} is not in {MDNS_GROUP if interface.ipv4 else MDNS_GROUP_6}"


def _has_address(interface: Interface) -> bool:
    return any(a.scope == "global" for a in interface.addresses)


def _why_not(interface: Interface) -> str:
    if not interface.up:
        return "is down"
    if not interface.running:
        return "has no carrier"
    local = next((a.ip for a in interface.addresses if a.scope == "link"), None)
    if local is not None:
        return f"has no address but {local}, which is link-local: DHCP gave it none, and nobody else did"
    return "has no address of its own"
