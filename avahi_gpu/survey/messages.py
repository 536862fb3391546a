"""What the doctors of two nodes say to each other: one JSON object a line, typed and bounded. Pure.

The asker asks and the other side answers, whichever of them has connected:

    hello  → about, or busy and later about      who is there, what it has
    clock  → now                                 what time it is
    listen → listening                           wait for connections on these ports, and close them
    probe  → probed                              resolve, ping and connect to these nodes
    bye

A line that is not of this form ends the connection. Unknown fields are ignored.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from avahi_gpu.errors import MalformedInput

PROTOCOL = 1
LINE_MAX = 64 * 1024  # bytes; what ten words of 160 characters say of each of 31 others stays below it
NODES_MAX = 32  # more than the ten that this is made for
PORTS_MAX = 6  # of one node, in one order
NETWORKS_MAX = 16
ADDRESSES_MAX = 16  # of one network
WORDS_MAX = 160  # characters of a sentence for people
LISTEN_MAX_S = 30.0

Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
NodeId = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{12})?\Z")]
Name = Annotated[str, msgspec.Meta(max_length=255)]
Words = Annotated[str, msgspec.Meta(max_length=WORDS_MAX)]
Version = Annotated[str, msgspec.Meta(max_length=64)]
Ip = Annotated[str, msgspec.Meta(min_length=2, max_length=45, pattern=r"^[0-9A-Fa-f.:]+\Z")]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
AnyPort = Annotated[int, msgspec.Meta(ge=0, le=65535)]  # 0: a high one that is free
Mtu = Annotated[int, msgspec.Meta(ge=0, le=65536)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Clock = Annotated[float, msgspec.Meta(ge=0, le=1e11)]  # seconds since 1970


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """An asker begins."""

    id: Id
    host: Name
    version: Number = PROTOCOL


class Offer(msgspec.Struct, frozen=True, tag="offer"):
    """A node that offers to be asked has connected to an asker, who did not come by itself."""

    id: Id
    host: Name
    version: Number = PROTOCOL


class Ip4or6(msgspec.Struct, frozen=True):
    """An address of a network."""

    ip: Ip
    prefix: Annotated[int, msgspec.Meta(ge=0, le=128)]


class Network(msgspec.Struct, frozen=True):
    """A network that the node is on."""

    interface: Annotated[str, msgspec.Meta(min_length=1, max_length=15)]
    mtu: Mtu
    addresses: Annotated[tuple[Ip4or6, ...], msgspec.Meta(max_length=ADDRESSES_MAX)] = ()


class About(msgspec.Struct, frozen=True, tag="about"):
    """Who a node is and what it has. ``id``: of its start. ``host`` '': nobody publishes its name."""

    id: Id
    hostname: Name
    host: Name = ""
    node: NodeId = ""
    cluster: Name = ""
    networks: Annotated[tuple[Network, ...], msgspec.Meta(max_length=NETWORKS_MAX)] = ()
    gpus: Number = 0
    gpu: Words = ""
    python: Version = ""
    torch: Version = ""
    cuda: Version = ""
    nccl: Version = ""
    driver: Version = ""


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """Somebody else asks; the turn comes."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """No."""

    why: Words


class AskClock(msgspec.Struct, frozen=True, tag="clock"):
    """What time is it?"""


class Now(msgspec.Struct, frozen=True, tag="now"):
    """The time of day."""

    wall: Clock


class Listen(msgspec.Struct, frozen=True, tag="listen"):
    """Listen on these ports; 0 stands for any free high one."""

    ports: Annotated[tuple[AnyPort, ...], msgspec.Meta(max_length=PORTS_MAX)]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LISTEN_MAX_S)]


class Opened(msgspec.Struct, frozen=True):
    """A port that was asked for. ``listens`` may be true of another program's; ``words`` say so."""

    asked: AnyPort
    port: AnyPort
    listens: bool
    words: Words = ""


class Listening(msgspec.Struct, frozen=True, tag="listening"):
    """What became of the ports, in the order in which they were asked for."""

    ports: Annotated[tuple[Opened, ...], msgspec.Meta(max_length=PORTS_MAX)]


class Target(msgspec.Struct, frozen=True):
    """A node to try. ``host`` '': no name to resolve. ``mtu`` 0: no large echo."""

    address: Ip
    host: Name = ""
    mtu: Mtu = 0
    ports: Annotated[tuple[Port, ...], msgspec.Meta(max_length=PORTS_MAX)] = ()


class Probe(msgspec.Struct, frozen=True, tag="probe"):
    """Try these."""

    targets: Annotated[tuple[Target, ...], msgspec.Meta(max_length=NODES_MAX)]


class Tried(msgspec.Struct, frozen=True):
    """An attempt; see ``model.Trial``."""

    ok: bool | None = None
    words: Words = ""
    took_s: Seconds = 0.0


class Report(msgspec.Struct, frozen=True):
    """What came of one target; ``ports`` in the order in which they were asked for."""

    glibc: Tried = Tried()
    avahi: Tried = Tried()
    echo: Tried = Tried()
    frame: Tried = Tried()
    ports: Annotated[tuple[Tried, ...], msgspec.Meta(max_length=PORTS_MAX)] = ()


class Probed(msgspec.Struct, frozen=True, tag="probed"):
    """What came of the targets, in their order."""

    reports: Annotated[tuple[Report, ...], msgspec.Meta(max_length=NODES_MAX)]


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """The asker knows enough."""


Said = Hello | Offer | About | Busy | Refused | AskClock | Now | Listen | Listening | Probe | Probed | Bye

_decoder: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)
_encoder = msgspec.json.Encoder()


def encode(said: Said) -> bytes:
    """Return a line, its newline included."""
    return _encoder.encode(said) + b"\n"


def decode(line: bytes, sender: str) -> Said:
    """Return what a line says. Raises MalformedInput."""
    if len(line) > LINE_MAX:
        raise MalformedInput(sender, f"a line of more than {LINE_MAX} bytes")
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInput(sender, str(error)[:WORDS_MAX]) from None


def clip(text: str) -> str:
    """Return words as a line takes them."""
    return text[:WORDS_MAX]
