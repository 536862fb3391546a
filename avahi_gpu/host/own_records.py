"""Ask avahi-daemon what it publishes of this host, against what its service files say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avahi_gpu.avahi.bus import connect
from avahi_gpu.avahi.own import read_own
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.service_loader import is_loaded, parse
from avahi_gpu.host import service_folder
from avahi_gpu.host.aside import aside
from avahi_gpu.host.net import real_interfaces
from avahi_gpu.model import NODE_SERVICE, OwnRecords, ServiceFile

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

SEEN_S = 0.8  # claiming takes a second after a start, and a browser hears of the claimed at once
MAX_TYPES = 16  # browsed at once
RUNNING = 2  # Avahi's state of a server that has its name


async def read(ground: Ground) -> OwnRecords | None:
    """Return what it answers; None where there is nobody to ask."""
    daemon = await ground.daemon()
    if daemon.server_state != RUNNING:
        return None
    files = await aside(service_folder.read_folder, ground.system)
    expected = expect(files, daemon.host_name)
    types = sorted({NODE_SERVICE, *(kind for _, kind in expected)})[:MAX_TYPES]
    async with connect() as avahi:
        wanted = [e for e in expected if e[1] in types]
        with_ipv4 = any(i.ipv4 for i in ground.interfaces if i.link != "loopback")
        lan = [i.index for i in real_interfaces(ground.interfaces)]
        return await read_own(avahi, types, wanted, SEEN_S, with_ipv4=with_ipv4, lan=lan)


def expect(files: tuple[ServiceFile, ...], host_name: str) -> list[tuple[str, str]]:
    """Return (instance name, type) of all that these files would publish on that host."""
    found = []
    for file in files:
        if file.state.content is None or not is_loaded(file.name):
            continue
        try:
            group = parse(file.state.content, file.name, host_name)
        except MalformedInput:
            continue
        found += [
            (group.published_name(host_name), s.type.rstrip(".")) for s in group.services if not s.domain_name
        ]
    return found
