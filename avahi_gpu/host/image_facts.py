"""Read of an image what its files tell; what only a running machine knows is not there."""

from __future__ import annotations

import re

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files import avahi_conf
from avahi_gpu.files.settings import read_published, settle
from avahi_gpu.host import boot_unit, daemons, image_units, node, packages, service_folder
from avahi_gpu.host.configuration import read_said
from avahi_gpu.host.image import Image
from avahi_gpu.host.machine import find_modules, has_glibc, read_distribution, read_hosts_line
from avahi_gpu.model import (
    BOOT_UNIT,
    SERVICE_FILE,
    BootUnit,
    DaemonFacts,
    DaemonState,
    Facts,
    HostFacts,
    ImageFacts,
    NodeFacts,
    Versions,
)

DPKG_STATUS = "/var/lib/dpkg/status"
DPKG_BYTES = 64 << 20  # two thousand packages take five
PACMAN = "/var/lib/pacman/local"
# where avahi-gpu is looked for in an image, beside the place that it runs from here
PLACES = (
    *("/opt/avahi-gpu/bin/avahi-gpu", "/opt/avahi-gpu/venv/bin/avahi-gpu"),
    *("/usr/local/bin/avahi-gpu", "/usr/bin/avahi-gpu"),
)
NOBODY = "localhost"  # an image has no name until a machine boots it

_PACMAN_FOLDER = re.compile(r"(.+)-[^-]+-[^-]+")  # name, version, release


def read_image(image: Image, cluster: str | None = None) -> Facts:
    """Return the facts of an image; ``cluster`` is what ``--cluster`` says. Raises MalformedConfiguration."""
    service = image.read(str(SERVICE_FILE))
    # the environment is the builder's, and says nothing of the machine that boots
    settings = settle(
        *read_said(image, {}, {"cluster": ("--cluster", cluster)}), read_published(service.content)
    )
    hosts_line = read_hosts_line(image)
    manager = packages.find_manager(image)
    systemd = image_units.boots_systemd(image)
    try:
        # whose machine id, GPUs and name these are nobody knows: the unit at boot tells them
        about = NodeFacts("", settings.config.cluster, priority=settings.config.priority)
        wanted, error = node.render_service_file(image, about, settings.config.port), ""
    except AvahiGpuError as fault:
        wanted, error = None, fault.message
    return Facts(
        hostname=NOBODY,
        is_root=image.is_root,
        init="systemd" if systemd else "other",
        distribution=read_distribution(image),
        package_manager=manager,
        packages=read_installed(image, manager),
        machine_id=node.read_machine_id(image),
        interfaces=(),
        daemon=DaemonState(
            installed=image.find_program(daemons.PROGRAM) is not None,
            bus_reachable=False,
            enabled=image_units.is_enabled(image, daemons.UNIT) if systemd else None,
        ),
        nsswitch=hosts_line,
        etc_hosts=image.read("/etc/hosts"),
        resolv_conf=image.read("/etc/resolv.conf"),
        avahi_conf=image.read(daemons.DEFAULT_CONFIG, avahi_conf.SIZE_MAX),
        mdns_allow=image.read("/etc/mdns.allow"),
        service_file=service,
        wanted_service_file=wanted,
        wanted_service_error=error,
        nss_modules=find_modules(image, hosts_line),
        own_service=None,
        own_name=None,
        kernel_name=None,
        peers=None,
        gpus=None,
        versions=Versions(),
        glibc=has_glibc(image),
        avahi=DaemonFacts(
            service_files=service_folder.read_folder(image),
            services_folder=image.read(SERVICE_FILE.parent),
        ),
        host=HostFacts(boot_unit=read_unit(image) if systemd else None),
        image=ImageFacts(str(image.root), image.why_no_packages()),
    )


def read_unit(image: Image) -> BootUnit:
    """Return the unit that renders the facts at boot, which runs the avahi-gpu that lies in the image."""
    here = boot_unit.find_command()
    places = [*([here[0]] if here and here[0].endswith(f"/{boot_unit.PROGRAM}") else []), *PLACES]
    program = next((path for path in places if image.is_program(path)), None)
    program = image.program or program  # what is only told may be installed later
    argv = (program, boot_unit.COMMAND) if program else None
    return boot_unit.describe(image, argv, enabled=image_units.is_enabled(image, BOOT_UNIT))


def read_installed(image: Image, manager: str | None) -> dict[str, bool | None]:
    """Return for each package that we need whether the image's own data base has it; None: not known."""
    found: set[str] | None = None
    if manager == "apt":
        content = image.read(DPKG_STATUS, DPKG_BYTES).content
        found = parse_dpkg_status(content.decode("utf-8", "replace")) if content is not None else None
    elif manager == "pacman":
        folders = image.list_folder(PACMAN)
        found = {m[1] for name in folders if (m := _PACMAN_FOLDER.fullmatch(name))} if folders else None
    return {name: None if found is None else name in found for name in packages.NAMES}


def parse_dpkg_status(text: str) -> set[str]:
    """Return the names that dpkg's data base has as installed (deb822, one paragraph each)."""
    found, name = set(), ""
    for line in text.split("\n"):
        if line.startswith("Package:"):
            name = line[8:].strip()
        elif line.startswith("Status:") and line.split()[-1:] == ["installed"]:
            found.add(name)
    return found
