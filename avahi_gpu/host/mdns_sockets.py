"""Who shares mDNS's port with avahi-daemon: sockets on UDP 5353 and the processes that hold them."""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import MdnsSocket

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MDNS_PORT = 5353
_TABLES = (("/proc/net/udp", 4), ("/proc/net/udp6", 6))
_SOCKET = re.compile(r"socket:\[(\d+)\]")


async def read(ground: Ground) -> tuple[MdnsSocket, ...]:
    """Return every socket on UDP port 5353 of this network namespace."""
    return await aside(read_sockets, ground.system)


def read_sockets(system: System) -> tuple[MdnsSocket, ...]:
    """Return the sockets with their owners, as far as we may look into /proc/PID/fd (proc(5))."""
    found: list[MdnsSocket] = []
    for table, family in _TABLES:
        text = (system.read(table).content or b"").decode("ascii", "replace")
        found += parse_table(text, family)
    owners = _owners(system, {s.inode for s in found}) if found else {}
    return tuple(
        MdnsSocket(s.family, s.address, s.inode, s.uid, *owners.get(s.inode, (None, ""))) for s in found
    )


def parse_table(text: str, family: int) -> list[MdnsSocket]:
    """Return the sockets on port 5353 of /proc/net/udp or udp6 (proc(5)); malformed lines are left out."""
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        try:
            address, port = words[1].split(":")
            if int(port, 16) == MDNS_PORT:
                found.append(MdnsSocket(family, kernel_address(address), int(words[9]), int(words[7])))
        except (IndexError, ValueError):
            continue
    return found


def kernel_address(hexadecimal: str) -> str:
    """Return the address that the kernel wrote as 32-bit words in the machine's own byte order."""
    raw = bytes.fromhex(hexadecimal)
    words = struct.unpack(f">{len(raw) // 4}I", raw)
    return str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words)))


def _owners(system: System, inodes: Iterable[int]) -> dict[int, tuple[int, str]]:
    wanted = set(inodes)
    owners: dict[int, tuple[int, str]] = {}
    for pid in system.list_folder("/proc"):
        if not pid.isdigit() or not wanted:
            continue
        for handle in system.list_folder(f"/proc/{pid}/fd"):
            found = _SOCKET.fullmatch(system.read_link(f"/proc/{pid}/fd/{handle}"))
            if found is not None and int(found[1]) in wanted:
                comm = (system.read(f"/proc/{pid}/comm").content or b"").decode("utf-8", "replace").strip()
                owners.setdefault(int(found[1]), (int(pid), comm))
    return owners
