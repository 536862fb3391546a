"""3xx: avahi-daemon as it runs: with which configuration, on which interfaces, by what its log says."""

from __future__ import annotations

import re

from avahi_gpu.checks import fixes
from avahi_gpu.checks.daemon_config import (
    admits,
    card_names,
    is_in_force,
    keep_to_the_lan,
    lan_names,
    read_conf,
)
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import avahi_conf, etc_hosts
from avahi_gpu.model import Facts, Interface

OLDEST = 8  # 0.8 has browsers that are prepared first and started then
RUNNING = 2  # Avahi's state of a server that has its name (avahi-common/defs.h)
MAX_SHOWN = 4  # lines of a log, interfaces
# what avahi-daemon logs where something is wrong that no other check asks (its sources, 0.8)
COMPLAINTS = {
    "Host name conflict": "another host, or this one's own echo, claims its name",
    "Record too large": "a record is too large to be sent: peers cannot resolve it",
    "Failed to add service": "a service file was refused",
    "fork() failed": "it could not start its chroot helper: rlimit-nproc counts all of that user's processes",
    "Too many objects": "a program has left its browsers open",
}


@check(
    "AG308",
    slug="avahi-config-in-force",
    area="host",
    says="avahi-daemon runs with the configuration that is on the disk",
    needs=("AG303", "AG304"),
    setup=True,
)
def config_in_force(facts: Facts) -> Outcome:
    """avahi-daemon.conf is read at the start alone; no signal makes the daemon read it again."""
    path = facts.avahi_conf.path
    if facts.avahi.processes is None:  # no reason to leave other questions unasked
        return info("when avahi-daemon started could not be read")
    if is_in_force(facts):
        return ok(path)
    says = f"{path} was changed after avahi-daemon had started, so it is not in force"
    if not _is_sound(facts):
        return warn(says, hint="mend it first: a restart would fail")
    fix = fixes.restart_avahi(facts, back=True)
    suffering = _suffers(facts)
    return error(says, suffering, fix=fix) if suffering else warn(says, fix=fix)


@check(
    "AG309",
    slug="own-name-on-lan",
    area="host",
    says="this machine's .local name means its address on the LAN",
    needs=("AG203", "AG304", "AG305", "AG308"),
    setup=True,
)
def own_name_on_lan(facts: Facts) -> Outcome:
    """Avahi joins every interface; for its own name a program is told one address, of any of them."""
    lan = {a.ip for i in usable_interfaces(facts) if i.name in lan_names(facts) for a in i.addresses}
    own = facts.avahi.own
    others = {
        a.ip: i.name
        for i in facts.interfaces
        if i.link != "loopback" and not set(lan) & {b.ip for b in i.addresses}
        for a in i.addresses
    }
    avahi = own.address if own is not None else None
    glibc = [a.partition("%")[0] for a in (facts.own_name.addresses if facts.own_name else ())]
    if not lan or not (avahi or glibc):
        return info("there is no answer, or no LAN, to compare")
    # of several answers of glibc a program takes one that works
    wrong = {}
    if glibc and glibc[0] in others and not lan & set(glibc):
        wrong["glibc"] = glibc[0]
    if avahi is not None and avahi in others:
        wrong["avahi-daemon"] = avahi
    name = f"{facts.daemon.host_name}.{facts.daemon.domain or 'local'}"
    joined = _joined_others(facts)
    title, hint = _only_the_lan(facts)
    if wrong:
        address = next(iter(wrong.values()))
        blamed = "avahi-daemon" in wrong or (avahi is None and others[address] in {i.name for i in joined})
        return error(
            f"{name} means {address}, the address of {others[address]}, which no peer can reach",
            [
                *(f"{who} says {one}" for who, one in wrong.items()),
                *(f"avahi-daemon uses {i.name} too" for i in joined[:MAX_SHOWN]),
            ],
            fix=keep_to_the_lan(facts, title) if blamed else None,
            hint=hint if blamed else "look for the name in /etc/hosts; avahi-daemon's own answer is right",
        )
    return ok(*(f"{name} is {a}" for a in dict.fromkeys([*([avahi] if avahi else []), *glibc])))


@check(
    "AG314",
    slug="avahi-keeps-to-lan",
    area="host",
    says="avahi-daemon.conf keeps avahi-daemon to the interfaces of the LAN",
    needs=("AG303",),
    follows=("AG309",),
    setup=True,
)
def keeps_to_lan(facts: Facts) -> Outcome:
    """A bridge of containers that Avahi joins can become what the own name means (AG309), any day.

    What a daemon will join that does not run yet is told by its file.
    """
    try:
        admitted = admits(facts)
    except MalformedInput:
        return unknown("avahi-daemon.conf is malformed")
    lan = lan_names(facts)
    settled = facts.daemon.on_bus and facts.daemon.server_state == RUNNING
    others = [
        i
        for i in _others_with_addresses(facts)
        if i.name in admitted and not (settled and i.in_mdns_group is False)
    ]
    if not lan or not others:
        return ok()
    name = f"{facts.daemon.host_name or facts.hostname}.{facts.daemon.domain or 'local'}"
    title, hint = _only_the_lan(facts)
    return warn(
        f"avahi-daemon uses interfaces that are not of the LAN: {name} can come to mean their addresses",
        [f"{i.name}: {', '.join(a.ip for a in i.addresses if a.family == 4)}" for i in others[:MAX_SHOWN]],
        fix=keep_to_the_lan(facts, title),
        hint=hint,
    )


@check(
    "AG310",
    slug="avahi-log",
    area="host",
    says="avahi-daemon's log holds no complaint",
    needs=("AG302",),
)
def log_is_quiet(facts: Facts) -> Outcome:
    """What it logged since its start, where there is a log that may be read."""
    if facts.avahi.log is None:
        return skip("no log of avahi-daemon is kept here")
    for word, meaning in COMPLAINTS.items():
        lines = log_lines(facts, word)
        if lines:
            return info(f"avahi-daemon has logged: {meaning}", lines)
    return ok()


@check(
    "AG311",
    slug="one-avahi",
    area="host",
    says="one avahi-daemon runs here",
    needs=("AG304",),
)
def one_daemon(facts: Facts) -> Outcome:
    """A second one, started by hand or left by a container, takes half of the answers."""
    if facts.avahi.processes is None:
        return unread(facts, "avahi.processes", "the processes")
    living = [p for p in facts.avahi.processes if p.state != "Z"]
    if len(living) < 2:
        return ok()
    return warn(
        "more than one avahi-daemon runs here",
        [f"process {p.pid}" for p in living[:MAX_SHOWN]],
        hint="end those that the system did not start: avahi-daemon --kill ends the one with the pid file",
    )


def log_lines(facts: Facts, *words: str) -> list[str]:
    """Return the last few lines of the daemon's log that hold any of these words."""
    lines = [line for line in facts.avahi.log or () if any(w.lower() in line.lower() for w in words)]
    return [f"its log: {line}" for line in lines[-MAX_SHOWN:]]


def _is_sound(facts: Facts) -> bool:
    try:
        avahi_conf.parse(read_conf(facts))
    except MalformedInput:
        return False
    return True


def _suffers(facts: Facts) -> list[str]:
    """Return what does not work that the file on the disk does not explain."""
    able = usable_interfaces(facts)
    found = []
    if able and all(i.in_mdns_group is False for i in able):
        found.append("avahi-daemon listens on no LAN interface")
    if facts.own_service == () and facts.service_file.exists:
        found.append("this machine's service is not published")
    return found


def _joined_others(facts: Facts) -> list[Interface]:
    """Return the interfaces beside the LAN's that Avahi has joined with an address of IPv4."""
    return [i for i in _others_with_addresses(facts) if i.in_mdns_group]


def _others_with_addresses(facts: Facts) -> list[Interface]:
    """Return the interfaces beside the LAN's that Avahi would join, where it may, with an address of IPv4."""
    lan = lan_names(facts)
    return [
        i
        for i in facts.interfaces
        if i.up
        and i.multicast
        and i.name not in lan
        and i.link == "virtual"
        and any(a.family == 4 and not etc_hosts.is_loopback(a.ip) for a in i.addresses)
    ]


def _only_the_lan(facts: Facts) -> tuple[str, str]:
    """Return the title of that fix, and how to do it by hand."""
    names = card_names(facts)
    title = f"let avahi-daemon use {', '.join(names)} alone"
    return title, f"set allow-interfaces={','.join(names)} under [server] in {facts.avahi_conf.path}"


@check(
    "AG312",
    slug="avahi-version",
    area="host",
    says="avahi-daemon is of a version that avahi-gpu was tried with",
    needs=("AG304",),
)
def known_version(facts: Facts) -> Outcome:
    """0.8 is what distributions ship; older and newer ones differ in what a browser is told and when."""
    version = facts.daemon.version.removeprefix("avahi ").strip()
    found = re.match(r"0\.(\d+)", version)
    if found is None:
        return ok(version)
    if int(found[1]) < OLDEST:
        return info(
            f"avahi-daemon is {version}: before 0.{OLDEST} browsing starts a little later, and nothing worse",
            hint="a newer one is not needed for avahi-gpu",
        )
    if "rc" in version:
        return info(
            f"avahi-daemon is {version}, which is no release",
            hint="0.9-rc3 does not start under SELinux (avahi/avahi issue 867)",
        )
    return ok(version)
