"""Who has this machine's name, where Avahi publishes another one for it."""

from __future__ import annotations

import asyncio
import contextlib
import platform
from typing import TYPE_CHECKING

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import BusError

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

# the first query leaves after a tenth of a second, the second one a second later: who has it answers one
RIVAL_S = 1.5
PROBER_S = 6.0  # a daemon that claims its name anew is waited for first


async def read(ground: Ground) -> str | None:
    """Return the address that answers for ``<kernel's host name>.local``, '' where none does.

    None where Avahi publishes that very name, and nobody else has to be asked.
    """
    daemon = await ground.daemon()
    kernel = platform.node().partition(".")[0]
    if not daemon.host_name or not kernel or daemon.host_name.lower() == kernel.lower():
        return None
    async with connect() as avahi:
        with contextlib.suppress(BusError, asyncio.TimeoutError):
            found = resolve_host(avahi, f"{kernel}.{daemon.domain}")
            address, _ = await asyncio.wait_for(found, RIVAL_S)
            return address
    return ""
