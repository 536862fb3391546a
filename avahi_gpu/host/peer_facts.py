"""Each other node, asked in every way: who answers at its address, and why nobody does."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from avahi_gpu.avahi.browse import Listing
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.lookup import find_addresses, find_records, has_service_without_txt
from avahi_gpu.avahi.names import TYPE_TXT
from avahi_gpu.avahi.records import decode_txt, escape_label
from avahi_gpu.errors import BusError
from avahi_gpu.files import txt
from avahi_gpu.host import net, nss
from avahi_gpu.host.aside import aside
from avahi_gpu.host.memory import Remembered
from avahi_gpu.host.neighbours import ask_cards, is_on_link, read_gateway
from avahi_gpu.host.system import System
from avahi_gpu.host.voices import Voices
from avahi_gpu.model import DOMAIN, NODE_SERVICE, Interface, Lookup, PeerFacts, Service

PROBE_S = 1.5  # a connection within a LAN takes a millisecond; one lost packet costs a second
ELSEWHERE_S = 1.1  # the machine is known to be in trouble: one lost packet may be repeated
LOST_S = 1.5  # two questions: who is silent then is called so by more than this
CARDS_AFTER_S = 0.3  # a healthy node has answered by then, and nobody needs to ask whether it is there
LOOKUPS_AT_ONCE = 8  # each is a process
SHARED_AT_MOST = 16  # addresses that are asked for their owners: mistakes are few, a flood is not
# a node beyond these is listed and not asked: thousands of names are somebody's flood, not a cluster
ASKED_AT_MOST = 64


async def read_peers(
    avahi: Avahi,
    listing: Listing,
    system: System,
    interfaces: Sequence[Interface],
    *,
    wanted: Collection[str] = (),
    remembered: Collection[Remembered] = (),
) -> tuple[PeerFacts, ...]:
    """Return the other nodes of ``listing``; those of other clusters are asked only with ``wanted``.

    Takes as long as the slowest answer of glibc; where somebody does not answer two seconds more at most.
    """
    own = [txt.read(s.txt).cluster for s in listing.services if s.own]
    others = sorted((s for s in listing.services if not s.own), key=lambda s: s.name)
    asked = [s for s in others if wanted or not own or txt.read(s.txt).cluster in own][:ASKED_AT_MOST]
    lost = sorted(listing.unresolved)[:ASKED_AT_MOST]
    seen_on = {s.interface for s in asked}
    if lost:
        seen_on |= {i.index for i in net.lan_interfaces(interfaces)}
    known = {r.name: r.address for r in remembered}
    with Voices(avahi, [i for i in interfaces if i.index in seen_on]) as voices:
        reader = _Reader(avahi, system, interfaces, voices)
        found = await asyncio.gather(
            *map(reader.read, asked), *(reader.read_lost(name, known.get(name, "")) for name in lost)
        )
    unasked = [reader.told(s) for s in others if s not in asked]
    peers = await reader.count_owners([*found, *unasked])
    return tuple(sorted(peers, key=lambda peer: peer.name))


class _Reader:
    def __init__(self, avahi: Avahi, system: System, interfaces: Sequence[Interface], voices: Voices) -> None:
        self._avahi = avahi
        self._voices = voices
        self._system = system
        self._interfaces = {i.index: i for i in interfaces}
        self._gate = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    def told(self, service: Service) -> PeerFacts:
        """Return what the node's own records tell."""
        interface = self._interfaces.get(service.interface)
        facts = txt.read(service.txt)
        return PeerFacts(
            service.name,
            service.host,
            service.address,
            interface.name if interface else None,
            id=facts.id,
            port=service.port,
            versions=facts.versions,
            cluster=facts.cluster,
            gpus=len(facts.gpus),
            calls_itself=facts.calls_itself,
        )

    async def read(self, service: Service) -> PeerFacts:
        """Ask everybody about a node that Avahi resolves."""
        peer = self.told(service)
        interface = self._interfaces.get(service.interface)
        listening = asyncio.ensure_future(self._voices.speaks(service))
        try:
            reached = await self._ask(peer, service, interface)
            # whoever is off says nothing: nobody has to wait for it
            return replace(reached, speaks=await listening) if reached.alive else reached
        finally:
            listening.cancel()

    async def _ask(self, peer: PeerFacts, service: Service, interface: Interface | None) -> PeerFacts:
        if is_link_local_ipv6(service.address):  # no name leads to it: glibc would ask for IPv4 for 5 s
            return await self._reach(peer, service, interface)
        reached, lookup = await asyncio.gather(
            self._reach(peer, service, interface), self._look_up(service.host)
        )
        if lookup.addresses and service.address not in lookup.addresses:
            there, also = await asyncio.gather(
                net.probe(lookup.addresses[0], service.port, PROBE_S), self._known_addresses(service.host)
            )
            reached = replace(reached, glibc_alive=there, also=also)
        return replace(reached, glibc=lookup)

    async def read_lost(self, name: str, known: str) -> PeerFacts:
        """Ask about a node that is announced and not resolved: what is left of it?

        ``known``: its address from before, '' where nobody remembers it.
        """
        full = f"{escape_label(name)}.{NODE_SERVICE}.{DOMAIN}"
        host = f"{escape_label(name)}.{DOMAIN}"
        try:
            records, addresses, without_txt, speaks = await asyncio.gather(
                find_records(self._avahi, full, TYPE_TXT),
                find_addresses(self._avahi, host),
                has_service_without_txt(self._avahi, name, NODE_SERVICE),
                self._voices.speaks_anywhere(name, LOST_S),
            )
        except BusError as fault:
            return PeerFacts(name, "", None, None, resolve_error=fault.message)
        facts = txt.read([item for record in records[:1] for item in decode_txt(record)])
        addresses = addresses or ((known,) if known else ())
        alive = await self._first_alive(addresses, None)
        return PeerFacts(
            name,
            "",
            None,
            None,
            resolve_error="nobody answers for that name",
            id=facts.id,
            versions=facts.versions,
            cluster=facts.cluster,
            gpus=len(facts.gpus),
            calls_itself=facts.calls_itself,
            host_address=alive or (addresses[0] if addresses else ""),
            alive=bool(alive) if addresses else None,
            txt_missing=without_txt and not records,
            speaks=speaks or None,
        )

    async def count_owners(self, peers: Sequence[PeerFacts]) -> list[PeerFacts]:
        """Ask who answers for each address that several nodes have, or a node and this machine."""
        own = {a.ip for i in self._interfaces.values() for a in i.addresses}
        named = {i.name: i for i in self._interfaces.values()}
        count = Counter(p.address for p in peers)
        places = {(p.address, p.interface): named.get(p.interface or "") for p in peers}
        shared = [
            (address, interface)
            for (address, _), interface in places.items()
            if address and interface and (count[address] > 1 or address in own)
        ][:SHARED_AT_MOST]
        cards = await asyncio.gather(*(ask_cards(a, i, all_of_them=True) for a, i in shared))
        owners = {(a, i.name): found for (a, i), found in zip(shared, cards, strict=True)}
        return [replace(p, cards=owners.get((p.address or "", p.interface or ""), p.cards)) for p in peers]

    async def _reach(self, peer: PeerFacts, service: Service, interface: Interface | None) -> PeerFacts:
        address = service.address
        on_link = interface is not None and is_on_link(address, interface)
        gateway = "" if on_link else await aside(read_gateway, address)
        peer = replace(peer, gateway=gateway)
        probe = asyncio.ensure_future(net.probe(_scoped(address, interface), service.port, PROBE_S))
        try:
            done, _ = await asyncio.wait({probe}, timeout=CARDS_AFTER_S)
            if done and probe.result():
                return replace(peer, alive=True)
            alive, cards, elsewhere = await asyncio.gather(
                probe,
                ask_cards(address, interface) if on_link and interface is not None else _nobody_asked(),
                self._elsewhere(service, interface),
            )
        finally:
            probe.cancel()
        if alive:
            return replace(peer, alive=True)
        return replace(peer, alive=alive, cards=cards, elsewhere=elsewhere)

    async def _elsewhere(self, service: Service, interface: Interface | None) -> str:
        """Return another address of a node that answers, '' where none does."""
        try:
            addresses = await find_addresses(self._avahi, service.host, service.interface)
        except BusError:
            return ""
        others = [a for a in addresses if a != service.address]
        return await self._first_alive(others, interface)

    async def _known_addresses(self, host: str) -> tuple[str, ...]:
        try:
            return await find_addresses(self._avahi, host)
        except BusError:
            return ()

    async def _first_alive(self, addresses: Sequence[str], interface: Interface | None) -> str:
        """Return the first of ``addresses`` that answers; an IPv6 link-local one only on ``interface``."""
        scoped = [_scoped(a, interface) for a in addresses]
        askable = [a for a in scoped if "%" in a or not is_link_local_ipv6(a)]
        answers = await asyncio.gather(*(net.probe(a, 9, ELSEWHERE_S) for a in askable))
        return next((a for a, answer in zip(askable, answers, strict=True) if answer), "")

    async def _look_up(self, host: str) -> Lookup:
        async with self._gate:
            return await aside(nss.lookup, self._system, host)


async def _nobody_asked() -> None:
    """Stand for the cards of a machine that is not on the link."""


def _scoped(address: str, interface: Interface | None) -> str:
    """Return an address with its interface where it means nothing without."""
    scoped = interface is not None and is_link_local_ipv6(address)
    return f"{address}%{interface.name}" if interface is not None and scoped else address


def is_link_local_ipv6(address: str) -> bool:
    """Tell whether ``address`` means something on its own link alone."""
    ip = ipaddress.ip_address(address)
    return ip.version == 6 and ip.is_link_local
