"""What ``systemctl enable``, ``disable`` and ``is-enabled`` do to an image's files, without any systemctl.

``systemctl --root`` would do the same, but is not there where images are built in containers, and on Debian
it also runs programs of the image (update-rc.d) for what has an old init script beside its unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.unit_file import Install, parse_install
from avahi_gpu.host.process import NOT_EXECUTABLE, Completed

if TYPE_CHECKING:
    from avahi_gpu.host.image import Image

ADMIN = "/etc/systemd/system"
FOLDERS = (ADMIN, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
MASK = "/dev/null"
INITS = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")


def systemctl(image: Image, argv: Sequence[str]) -> Completed:
    """Do ``systemctl enable|disable|is-enabled|unmask UNIT…``; never raises."""
    verb, units = argv[1], [word for word in argv[2:] if not word.startswith("-")]
    work = {"enable": enable, "disable": disable, "unmask": unmask}.get(verb)
    try:
        if verb == "is-enabled":
            code = 0 if all(is_enabled(image, unit) for unit in units) else 1
            return Completed(tuple(argv), code, "", "", 0.0)
        if work is None:
            says = f"systemctl {verb} is not run: {image.root} is an image, and no running machine"
            return Completed(tuple(argv), NOT_EXECUTABLE, "", says, 0.0)
        for unit in units:
            work(image, unit)
    except AvahiGpuError as fault:
        return Completed(tuple(argv), 1, "", fault.message, 0.0)
    return Completed(tuple(argv), 0, "", "", 0.0)


def find_unit(image: Image, unit: str) -> str | None:
    """Return the path of a unit's file, None where there is none."""
    return next((p for f in FOLDERS if image.exists(p := f"{f}/{unit}")), None)


def is_masked(image: Image, unit: str) -> bool:
    """Whether an administrator has forbidden a unit to start."""
    return image.read_link(f"{ADMIN}/{unit}") == MASK


def is_enabled(image: Image, unit: str) -> bool:
    """Whether one of the links is there that enabling makes."""
    if is_masked(image, unit):
        return False
    return any(_is_link_to(image, link, unit) for link in _links(unit, _read(image, unit)))


def enable(image: Image, unit: str, seen: frozenset[str] = frozenset()) -> None:
    """Make the links that a unit's [Install] asks for. Raises AvahiGpuError."""
    path = find_unit(image, unit)
    if path is None:
        raise AvahiGpuError(f"the image has no unit {unit}")
    if is_masked(image, unit):
        raise AvahiGpuError(f"{unit} is masked in the image")
    install = _read(image, unit)
    for link in _links(unit, install):
        if image.is_absent(link):
            image.link(link, path)
        elif not _is_link_to(image, link, unit):
            raise AvahiGpuError(f"{link} is in the way of enabling {unit}")
    for other in install.also:
        if other not in seen and find_unit(image, other) is not None:
            enable(image, other, seen | {unit})


def disable(image: Image, unit: str, seen: frozenset[str] = frozenset()) -> None:
    """Remove the links that enabling has made, and their folders that are empty then. Raises ChangeFailed."""
    install = _read(image, unit)
    for link in _links(unit, install):
        if _is_link_to(image, link, unit):
            image.remove(link)
            if link.count("/") > ADMIN.count("/") + 1:
                image.remove_folder(PurePosixPath(link).parent)
    for other in install.also:
        if other not in seen:
            disable(image, other, seen | {unit})


def unmask(image: Image, unit: str) -> None:
    """Remove the link to nowhere that forbids a unit to start. Raises ChangeFailed."""
    if is_masked(image, unit):
        image.remove(f"{ADMIN}/{unit}")


def boots_systemd(image: Image) -> bool:
    """Whether a kernel, or an initrd, that boots this image would start systemd (systemd(1), bootup(7))."""
    if not any(image.exists(path) for path in INITS):
        return False
    init = image.read_link("/sbin/init")
    return image.is_absent("/sbin/init") or PurePosixPath(init).name == "systemd"


def _read(image: Image, unit: str) -> Install:
    path = find_unit(image, unit)
    content = image.read(path).content if path is not None else None
    return parse_install((content or b"").decode("utf-8", "replace"))


def _links(unit: str, install: Install) -> Iterator[str]:
    for kind, targets in (("wants", install.wanted_by), ("requires", install.required_by)):
        yield from (f"{ADMIN}/{target}.{kind}/{unit}" for target in targets)
    yield from (f"{ADMIN}/{alias}" for alias in install.alias if alias != unit)


def _is_link_to(image: Image, link: str, unit: str) -> bool:
    return PurePosixPath(image.read_link(link)).name == unit
