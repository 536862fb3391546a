"""Programs that answer for names on glibc's behalf: which of them listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

TABLE = "/proc/net/unix"
LISTENS = 0x10000  # __SO_ACCEPTCON, the flag of a listening socket in that table (proc(5))
SOCKETS = {
    "/run/nscd/socket": "nscd",
    "/var/run/nscd/socket": "nscd",
    "/var/lib/sss/pipes/nss": "sssd",
    "/run/systemd/resolve/io.systemd.Resolve": "systemd-resolved",
}


async def read(ground: Ground) -> tuple[str, ...]:
    """Return the names of those that run, sorted. Raises OSError where the table cannot be read."""
    state = await aside(ground.system.read, TABLE)
    if state.content is None:
        raise OSError(state.error)
    return parse(state.content.decode("utf-8", "replace"))


def parse(table: str) -> tuple[str, ...]:
    """Return who listens, by ``/proc/net/unix``."""
    found = set()
    for line in table.splitlines()[1:]:
        words = line.split(None, 7)
        if len(words) == 8 and words[7] in SOCKETS and int(words[3], 16) & LISTENS:
            found.add(SOCKETS[words[7]])
    return tuple(sorted(found))
