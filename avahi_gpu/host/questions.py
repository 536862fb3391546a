"""Questions that avahi-daemon puts on the LAN for us, which its cache cannot answer.

A question of the class "IN, answer at once" (RFC 6762 section 5.4) is to avahi-daemon another one than the
usual question: it remembers no answer to it, names none that it knows already, and so the asked machine has
to speak. But what somebody asked a moment ago, and left before its turn, is not new: it goes on in the old
pace, of one, two, four, eight seconds. So a question may not leave for a while, and whom nobody asked is not
silent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import CLASS_IN, TYPE_SRV, TYPE_TXT, UNKNOWN_METHOD, USE_MULTICAST
from avahi_gpu.avahi.records import escape_label
from avahi_gpu.avahi.remote import Remote
from avahi_gpu.errors import AvahiCallFailed
from avahi_gpu.model import DOMAIN, NODE_SERVICE

ANSWER_AT_ONCE = 0x8000  # the top bit of a question's class
LEAVES_S = 0.6  # a new question leaves 0.1 s after it was put


async def open_question(avahi: Avahi, stack: contextlib.AsyncExitStack, *question: str | int) -> Remote:
    """Begin to browse for a record. Raises a BusError."""
    try:
        remote = await stack.enter_async_context(
            avahi.make("RecordBrowser", "RecordBrowserPrepare", *question, server="Server2")  # type: ignore[arg-type]
        )
    except AvahiCallFailed as error:
        if error.name != UNKNOWN_METHOD:
            raise
        # Avahi before 0.8 has no Server2
        return await stack.enter_async_context(avahi.make("RecordBrowser", "RecordBrowserNew", *question))  # type: ignore[arg-type]
    await remote.call("Start")
    return remote


def of_service(name: str) -> list[tuple[str, int]]:
    """Return (name, type) of the records that the node of this instance name alone answers for."""
    whole = f"{escape_label(name)}.{NODE_SERVICE}.{DOMAIN}"
    return [(whole, TYPE_SRV), (whole, TYPE_TXT)]


def instance(name: str) -> str:
    """Return the full name of a service as a packet tells it."""
    return f"{name}.{NODE_SERVICE}.{DOMAIN}".lower()


async def ask_at_once(
    avahi: Avahi,
    stack: contextlib.AsyncExitStack,
    place: tuple[int, int],
    records: Sequence[tuple[str, int]],
    *,
    heard: asyncio.Event,
    sent: Callable[[], int],
    enough: int,
) -> None:
    """Ask for one record after the other until something is ``heard`` or enough questions have left.

    ``place``: interface and protocol. ``sent``: how many have left so far; as many as were put, or
    ``enough``, make a further one needless. The questions stay open as long as ``stack``. Raises a BusError.
    """
    for turn, (name, kind) in enumerate(records):
        if heard.is_set() or (turn and sent() >= min(turn, enough)):
            return
        question = (*place, name, CLASS_IN | ANSWER_AT_ONCE, kind, USE_MULTICAST)
        await open_question(avahi, stack, "iisqqu", *question)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(heard.wait(), LEAVES_S)
