"""Find N nodes through avahi-daemon; say how long that took in a program that runs already.

The connection to the bus is part of it, the start of Python and its imports are not.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from avahi_gpu.avahi.browse import browse
from avahi_gpu.avahi.bus import connect
from avahi_gpu.model import NODE_SERVICE

WITHIN_S = 10.0


async def main(count: int) -> None:
    began = time.monotonic()
    async with connect() as avahi:
        listing = await browse(avahi, NODE_SERVICE, expect=count, within_s=WITHIN_S)
        took = time.monotonic() - began
    print(json.dumps({"seconds": took, "names": [service.name for service in listing.services]}))


asyncio.run(main(int(sys.argv[1])))
