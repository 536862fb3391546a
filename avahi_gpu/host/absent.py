"""Nodes that are not listed and should be: those that the user named, and those that were there before."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from avahi_gpu.avahi.browse import Listing, resolve_host
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError
from avahi_gpu.files import txt
from avahi_gpu.host import net, nss
from avahi_gpu.host.aside import aside
from avahi_gpu.host.memory import Remembered, is_same
from avahi_gpu.host.neighbours import ask_cards
from avahi_gpu.host.system import System
from avahi_gpu.model import DEFAULT_PORT, DOMAIN, AbsentPeer, Interface, Source

MDNS_S = 1.5  # two queries: whoever hears them answers one
PROBE_S = 1.5  # a connection within a LAN takes a millisecond; one lost packet costs a second
ASKED_AT_MOST = 32


class Seeker:
    """Looks for nodes by every way but their announcements."""

    def __init__(self, avahi: Avahi, system: System, interfaces: Sequence[Interface]) -> None:
        self._avahi = avahi
        self._system = system
        self._interfaces = interfaces

    async def read_absent(
        self, listing: Listing, missing: Collection[str], remembered: Collection[Remembered]
    ) -> tuple[AbsentPeer, ...]:
        """Return what can be learnt of ``missing``, names as the user gave them, and of whom we remember.

        Who is listed is not absent; nor is who had the address of one that is, or of this machine.
        """
        ids = {s.name: txt.read(s.txt).id for s in listing.services} | dict.fromkeys(listing.unresolved, "")
        taken = {s.address for s in listing.services} | {a.ip for i in self._interfaces for a in i.addresses}
        gone = [
            r
            for r in remembered
            if not any(is_same(r, id, name) for name, id in ids.items()) and r.address not in taken
        ]
        by_name = {name: _recalled(name, gone) for name in list(missing)[:ASKED_AT_MOST]}
        rest = [r for r in gone if r not in by_name.values()][:ASKED_AT_MOST]
        found = await asyncio.gather(
            *(self._seek(name, known) for name, known in by_name.items()),
            *(self._ask_again(r) for r in rest),
        )
        return tuple(found)

    async def _seek(self, name: str, known: Remembered | None) -> AbsentPeer:
        """Find an address of a named node, by the best way that has one, and ask there."""
        if _is_address(name):
            return await self._ask(name, name, "given", known)
        with contextlib.suppress(BusError, asyncio.TimeoutError):
            found = resolve_host(self._avahi, f"{bare_name(name)}.{DOMAIN}")
            address, _ = await asyncio.wait_for(found, MDNS_S)
            return await self._ask(name, address, "mdns", known)
        if known is not None:
            return await self._ask(name, known.address, "memory", known)
        if name.lower().rstrip(".").endswith(f".{DOMAIN}"):
            return AbsentPeer(name)  # glibc would ask Avahi once more
        lookup = await aside(nss.lookup, self._system, name.rstrip("."))
        usable = [a for a in lookup.addresses if not ipaddress.ip_address(a.partition("%")[0]).is_loopback]
        return await self._ask(name, usable[0], "glibc", None) if usable else AbsentPeer(name)

    async def _ask_again(self, known: Remembered) -> AbsentPeer:
        """Ask at a remembered address, and by name: whose Avahi answers is no node any more, but heard."""
        name = f"{bare_name(known.host or known.name)}.{DOMAIN}"
        heard, found = await asyncio.gather(
            asyncio.wait_for(resolve_host(self._avahi, name), MDNS_S),
            self._ask(known.name, known.address, "memory", known),
            return_exceptions=True,
        )
        if isinstance(found, BaseException):
            raise found
        if isinstance(heard, BaseException):
            if not isinstance(heard, BusError | asyncio.TimeoutError):
                raise heard
            return found
        return replace(found, source="mdns") if heard[0] == known.address else found

    async def _ask(self, name: str, address: str, source: Source, known: Remembered | None) -> AbsentPeer:
        interface = net.interface_of(address, self._interfaces)
        bare = address.partition("%")[0]
        if interface is not None and ipaddress.ip_address(bare).is_link_local and ":" in bare:
            address = f"{bare}%{interface.name}"
        alive, cards = await asyncio.gather(
            net.probe(address, DEFAULT_PORT, PROBE_S),
            ask_cards(bare, interface) if interface is not None else _nobody(),
        )
        ago_s = None if known is None else max(0.0, time.time() - known.seen_at)
        return AbsentPeer(name, address, source, alive, cards, ago_s)


def bare_name(name: str) -> str:
    """Return a host name in lower case, without the domain of mDNS."""
    return name.lower().rstrip(".").removesuffix(f".{DOMAIN}")


def _recalled(name: str, remembered: Sequence[Remembered]) -> Remembered | None:
    wanted = bare_name(name)
    return next((r for r in remembered if wanted in {bare_name(r.name), bare_name(r.host), r.address}), None)


async def _nobody() -> None:
    """Stand for the cards of a machine that is not on the link."""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
