"""3xx: what this system runs in, its clock and its shared memory."""

from __future__ import annotations

import ipaddress

from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Facts, Interface

WRITTEN = 2024  # this program is of that year or later: no right clock shows an earlier one
SHM = "/dev/shm"  # noqa: S108  only spoken of
SHM_LEAST_MIB = 64  # docker's default; data loaders and NCCL on several GPUs need more
# the networks that Windows gives WSL2 behind its address translation, each of 20 bits
WSL_NAT, WSL_NAT_BITS = ipaddress.ip_network("172.16.0.0/12"), 20
FOR_CONTAINERS = (
    "docker run --network host -v /run/dbus/system_bus_socket:/run/dbus/system_bus_socket "
    "-v /run/avahi-daemon/socket:/run/avahi-daemon/socket …"
)


def is_container(facts: Facts) -> bool:
    """Whether this is a container for one program, which has no daemons of its own and borrows the host's."""
    found = facts.host.surroundings
    return found is not None and bool(found.container) and facts.init != "systemd"


def lacks_bus(facts: Facts) -> bool:
    """Whether the host's bus was not handed into this container, which has no Avahi of its own."""
    found = facts.host.surroundings
    return found is not None and is_container(facts) and not found.bus_socket and not facts.daemon.installed


@check("AG333", slug="surroundings", area="host", says="multicast of the LAN reaches this system")
def surroundings(facts: Facts) -> Outcome:
    """WSL2 behind Windows' address translation has a network of its own, and no mDNS passes."""
    found = facts.host.surroundings
    if found is None:
        return unread(facts, "host.surroundings", "what this system runs in")
    if found.wsl == "nat" or (found.wsl == "unknown" and any(_is_wsl_nat(i) for i in facts.interfaces)):
        return error(
            "WSL2 translates addresses: the LAN and its mDNS do not reach this system",
            [f"network of WSL2: {found.wsl}"],
            hint="set networkingMode=mirrored under [wsl2] in the file .wslconfig of the Windows user, "
            "then run: wsl --shutdown",
        )
    if found.wsl:
        return info(f"this is WSL2, network: {found.wsl}")
    if is_container(facts) and facts.avahi.processes:
        return info(f"this is a container ({found.container}) with an avahi-daemon of its own")
    if is_container(facts):
        borrows = "" if facts.daemon.installed else ": it borrows the host's Avahi"
        return info(
            f"this is a container ({found.container}){borrows}",
            [] if found.avahi_socket else ["there is no /run/avahi-daemon/socket: glibc cannot ask Avahi"],
            hint=f"to borrow the host's Avahi: {FOR_CONTAINERS}",
        )
    return ok(*([found.container] if found.container else []))


@check("AG334", slug="clock", area="host", says="the clock of this machine is set")
def clock(facts: Facts) -> Outcome:
    """c10d holds wall clocks of different hosts against each other; certificates have dates."""
    found = facts.host.clock
    if found is None:
        return unread(facts, "host.clock", "the clock")
    if found.year < WRITTEN:
        return error(
            f"the clock shows the year {found.year}",
            hint="set it: timedatectl set-ntp true, or date -s; a battery on the mainboard may be empty",
        )
    if found.synchronised is False:
        return info(
            "nobody keeps the clock of this machine right",
            hint="timedatectl set-ntp true, with systemd-timesyncd installed, or chrony; torchrun's c10d "
            "counts a node as dead whose clock is 15 s off",
        )
    return ok("synchronised" if found.synchronised else str(found.year))


@check("AG335", slug="shared-memory", area="host", says="there is room in /dev/shm")
def shared_memory(facts: Facts) -> Outcome:
    """Workers of data loaders, and NCCL between the GPUs of one machine, hand their data over there."""
    found = facts.host.shared_memory
    if found is None:
        return unread(facts, "host.shared_memory", "the shared memory")
    hint = "in a container: docker run --shm-size=8g, or --ipc=host; else mount a tmpfs at /dev/shm"
    if found.size_mib is None:
        return error("there is no /dev/shm, and torch's data loaders need it", hint=hint)
    if not found.writable:
        return error(
            f"nothing can be written to {SHM}, and torch's data loaders and NCCL need that",
            hint=f"it is mounted read-only or its mode is wrong: mount -o remount,rw,mode=1777 {SHM}",
        )
    if found.size_mib <= SHM_LEAST_MIB:
        says = f"{SHM} holds {found.size_mib} MiB only: data loaders and NCCL may end with a bus error"
        return warn(says, hint=hint)
    if found.free_mib < SHM_LEAST_MIB:
        return warn(
            f"{SHM} is full: {found.free_mib} MiB of {found.size_mib} MiB are free",
            hint="ls -lh /dev/shm shows what dead processes have left there",
        )
    return ok(f"{found.size_mib} MiB")


def _is_wsl_nat(interface: Interface) -> bool:
    return any(
        a.family == 4 and a.prefix == WSL_NAT_BITS and ipaddress.ip_address(a.ip) in WSL_NAT
        for a in interface.addresses
    )
