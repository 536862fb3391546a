"""Find nodes the way most scripts do: a browser, a sleep of two seconds, a look at what came.

    python ask_zeroconf.py ADDRESS N

Also tells after how many seconds the Nth was there, which such a script does not look at.
"""

from __future__ import annotations

import json
import sys
import time

from zeroconf import ServiceBrowser, ServiceListener, Zeroconf

TYPE = "_torch._tcp.local."


class Names(ServiceListener):
    """Keeps the names of instances that were resolved, and when each was."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        info = zc.get_service_info(type_, name)
        if info is not None and info.parsed_addresses():
            self.found.setdefault(name.removesuffix("." + TYPE), time.monotonic())

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.found.pop(name.removesuffix("." + TYPE), None)

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """A change of an instance that is known already."""


address, count = sys.argv[1], int(sys.argv[2])
began = time.monotonic()
zeroconf = Zeroconf(interfaces=[address])
names = Names()
ServiceBrowser(zeroconf, TYPE, names)
time.sleep(2)
moments = sorted(names.found.values())
took = moments[count - 1] - began if len(moments) >= count else None
print(json.dumps({"seconds": took, "names": sorted(names.found)}))
zeroconf.close()
