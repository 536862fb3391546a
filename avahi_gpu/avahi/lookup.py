"""What Avahi knows of one name: its cache first, then whoever answers within a moment."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import ANY, CLASS_IN, SERVER_PATH, TYPE_A, TYPE_AAAA
from avahi_gpu.errors import BusError
from avahi_gpu.model import DOMAIN

RECORDS_S = 0.4  # cached records come in a millisecond; who is asked answers within 0.22 s
RECORDS_AT_MOST = 64  # of one name and type: more is somebody flooding it
NO_TXT = 4  # AVAHI_LOOKUP_NO_TXT
NO_TXT_S = 1.0  # the first query leaves at once; where it is lost the next one follows after a second


async def find_records(
    avahi: Avahi, name: str, type: int, interface: int = ANY, within_s: float = RECORDS_S
) -> tuple[bytes, ...]:
    """Return the data of the records of ``name``, in wire format; empty where nobody knows any.

    ``name`` is escaped as Avahi wants it (``records.escape_label``). Raises a BusError.
    """
    found: dict[bytes, None] = {}
    arguments = ("iisqqu", interface, ANY, name, CLASS_IN, type, 0)
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    async with avahi.make("RecordBrowser", "RecordBrowserNew", *arguments) as browser:
        while len(found) < RECORDS_AT_MOST:
            try:
                signal = await asyncio.wait_for(browser.next_signal(), max(0.0, end - loop.time()))
            except asyncio.TimeoutError:
                break
            if signal.member == "ItemNew":
                found[bytes(signal.body[5])] = None
            elif signal.member == "ItemRemove":
                found.pop(bytes(signal.body[5]), None)
            elif signal.member in {"AllForNow", "Failure"}:
                break
    return tuple(found)


async def find_addresses(avahi: Avahi, host: str, interface: int = ANY) -> tuple[str, ...]:
    """Return every address that Avahi knows of ``host``, IPv4 first; without scope. Raises a BusError."""
    both = await asyncio.gather(
        find_records(avahi, host, TYPE_A, interface), find_records(avahi, host, TYPE_AAAA, interface)
    )
    return tuple(
        dict.fromkeys(
            str(ipaddress.ip_address(data)) for records in both for data in records if len(data) in {4, 16}
        )
    )


async def has_service_without_txt(avahi: Avahi, name: str, type: str) -> bool:
    """Tell whether the instance ``name`` has a host and an address, asked for without its TXT record."""
    arguments = ("iisssiu", ANY, ANY, name, type, DOMAIN, ANY, NO_TXT)
    with contextlib.suppress(BusError):
        await avahi.call(SERVER_PATH, "Server", "ResolveService", *arguments, within_s=NO_TXT_S)
        return True
    return False
