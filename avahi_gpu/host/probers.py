"""The table of probers: who reads which fact, and how long it may take.

A prober is a coroutine function that takes a ``Ground`` and returns the value of one field of ``NameFacts``,
``NetworkFacts``, ``DaemonFacts`` or ``HostFacts``; all of them run side by side. What takes longer than its
deadline, or fails, leaves the field None and a reason in ``Facts.unread``: never a guess, never an end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.host import (
    authselect,
    avahi_log,
    avahi_process,
    avahi_start,
    avahi_unit,
    boot_unit,
    bus_policy,
    daemons,
    firewall,
    hearing,
    kernel_net,
    launcher_files,
    loopback,
    mdns_sockets,
    name_caches,
    name_servers,
    nss_modules,
    own_name,
    own_records,
    ports,
    resolved,
    rival,
    service_folder,
    surroundings,
    torch_surroundings,
    tracing,
)
from avahi_gpu.host.system import System
from avahi_gpu.model import DaemonState, FileState, Interface

SYSTEMD_S = daemons.ASK_SYSTEMD_S + 0.5
AVAHI_S = 6.0  # a daemon that claims its name anew is waited for; one that runs answers in milliseconds
FILES_S = 2.0  # reading /proc, /sys and /etc takes milliseconds; a hanging file system takes for ever


@dataclass(frozen=True)
class Ground:
    """What probers stand on."""

    system: System
    interfaces: tuple[Interface, ...]
    told: asyncio.Future[DaemonState]  # by ``daemon``
    nsswitch: FileState
    etc_hosts: FileState
    resolv_conf: FileState
    avahi_conf: FileState  # of the usual path; the daemon's own may be another one
    environment: Mapping[str, str]
    python: str | None  # the environment whose torch counts
    wanted_peers: tuple[str, ...] = ()
    deepspeed_config: str = ""  # absolute path of one that the user asks about
    with_peers: bool = True

    async def daemon(self) -> DaemonState:
        """Wait for Avahi's own word and return it."""
        return await asyncio.shield(self.told)  # a prober's deadline must not cancel what all wait for


@dataclass(frozen=True)
class Prober:
    """One reader with its deadline in seconds. ``setup``: what setup needs to know too."""

    read: Callable[[Ground], Awaitable[Any]]
    within_s: float
    setup: bool = False


PROBERS: dict[str, Prober] = {
    "host.accelerate": Prober(launcher_files.read_accelerate, torch_surroundings.ENDPOINT_S),
    "host.boot_unit": Prober(boot_unit.read, SYSTEMD_S, setup=True),
    "host.clock": Prober(surroundings.read_clock, FILES_S),
    "host.deepspeed_config": Prober(launcher_files.read_deepspeed_config, FILES_S),
    "host.deepspeed_env": Prober(launcher_files.read_deepspeed_env, FILES_S),
    "host.gpu_devices": Prober(surroundings.read_gpu_devices, FILES_S),
    "host.hostfile": Prober(launcher_files.read_hostfile, torch_surroundings.ENDPOINT_S),
    "host.key": Prober(launcher_files.read_key, FILES_S),
    "host.shared_memory": Prober(surroundings.read_shared_memory, FILES_S),
    "host.surroundings": Prober(surroundings.read, surroundings.WSLINFO_S + 0.5, setup=True),
    "host.environment": Prober(torch_surroundings.read_environment, FILES_S),
    "host.endpoints": Prober(torch_surroundings.read_endpoints, torch_surroundings.ENDPOINT_S),
    "host.listeners": Prober(ports.read, FILES_S),
    "host.leftovers": Prober(ports.read_left, FILES_S),
    "host.port_range": Prober(ports.read_range, FILES_S),
    "host.reserved_ports": Prober(ports.read_reserved, FILES_S),
    "host.own_name": Prober(own_name.read, own_name.OWN_NAME_S + 0.5),
    "host.pinned_names": Prober(own_name.read_pinned, own_name.PINNED_S),
    "names.authselect": Prober(authselect.read, authselect.WITHIN_S, setup=True),
    "names.servers": Prober(name_servers.read, name_servers.PROBER_S, setup=True),
    "names.rival": Prober(rival.read, rival.PROBER_S),
    "names.caches": Prober(name_caches.read, FILES_S),
    "names.reverse": Prober(nss_modules.read_reverse, nss_modules.OWN_NAME_PROBER_S),
    "names.traces": Prober(tracing.read, tracing.PROBER_S),
    "names.own_by_module": Prober(nss_modules.read_own, nss_modules.OWN_NAME_PROBER_S),
    "network.firewall": Prober(firewall.read, firewall.READ_S, setup=True),
    "network.hearing": Prober(hearing.read, hearing.WITHIN_S),
    "network.kernel": Prober(kernel_net.read, FILES_S),
    "network.loopback": Prober(loopback.read, loopback.WITHIN_S),
    "network.resolved_mdns": Prober(resolved.read, resolved.ASK_S + 0.5, setup=True),
    "network.mdns_sockets": Prober(mdns_sockets.read, FILES_S, setup=True),
    "avahi.processes": Prober(avahi_process.read, FILES_S, setup=True),
    "avahi.shared_user": Prober(avahi_process.read_shared, FILES_S, setup=True),
    "avahi.service_files": Prober(service_folder.read, FILES_S),
    "avahi.services_folder": Prober(service_folder.read_itself, FILES_S),
    "avahi.socket": Prober(avahi_process.read_socket, FILES_S),
    "avahi.own": Prober(own_records.read, AVAHI_S),
    "avahi.log": Prober(avahi_log.read, AVAHI_S),
    "avahi.start": Prober(avahi_start.read, AVAHI_S, setup=True),
    "avahi.static_hosts": Prober(avahi_start.read_static_hosts, FILES_S),
    "avahi.bus_address": Prober(avahi_start.read_bus_address, FILES_S, setup=True),
    "avahi.bus_refuses": Prober(bus_policy.read, AVAHI_S),
    "avahi.unit": Prober(avahi_unit.read, SYSTEMD_S, setup=True),
}


@dataclass(frozen=True)
class Readings:
    """What the probers found: area -> field -> value, and why other fields could not be read."""

    values: dict[str, dict[str, Any]]
    unread: dict[str, str]


async def read_all(
    ground: Ground,
    *,
    setup_only: bool = False,
    within_s: float = float("inf"),
    pending: set[str] | None = None,
) -> Readings:
    """Run the probers side by side; takes as long as the slowest, at most its deadline. Never raises.

    ``within_s``: an earlier deadline for all of them. ``pending`` holds the names of those that still read.
    """
    pending = set() if pending is None else pending
    chosen = {name: p for name, p in PROBERS.items() if p.setup or not setup_only}
    answers = await asyncio.gather(
        *(_read(name, prober, ground, within_s, pending) for name, prober in chosen.items())
    )
    values: dict[str, dict[str, Any]] = {}
    unread: dict[str, str] = {}
    for name, (value, why) in zip(chosen, answers, strict=True):
        area, _, field = name.partition(".")
        values.setdefault(area, {})[field] = value
        if why:
            unread[name] = why
    return Readings(values, unread)


async def _read(
    name: str, prober: Prober, ground: Ground, within_s: float, pending: set[str]
) -> tuple[Any, str]:
    limit_s = min(prober.within_s, within_s)
    pending.add(name)
    try:
        return await asyncio.wait_for(prober.read(ground), limit_s), ""
    except asyncio.TimeoutError:
        return None, f"no answer within {limit_s:.2g} s"
    except Exception as fault:  # one reader's fault must not hide what the others read
        return None, str(fault) if isinstance(fault, AvahiGpuError) else f"{type(fault).__name__}: {fault}"
    finally:
        pending.discard(name)
