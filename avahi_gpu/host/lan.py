"""What Avahi tells about this machine and the others, and what glibc makes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from avahi_gpu.avahi.browse import RELIABLE_S, RESOLVE_GRACE_S, Browser, Listing
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.avahi.names import ANY, CLASS_IN, SERVER_REGISTERING, TYPE_PTR, avahi_missing
from avahi_gpu.avahi.own import CLAIM_AGAIN_S, CLAIM_S
from avahi_gpu.errors import BusError, BusUnavailable
from avahi_gpu.files import txt
from avahi_gpu.host import net, nss
from avahi_gpu.host.absent import Seeker, bare_name
from avahi_gpu.host.aside import aside
from avahi_gpu.host.memory import recall
from avahi_gpu.host.peer_facts import read_peers
from avahi_gpu.host.questions import ANSWER_AT_ONCE, open_question
from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DOMAIN,
    NODE_SERVICE,
    AbsentPeer,
    DaemonState,
    Interface,
    Lookup,
    PeerFacts,
    Service,
)

SETTLE_S = 3.0  # claiming a host name takes 1 s, after a conflict 2 s: "registering" is then a fact
AGAIN_S = 1.0  # as long as a second call may take, where the first was not answered in three
OWN_SERVICE_S = 0.6  # our own service comes from the daemon's memory in a millisecond, or not at all
# answers arrive 0.12 to 0.22 s after a question was begun
ASK_AGAIN_S = 0.3
QUICK_S = 0.65  # both questions and their answers, where nobody is missed


@dataclass
class LanFacts:
    """See the fields of the same names in ``model.Facts``; filled as the answers come."""

    daemon: DaemonState = field(default_factory=lambda: DaemonState(installed=False, bus_reachable=False))
    own_service: tuple[Service, ...] | None = None
    own_name: Lookup | None = None
    peers: tuple[PeerFacts, ...] | None = None
    absent: tuple[AbsentPeer, ...] = ()


async def read_lan(
    lan: LanFacts,
    system: System,
    interfaces: Awaitable[Sequence[Interface]],
    told: asyncio.Future[DaemonState],
    *,
    with_peers: bool,
    wanted: Sequence[str] = (),
) -> None:
    """Ask Avahi; never raises for a bus or a daemon that is not there. ``daemon.installed`` is not asked.

    ``told`` gets the daemon's state as soon as it is known: others wait for it alone. ``wanted``: names of
    peers that are worth a second query, and asked whatever their cluster.
    """
    try:
        async with connect(need_avahi=False) as avahi:
            lan.daemon = replace(lan.daemon, bus_reachable=True, on_bus=avahi.on_bus)
            try:
                lan.daemon = await _read_daemon(avahi)
                told.set_result(lan.daemon)
                await _read_services(
                    avahi, lan, system, await interfaces, with_peers=with_peers, wanted=wanted
                )
            except BusError as fault:
                lan.daemon = replace(lan.daemon, bus_error=fault.message)
    except BusUnavailable as fault:
        lan.daemon = replace(lan.daemon, bus_error=fault.message)
    finally:
        if not told.done():
            told.set_result(lan.daemon)


async def _read_daemon(avahi: Avahi) -> DaemonState:
    if not avahi.on_bus:
        raise avahi_missing()
    # it was asked on connecting: a daemon that did not answer then is given no long time again
    state = avahi.state if avahi.state is not None else await avahi.server_state(AGAIN_S)
    if state == SERVER_REGISTERING:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(avahi.running(), SETTLE_S)
        state = await avahi.server_state()
    return DaemonState(
        installed=False,
        bus_reachable=True,
        on_bus=True,
        pid=await avahi.process_id(),
        version=await avahi.version(),
        server_state=state,
        host_name=await avahi.host_name(),
        domain=await avahi.domain(),
    )


async def _read_services(
    avahi: Avahi,
    lan: LanFacts,
    system: System,
    interfaces: Sequence[Interface],
    *,
    with_peers: bool,
    wanted: Sequence[str],
) -> None:
    own_names = {lan.daemon.host_name.lower(), *(a.ip for i in interfaces for a in i.addresses)}
    wanted = [w for w in wanted if bare_name(w) not in own_names]  # nobody has to be looked for

    async def look_up() -> None:
        lan.own_name = await _look_up_own_name(
            system, f"{lan.daemon.host_name}.{lan.daemon.domain}", net.real_interfaces(interfaces)
        )

    async def list_nodes() -> None:
        prefer = [i.index for i in net.lan_interfaces(tuple(interfaces))]
        remembered = await aside(recall, system) if with_peers else ()
        missed = [*wanted, *(r.name for r in remembered)]
        async with Browser(avahi, NODE_SERVICE, prefer=prefer) as browser:
            await (_see_nodes(avahi, browser, missed) if with_peers else _see_ourselves(browser))
            if not avahi.on_bus:
                raise avahi_missing()
            lan.own_service = tuple(s for s in browser.services.values() if s.own)
            listing = Listing(tuple(browser.services.values()), tuple(browser.unresolved))
        if with_peers:
            own = {txt.read(s.txt).cluster for s in lan.own_service}
            known = [r for r in remembered if not own or r.cluster in own]
            seeker = Seeker(avahi, system, interfaces)
            # who is missing is looked for beside those that are asked
            lan.peers, lan.absent = await asyncio.gather(
                read_peers(avahi, listing, system, interfaces, wanted=wanted, remembered=known),
                seeker.read_absent(listing, _missing(wanted, listing), known),
            )

    await asyncio.gather(look_up(), list_nodes())


async def _look_up_own_name(system: System, name: str, lan: Sequence[Interface]) -> Lookup:
    """Look the own name up until it is an address of the LAN, ``CLAIM_S`` at most.

    On a card that has just come the daemon claims the name first, and tells another card's address meanwhile.
    """
    wanted = {a.ip for i in lan for a in i.addresses}
    loop = asyncio.get_running_loop()
    end = loop.time() + CLAIM_S
    while True:
        told = await aside(nss.lookup, system, name)
        if not wanted or wanted & {a.partition("%")[0] for a in told.addresses} or loop.time() > end:
            return told
        await asyncio.sleep(CLAIM_AGAIN_S)


async def _see_ourselves(browser: Browser) -> None:
    await _follow(browser, OWN_SERVICE_S, lambda: any(s.own for s in browser.services.values()))


async def _see_nodes(avahi: Avahi, browser: Browser, wanted: Sequence[str]) -> None:
    """See the others by two questions, and by more time where one of us may be missed."""
    async with contextlib.AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await _follow(browser, ASK_AGAIN_S)
        asked_twice = await _ask_again(avahi, stack)
        await _follow(browser, began + QUICK_S - loop.time())
        others = [s for s in browser.services.values() if not s.own]
        if (
            browser.unresolved
            or not (others or asked_twice)
            or not all(_is_named(name, others) for name in wanted)
        ):
            await _follow(browser, began + RELIABLE_S - loop.time())
            await _follow(browser, RESOLVE_GRACE_S, lambda: not browser.unresolved)


async def _ask_again(avahi: Avahi, stack: contextlib.AsyncExitStack) -> bool:
    """Ask for the nodes a second time, as Avahi itself does a second after the first; return whether it does.

    The class is one of its own, so Avahi begins with it anew; the answers are those to the first question.
    """
    question = (ANY, ANY, f"{NODE_SERVICE}.{DOMAIN}", CLASS_IN | ANSWER_AT_ONCE, TYPE_PTR, 0)
    try:
        await open_question(avahi, stack, "iisqqu", *question)
    except BusError:
        return False
    return True


async def _follow(browser: Browser, within_s: float, until: Callable[[], bool] = lambda: False) -> None:
    """Take what the browser tells, until that is so or the time has passed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not until() and await browser.next_event(end - loop.time()) is not None:
        pass


def _missing(wanted: Sequence[str], listing: Listing) -> list[str]:
    """Return those of ``wanted`` that are neither resolved nor announced."""
    others = [s for s in listing.services if not s.own]
    announced = {name.lower() for name in listing.unresolved}
    return [w for w in wanted if not _is_named(w, others) and bare_name(w) not in announced]


def _is_named(wanted: str, services: Sequence[Service]) -> bool:
    name = bare_name(wanted)
    return any(name in (s.name.lower(), bare_name(s.host), s.address) for s in services)
