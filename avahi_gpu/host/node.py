"""Who this machine is, and what its service file is to say."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from avahi_gpu.errors import AvahiGpuError, MalformedInput
from avahi_gpu.files import service_file
from avahi_gpu.files.settings import Settings, published_facts
from avahi_gpu.host.system import System
from avahi_gpu.model import CONFIG_FOLDER, DEFAULT_PORT, FileState, NodeFacts

TEMPLATE = "torch.service.j2"
OWN_TEMPLATE = CONFIG_FOLDER / "templates" / TEMPLATE  # an administrator's, used before ours

# a namespace, so that nobody can match a node id with another program's hash of the same machine id
# (machine-id(5) asks for it to be kept confidential)
_NAMESPACE = b"avahi-gpu node id 1\n"
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_PACKAGE = Path(__file__).resolve().parent.parent
# in the wheel, and beside the package in an editable checkout
_SHIPPED = (_PACKAGE / "_shipped" / "templates", _PACKAGE.parent / "templates")


def read_machine_id(system: System) -> str:
    """Return the machine id, 32 hex digits (machine-id(5)); '' where there is none yet."""
    for path in _MACHINE_ID_FILES:
        text = (system.read(path).content or b"").decode("ascii", "replace").strip()
        if _MACHINE_ID.fullmatch(text) and text.strip("0"):
            return text
    return ""


def make_node_id(machine_id: str, hostname: str) -> str:
    """Return the id that peers know this node by: 12 hex digits that tell nothing of the machine id.

    A machine without one (many containers) is known by its host name, which mDNS keeps unique on a LAN.
    """
    seed = machine_id or f"host {hostname.lower()}"
    return hashlib.sha256(_NAMESPACE + seed.encode()).hexdigest()[:12]


def read_template(system: System) -> tuple[str, str]:
    """Return ``(text, path)`` of the template in use: the administrator's, else ours.

    Raises MalformedInput where the administrator's cannot be read, AvahiGpuError where ours is not installed.
    """
    own = system.read(OWN_TEMPLATE)
    if own.content is not None:
        try:
            return own.content.decode("utf-8"), str(OWN_TEMPLATE)
        except UnicodeDecodeError as fault:
            line = own.content[: fault.start].count(b"\n") + 1
            raise MalformedInput(f"{OWN_TEMPLATE}:{line}", "not UTF-8", "save it as UTF-8") from None
    if own.exists:
        raise MalformedInput(str(OWN_TEMPLATE), own.error, "make it readable, or move it away")
    path = _find_shipped(TEMPLATE)
    return path.read_text(encoding="utf-8"), str(path)


def read_shipped(name: str) -> str:
    """Return the text of a template of ours. Raises AvahiGpuError where it is not installed."""
    return _find_shipped(name).read_text(encoding="utf-8")


def _find_shipped(name: str) -> Path:
    for folder in _SHIPPED:
        path = folder / name
        if path.is_file():
            return path
    raise AvahiGpuError(f"the template {name} is not installed", "install avahi-gpu again")


def merge_facts(read: NodeFacts, present: FileState, settings: Settings) -> NodeFacts:
    """Return what is to be published of what was read, of the present service file, and of the settings."""
    published = published_facts(present.content)
    versions = read.versions
    unnamed = settings.config.python is None
    if unnamed and not versions.torch and published is not None and published.versions.torch:
        # setup from an environment without torch does not take away what one with torch has published
        versions = replace(published.versions, driver=versions.driver)
    return replace(
        read,
        cluster=settings.config.cluster,
        versions=versions,
        priority=settings.config.priority,
        calls_itself=read.calls_itself.partition(".")[0],
    )


def render_service_file(system: System, node: NodeFacts, port: int = DEFAULT_PORT) -> bytes:
    """Return what ``/etc/avahi/services/torch.service`` is to hold.

    Raises as ``read_template`` does, and MalformedInput where the template or what it makes is wrong.
    """
    text, path = read_template(system)
    return service_file.render(text, node, port, where=path)
