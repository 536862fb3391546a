"""Read the system bus's policy files, in the order in which dbus-daemon reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avahi_gpu.avahi.names import BUS_NAME
from avahi_gpu.files import bus_policy
from avahi_gpu.host.aside import aside
from avahi_gpu.host.avahi_process import USER
from avahi_gpu.host.system import System

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MAIN = "/usr/share/dbus-1/system.conf"
MAIN_OLD = "/etc/dbus-1/system.conf"
# what system.conf includes: the distribution's, the administrator's, and one file for all else
FOLDERS = ("/usr/share/dbus-1/system.d", "/etc/dbus-1/system.d")
LAST = ("/etc/dbus-1/system-local.conf",)
MAX_FILES = 500


async def read(ground: Ground) -> str:
    """Return '' where Avahi may own its name or has it; else where it is refused, in words."""
    daemon = await ground.daemon()
    if daemon.on_bus or not daemon.bus_reachable:
        return ""
    return await aside(read_refusal, ground.system)


def read_refusal(system: System) -> str:
    """Return which file refuses Avahi its name, '' where none does or the policy cannot be read."""
    paths = [MAIN] if system.exists(MAIN) else [MAIN_OLD]
    for folder in FOLDERS:
        paths += [f"{folder}/{name}" for name in system.list_folder(folder) if name.endswith(".conf")]
    rules: list[bus_policy.Rule] = []
    for path in (*paths[:MAX_FILES], *LAST):
        content = system.read(path).content
        if content is None and path in (MAIN, MAIN_OLD):
            return ""
        rules += bus_policy.parse(content or b"", path) or []
    where = bus_policy.who_refuses(rules, BUS_NAME, USER)
    if where is None:
        return ""
    main = (MAIN, MAIN_OLD)
    if not where or where.rpartition(":")[0] in main:  # what system.conf says of all names alike
        return f"no file in {' or '.join(FOLDERS)} allows it"
    return where
