"""What the nodes of a measurement say to the one that leads it: one JSON object a line, bounded. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from avahi_gpu.errors import MalformedInput
from avahi_gpu.model.gauge import Measurement, Reduction
from avahi_gpu.rendezvous.messages import MEMBERS_MAX, Id, Ip, Name, Port, Text

LINE_MAX = 1 << 20  # bytes; the result of 20 nodes, 380 links, takes 100 KiB
SECRET_BYTES = 16
RANKS_MAX = 1024  # processes of one node, as launch takes them

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=600.0)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=MEMBERS_MAX * RANKS_MAX)]
Secret = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]


class Enlist(msgspec.Struct, frozen=True, tag="enlist"):
    """A node of the round is ready to be measured on ``port``.

    ``processes``: that it runs for the all-reduce, 0 where it cannot, and ``lacks`` says why.
    """

    id: Id
    port: Port
    interface: Annotated[str, msgspec.Meta(max_length=15)] = ""
    link: Annotated[str, msgspec.Meta(max_length=15)] = ""
    mbit: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0
    duplex: Annotated[str, msgspec.Meta(max_length=15)] = ""
    processes: Annotated[int, msgspec.Meta(ge=0, le=RANKS_MAX)] = 0
    backend: Annotated[str, msgspec.Meta(max_length=15)] = ""
    torch: Text = ""
    lacks: Text = ""


class Place(msgspec.Struct, frozen=True):
    """Where a node is reached."""

    host: Name
    address: Ip
    port: Port


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """All are there. ``secret`` opens the nodes' ports to each other."""

    secret: Secret
    places: Annotated[tuple[Place, ...], msgspec.Meta(min_length=1, max_length=MEMBERS_MAX)]


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The others are let in from now on."""


class Try(msgspec.Struct, frozen=True, tag="try"):
    """Measure the way from you to the node of that number."""

    target: Rank
    send_s: Seconds
    echo_s: Seconds


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """What came of it; as in model.gauge.GaugedLink."""

    bits_per_s: float | None = None
    round_trip_best_s: float | None = None
    round_trip_s: float | None = None
    round_trip_p99_s: float | None = None
    resent: float = 0.0
    error: Text = ""


class Reduce(msgspec.Struct, frozen=True, tag="reduce"):
    """Start your processes from rank ``first`` on. ``limit_s``: no single all-reduce is to take longer."""

    first: Rank
    ranks: Rank
    address: Ip
    port: Port
    sizes: Annotated[tuple[Annotated[int, msgspec.Meta(ge=8, le=1 << 32)], ...], msgspec.Meta(max_length=64)]
    limit_s: Seconds
    budget_s: Seconds


class Reduced(msgspec.Struct, frozen=True, tag="reduced"):
    """The processes have ended. ``results``: of rank 0."""

    results: Annotated[tuple[Reduction, ...], msgspec.Meta(max_length=64)] = ()
    error: Text = ""


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The all-reduce has failed elsewhere: end your processes, which may wait for others for long."""


class Step(msgspec.Struct, frozen=True, tag="step"):
    """For people: what is being measured."""

    text: Text


class Done(msgspec.Struct, frozen=True, tag="done"):
    """That was all, and this is what came of it."""

    measured: Measurement


Message = Enlist | Begin | Begun | Try | Tried | Reduce | Reduced | Stop | Step | Done

_decoder = msgspec.json.Decoder(Message)
_encoder = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """Return the line of a message, its newline included."""
    return _encoder.encode(message) + b"\n"


def decode(line: bytes, sender: str) -> Message:
    """Return the message of a line; raise MalformedInput naming ``sender`` for anything else."""
    try:
        message = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInput(sender, f"not a message of a measurement ({error})") from error
    if isinstance(message, Done):
        count = len(message.measured.nodes)
        if any(not (0 <= x.source < count and 0 <= x.target < count) for x in message.measured.links):
            raise MalformedInput(sender, "a link of a node that is not there")
        if any(r.seconds <= 0 or r.size <= 0 for r in message.measured.reductions):
            raise MalformedInput(sender, "an all-reduce that took no time")
    return message
