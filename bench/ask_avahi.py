"""Find N nodes through avahi-daemon and say how long that took, the connection included and Python not."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from avahi_gpu.avahi.browse import browse
from avahi_gpu.avahi.bus import connect
from avahi_gpu.model import NODE_SERVICE


async def main(count: int) -> None:
    began = time.monotonic()
    async with connect() as avahi:
        listing = await browse(avahi, NODE_SERVICE, expect=count, within_s=10)
        took = time.monotonic() - began
    print(json.dumps({"seconds": took, "names": [service.name for service in listing.services]}))


asyncio.run(main(int(sys.argv[1])))
