"""Find nodes the way most scripts do: a browser, a sleep of two seconds, a look at what came."""

from __future__ import annotations

import json
import sys
import time

from zeroconf import ServiceBrowser, ServiceListener, Zeroconf

TYPE = "_torch._tcp.local."


class Names(ServiceListener):
    """Keeps the names of instances that were resolved."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        info = zc.get_service_info(type_, name)
        if info is not None and info.parsed_addresses():
            self.found.add(name.removesuffix("." + TYPE))

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.found.discard(name.removesuffix("." + TYPE))

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """A change of an instance that is known already."""


zeroconf = Zeroconf(interfaces=[sys.argv[1]])
names = Names()
ServiceBrowser(zeroconf, TYPE, names)
time.sleep(2)
print(json.dumps(sorted(names.found)))
zeroconf.close()
