"""Read everything that a check may ask, once, side by side. What is merely absent is a fact, not an error."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from avahi_gpu.errors import AvahiGpuError, MalformedConfiguration
from avahi_gpu.files import avahi_conf as avahi_conf_file
from avahi_gpu.files import nsswitch
from avahi_gpu.files.config import PATH as CONFIG_PATH
from avahi_gpu.files.settings import Said, Settings, read_published, settle
from avahi_gpu.host import daemons, gpu, net, node, nss, packages
from avahi_gpu.host.aside import aside
from avahi_gpu.host.configuration import read_said
from avahi_gpu.host.deadline import FILE_S, Deadline
from avahi_gpu.host.gpu import choose_python
from avahi_gpu.host.lan import LanFacts, read_lan
from avahi_gpu.host.machine import Machine, read_hosts_line, read_machine
from avahi_gpu.host.probers import Ground, read_all
from avahi_gpu.host.system import MAX_FILE_BYTES, System
from avahi_gpu.model import (
    SERVICE_FILE,
    DaemonFacts,
    DaemonState,
    Facts,
    FileState,
    Gpu,
    HostFacts,
    NameFacts,
    NetworkFacts,
    NodeFacts,
    Versions,
)

INTERFACES_S = 9.0  # netlink does not hang: two thousand take a second, on a very busy machine many
SIZES = {daemons.DEFAULT_CONFIG: avahi_conf_file.SIZE_MAX}
FILES = ("/etc/hosts", "/etc/resolv.conf", daemons.DEFAULT_CONFIG, "/etc/mdns.allow", str(SERVICE_FILE))
CHILDREN_END_S = 0.5  # so long before the deadline programs that we run are ended, for their words to count


@dataclass(frozen=True)
class Hardware:
    """What takes long to read and does not change while a command runs."""

    gpus: tuple[Gpu, ...]
    versions: Versions
    error: str


def read_facts(
    system: System,
    *,
    python: str | None = None,
    cluster: str | None = None,
    opens_firewall: bool = False,
    with_peers: bool = True,
    wanted_peers: tuple[str, ...] = (),
    deepspeed_config: str = "",
    known: Facts | None = None,
    deep: bool = True,
    meanwhile: Callable[[], object] | None = None,
    pending: set[str] | None = None,
) -> Facts:
    """Return the facts of this machine. Not to be called where an event loop runs: see ``gather_facts``.

    ``python``: the option that names the environment whose torch counts. ``cluster``: the option that names
    what to publish. None takes that of the settings, for the cluster else of the present service file.
    ``opens_firewall``: that the user wants it opened. ``known``: facts read before, whose GPUs and versions
    are taken over. ``deep``: with all probers, not setup's alone. ``meanwhile``: what the caller has to load,
    done while answers are awaited. ``pending`` holds the names of what is awaited.
    Raises MalformedConfiguration where our own configuration is wrong, Misuse where ``python`` is none.
    """
    return asyncio.run(
        gather_facts(
            system,
            python=python,
            cluster=cluster,
            opens_firewall=opens_firewall,
            with_peers=with_peers,
            wanted_peers=wanted_peers,
            deepspeed_config=deepspeed_config,
            known=known,
            deep=deep,
            meanwhile=meanwhile,
            pending=pending,
        )
    )


async def gather_facts(
    system: System,
    *,
    python: str | None = None,
    cluster: str | None = None,
    opens_firewall: bool = False,
    with_peers: bool = True,
    wanted_peers: tuple[str, ...] = (),
    deepspeed_config: str = "",
    known: Facts | None = None,
    deep: bool = True,
    meanwhile: Callable[[], object] | None = None,
    pending: set[str] | None = None,
) -> Facts:
    """Do what ``read_facts`` says, in the running event loop.

    It ends about ``deadline.READ_S`` after its start at the latest; what has not answered by then is unread.
    """
    deadline = Deadline(pending=set() if pending is None else pending)
    system = system.until(time.monotonic() + deadline.within_s - CHILDREN_END_S)
    loop = asyncio.get_running_loop()
    told: asyncio.Future[DaemonState] = loop.create_future()
    lan = LanFacts()
    # the LAN is asked first: what is done while its answers are awaited takes no time
    links = loop.create_task(
        deadline.hold("interfaces", aside(net.read_interfaces, system), (), INTERFACES_S)
    )
    asking = read_lan(lan, system, links, told, with_peers=with_peers, wanted=wanted_peers)
    asked = loop.create_task(deadline.hold("lan", asking, None))
    said = await _read_said(system, deadline, python, cluster)
    python = await aside(choose_python, system, settle(*said))
    hostname = platform.node()
    manager = await deadline.read("package_manager", None, packages.find_manager, system)
    unasked: dict[str, bool | None] = dict.fromkeys(packages.NAMES)
    others = asyncio.gather(
        deadline.hold("packages", aside(packages.read_installed, system, manager), unasked),
        deadline.hold("gpus", aside(_read_gpus, system, known), None),
        deadline.hold("versions", aside(_read_versions, system, python, known), None),
        deadline.hold("kernel_name", aside(nss.lookup, system, hostname), None),
    )
    if meanwhile is not None:
        await aside(meanwhile)
    names, hosts, resolv, avahi_conf, mdns_allow, service = await asyncio.gather(
        _read_hosts_line(system, deadline),
        *(deadline.read_file(system, path, SIZES.get(path, MAX_FILE_BYTES)) for path in FILES),
    )
    read = loop.create_task(deadline.read("machine", Machine(), read_machine, system, names))
    ground = Ground(
        system=system,
        interfaces=await links,
        told=told,
        nsswitch=names,
        etc_hosts=hosts,
        resolv_conf=resolv,
        avahi_conf=avahi_conf,
        environment=dict(os.environ),
        python=python,
        wanted_peers=wanted_peers,
        deepspeed_config=deepspeed_config,
        with_peers=with_peers,
    )
    readings = await read_all(ground, setup_only=not deep, within_s=deadline.left_s, pending=deadline.pending)
    installed, answer, versions, kernel_name = await others
    gpus, driver, cuda_driver, gpu_error = answer or (None, "", "", "")
    await asked
    avahi = DaemonFacts(**readings.values.get("avahi", {}))
    daemon = await _complete(system, deadline, lan.daemon, avahi)
    if daemon.config_path != avahi_conf.path:
        avahi_conf = await deadline.read_file(system, daemon.config_path, avahi_conf_file.SIZE_MAX)
    machine = await read
    # avahi-daemon may have joined groups while it was asked
    interfaces = await deadline.read("groups", await links, net.read_groups, system, ground.interfaces)
    facts = Facts(
        hostname=hostname,
        is_root=system.is_root,
        init=machine.init,
        distribution=machine.distribution,
        package_manager=manager,
        packages=installed,
        machine_id=machine.id,
        interfaces=interfaces,
        daemon=daemon,
        nsswitch=names,
        etc_hosts=hosts,
        resolv_conf=resolv,
        avahi_conf=avahi_conf,
        mdns_allow=mdns_allow,
        service_file=service,
        wanted_service_file=None,
        nss_modules=machine.modules,
        own_service=lan.own_service,
        own_name=lan.own_name,
        kernel_name=kernel_name,
        peers=lan.peers,
        absent=lan.absent,
        gpus=gpus,
        versions=replace(versions or Versions(), driver=driver),
        cuda_driver=cuda_driver,
        gpu_error=gpu_error,
        wanted_peers=wanted_peers,
        glibc=machine.glibc,
        node_id=node.make_node_id(machine.id, hostname),
        opens_firewall=opens_firewall,
        names=NameFacts(**readings.values.get("names", {})),
        network=NetworkFacts(**readings.values.get("network", {})),
        avahi=avahi,
        host=HostFacts(**readings.values.get("host", {})),
        unread={**readings.unread, **deadline.unread},
    )
    hung: tuple[bytes | None, str] = (None, f"the template could not be read within {FILE_S:g} s")
    settings = settle(*said, read_published(service.content))
    wanted, error = await deadline.read("template", hung, _want_service_file, system, facts, settings)
    return replace(
        facts,
        wanted_service_file=wanted,
        wanted_service_error=error,
        cards=settings.config.interfaces,
        cards_source=settings.sources["interfaces"],
    )


async def _read_hosts_line(system: System, deadline: Deadline) -> FileState:
    hangs = FileState(nsswitch.PATH, None, hangs=True, writable=False, error=f"no answer within {FILE_S:g} s")
    return await deadline.read(nsswitch.PATH, hangs, read_hosts_line, system)


async def _read_said(
    system: System, deadline: Deadline, python: str | None, cluster: str | None
) -> tuple[Said, ...]:
    flags = {"python": ("--python", python), "cluster": ("--cluster", cluster)}
    said = await deadline.read(CONFIG_PATH, None, read_said, system, os.environ, flags)
    if said is None:
        reason = deadline.unread[CONFIG_PATH]
        raise MalformedConfiguration(CONFIG_PATH, f"cannot be read: {reason}", "does its disk hang?")
    return said


async def _complete(
    system: System, deadline: Deadline, daemon: DaemonState, avahi: DaemonFacts
) -> DaemonState:
    """Return what Avahi told of itself with what its process and files tell."""

    def look() -> DaemonState:
        pid = daemon.pid or daemons.find_avahi(system)
        return replace(
            daemon,
            installed=system.find_program(daemons.PROGRAM) is not None,
            pid=pid,
            config_path=daemons.find_config(pid, avahi),
        )

    daemon = replace(daemon, enabled=daemons.is_enabled(avahi.unit))
    return await deadline.read("daemon", daemon, look)


def _read_gpus(system: System, known: Facts | None) -> gpu.Answer:
    if known is not None and known.gpus is not None:
        return known.gpus, known.versions.driver, known.cuda_driver, known.gpu_error
    return gpu.read_gpus(min(gpu.NVML_S, system.left_s()))


def _read_versions(system: System, python: str | None, known: Facts | None) -> Versions:
    if known is not None and "versions" not in known.unread:
        return known.versions
    return gpu.ask_versions(system, python)


def read_hardware(system: System, python: str | None) -> Hardware:
    """Return GPUs, driver and the versions of ``python``'s torch."""
    gpus, driver, _cuda_driver, error = gpu.read_gpus(min(gpu.NVML_S, system.left_s()))
    versions = gpu.read_versions(system, python)
    return Hardware(gpus, replace(versions, driver=driver), error)


def _want_service_file(system: System, facts: Facts, settings: Settings) -> tuple[bytes | None, str]:
    """Return what the service file is to hold, else None and why that is not known."""
    read = NodeFacts(facts.node_id, "", facts.gpus or (), facts.versions, calls_itself=facts.hostname)
    try:
        about = node.merge_facts(read, facts.service_file, settings)
        wanted = node.render_service_file(system, about, settings.config.port)
    except AvahiGpuError as fault:
        return None, fault.message
    return wanted, ""
