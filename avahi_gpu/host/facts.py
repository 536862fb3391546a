"""Read everything that a check may ask, once, side by side. What is merely absent is a fact, not an error."""

from __future__ import annotations

import asyncio
import os
import platform
import re
from dataclasses import dataclass, replace

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files import config as configuration
from avahi_gpu.files import nsswitch, service_file, txt
from avahi_gpu.host import daemons, gpu, net, node, nss, packages
from avahi_gpu.host.aside import aside
from avahi_gpu.host.configuration import read_config
from avahi_gpu.host.gpu import find_python
from avahi_gpu.host.lan import read_lan
from avahi_gpu.host.probers import Ground, read_all
from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DEFAULT_CLUSTER,
    NODE_SERVICE,
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

# modules that answer for .local, beside those that the hosts line names
MDNS_MODULES = ("mdns4_minimal", "mdns_minimal", "mdns4", "mdns", "mdns6_minimal", "mdns6")
BUILT_IN = ("files", "dns")  # part of glibc itself since 2.34

_MODULE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
# the multiarch folder of a machine whose name is not the one that Debian gives the architecture
_TRIPLES = {"ppc64le": "powerpc64le", "i686": "i386", "armv7l": "arm"}


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
    with_peers: bool = True,
    wanted_peers: tuple[str, ...] = (),
    known: Facts | None = None,
    deep: bool = True,
) -> Facts:
    """Return the facts of this machine. Not to be called where an event loop runs: see ``gather_facts``.

    ``python``: the environment whose torch counts. ``cluster``: the name to publish; None takes that of
    the configuration, else of the present service file. ``known``: facts read before, whose GPUs and versions
    are taken over. ``deep``: with all probers, not setup's alone. Raises MalformedConfiguration where our own
    configuration is wrong, Misuse where the Python that it names is none.
    """
    return asyncio.run(
        gather_facts(
            system,
            python=python,
            cluster=cluster,
            with_peers=with_peers,
            wanted_peers=wanted_peers,
            known=known,
            deep=deep,
        )
    )


async def gather_facts(
    system: System,
    *,
    python: str | None = None,
    cluster: str | None = None,
    with_peers: bool = True,
    wanted_peers: tuple[str, ...] = (),
    known: Facts | None = None,
    deep: bool = True,
) -> Facts:
    """Do what ``read_facts`` says, in the running event loop."""
    config = read_config(system)
    python = python or (find_python(system, config.python) if config.python else None)
    interfaces = await aside(net.read_interfaces)
    manager = packages.find_manager(system)
    hostname = platform.node()
    told: asyncio.Future[DaemonState] = asyncio.get_running_loop().create_future()
    ground = Ground(
        system=system,
        interfaces=interfaces,
        told=told,
        nsswitch=system.read("/etc/nsswitch.conf", nsswitch.SIZE_MAX),
        etc_hosts=system.read("/etc/hosts"),
        resolv_conf=system.read("/etc/resolv.conf"),
        avahi_conf=system.read(daemons.DEFAULT_CONFIG),
        environment=dict(os.environ),
        python=python,
        wanted_peers=wanted_peers,
        with_peers=with_peers,
    )
    lan, installed, hardware, kernel_name, enabled, readings = await asyncio.gather(
        read_lan(system, interfaces, told, with_peers=with_peers),
        aside(packages.read_installed, system, manager),
        aside(read_hardware, system, python, known),
        aside(nss.lookup, system, hostname),
        aside(daemons.read_enabled, system),
        read_all(ground, setup_only=not deep),
    )
    daemon = replace(
        lan.daemon,
        installed=system.find_program(daemons.PROGRAM) is not None,
        pid=lan.daemon.pid or daemons.find_avahi(system),
        enabled=enabled,
    )
    daemon = replace(daemon, config_path=daemons.read_config_path(system, daemon.pid))
    machine_id = node.read_machine_id(system)
    facts = Facts(
        hostname=hostname,
        is_root=system.is_root,
        init=daemons.read_init(system),
        distribution=read_distribution(system),
        package_manager=manager,
        packages=installed,
        machine_id=machine_id,
        # joined groups are read again: avahi-daemon may have joined while it was asked
        interfaces=await aside(net.read_interfaces),
        daemon=daemon,
        nsswitch=ground.nsswitch,
        etc_hosts=ground.etc_hosts,
        resolv_conf=ground.resolv_conf,
        avahi_conf=system.read(daemon.config_path),
        mdns_allow=system.read("/etc/mdns.allow"),
        service_file=system.read(SERVICE_FILE),
        wanted_service_file=None,
        nss_modules={},
        own_service=lan.own_service,
        own_name=lan.own_name,
        kernel_name=kernel_name,
        peers=lan.peers,
        gpus=hardware.gpus,
        versions=hardware.versions,
        gpu_error=hardware.error,
        wanted_peers=wanted_peers,
        node_id=node.make_node_id(machine_id, hostname),
        names=NameFacts(**readings.values.get("names", {})),
        network=NetworkFacts(**readings.values.get("network", {})),
        avahi=DaemonFacts(**readings.values.get("avahi", {})),
        host=HostFacts(**readings.values.get("host", {})),
        unread=readings.unread,
    )
    facts = replace(facts, nss_modules=find_modules(system, facts.nsswitch))
    wanted, error = _want_service_file(system, facts, cluster, config)
    return replace(facts, wanted_service_file=wanted, wanted_service_error=error)


def read_hardware(system: System, python: str | None, known: Facts | None = None) -> Hardware:
    """Return GPUs, driver and the versions of ``python``'s torch; those of ``known`` where given."""
    if known is not None and known.gpus is not None:
        return Hardware(known.gpus, known.versions, known.gpu_error)
    gpus, driver, _cuda_driver, error = gpu.read_gpus()
    versions = gpu.read_versions(system, python)
    return Hardware(gpus, replace(versions, driver=driver), error)


def read_distribution(system: System) -> str:
    """Return ID of os-release(5), '' where there is none."""
    for path in _OS_RELEASE:
        content = system.read(path).content
        if content is not None:
            return parse_os_release(content.decode("utf-8", "replace")).get("ID", "")
    return ""


def parse_os_release(text: str) -> dict[str, str]:
    """Return the assignments of os-release(5), without their quotes."""
    found = (re.fullmatch(r"\s*([A-Z0-9_]+)=(\"?)([^\"]*)\2\s*", line) for line in text.splitlines())
    return {m[1]: m[3].strip("'") for m in found if m is not None}


def find_modules(system: System, state: FileState) -> dict[str, bool]:
    """Return for each module on the hosts line, and each that answers for .local, whether glibc finds it."""
    named = nsswitch.modules(nsswitch.decode(state.content or b""))
    folders = library_folders(platform.machine())
    return {
        name: name in BUILT_IN or any(system.exists(f"{f}/libnss_{name}.so.2") for f in folders)
        for name in dict.fromkeys((*named, *MDNS_MODULES))
        if _MODULE_NAME.fullmatch(name)
    }


def library_folders(machine: str) -> tuple[str, ...]:
    """Return where glibc looks for modules, on Debian and on others."""
    triple = f"{_TRIPLES.get(machine, machine)}-linux-gnu{'eabihf' if machine == 'armv7l' else ''}"
    return tuple(f"{top}/{name}" for name in (f"lib/{triple}", "lib64", "lib") for top in ("/usr", ""))


def _want_service_file(
    system: System, facts: Facts, cluster: str | None, config: configuration.Config
) -> tuple[bytes | None, str]:
    """Return what the service file is to hold, else None and why that is not known."""
    present = _published(facts.service_file)
    versions = facts.versions
    if not versions.torch and present is not None and present.versions.torch:
        # setup from an environment without torch does not take away what one with torch has published
        versions = replace(present.versions, driver=versions.driver)
    configured = config.cluster if config.cluster != DEFAULT_CLUSTER else None
    published = present.cluster if present is not None else DEFAULT_CLUSTER
    about = NodeFacts(
        facts.node_id,
        cluster or configured or published,
        facts.gpus or (),
        versions,
        config.priority,
    )
    try:
        wanted = node.render_service_file(system, about, config.port)
    except AvahiGpuError as fault:
        return None, fault.message
    return wanted, ""


def _published(state: FileState) -> NodeFacts | None:
    """Return what the present service file tells of this node, None where it tells nothing."""
    try:
        group = service_file.parse(state.content or b"")
        return next(txt.decode(s.txt) for s in group.services if s.type == NODE_SERVICE)
    except (AvahiGpuError, StopIteration):
        return None
