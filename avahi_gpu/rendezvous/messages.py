"""What the nodes of a job say to each other: one JSON object a line, typed and bounded at the border.

A line that is not of this form is a reason to drop the connection, never to guess. Unknown fields are
ignored, so that a later version may say more; the protocol version decides what is understood.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from avahi_gpu.errors import MalformedInput

PROTOCOL = 1
LINE_MAX = 64 * 1024  # bytes; a commit of 64 members stays below 16 KiB
MEMBERS_MAX = 64
TEXT_MAX = 500  # characters of a sentence for people
SCRIPT_MAX = 100  # characters of a script's name, which goes into one
NETWORKS_MAX = 16  # of one node; more interfaces with an address are those of containers

Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]
Ip = Annotated[str, msgspec.Meta(min_length=2, max_length=64, pattern=r"^[0-9A-Fa-f.:]+(%[\w.-]{1,15})?\Z")]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Priority = Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)]


class Token(msgspec.Struct, frozen=True):
    """The name of a round: the epoch and the id of the leader who proposed it."""

    epoch: Epoch
    leader: Id

    def __str__(self) -> str:
        return f"{self.epoch}-{self.leader[:8]}"


class Record(msgspec.Struct, frozen=True):
    """A candidate as one node tells another of it."""

    id: Id
    host: Name
    address: Ip
    port: Port
    priority: Priority = 0
    size: Count = 0


class Seat(msgspec.Struct, frozen=True):
    """One member of a proposed round, in the order of ranks. ``mesh_port`` is open for the mesh test."""

    id: Id
    host: Name
    address: Ip
    mesh_port: Port


class Attachment(msgspec.Struct, frozen=True):
    """One network that a node is on: its interface there and the address that torch takes of it.

    ``link`` is a word of ``model.Link``; ``mbit`` the speed in Mbit/s, 0 where the driver does not say.
    """

    interface: Annotated[str, msgspec.Meta(min_length=1, max_length=15)]  # IFNAMSIZ, netdevice(7)
    address: Ip
    prefix: Annotated[int, msgspec.Meta(ge=1, le=128)]
    link: Annotated[str, msgspec.Meta(max_length=15)] = ""
    mbit: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0


class Skills(msgspec.Struct, frozen=True):
    """What decides whether nodes can work together; '' and 0 mean not told.

    ``digest`` and ``script``: of the training script's content, and its name without folders.
    """

    min_nodes: Count = 0
    max_nodes: Count = 0
    processes: Count = 0
    torch: Text = ""
    nccl: Text = ""
    cuda: Text = ""
    python: Text = ""
    digest: Text = ""
    script: Annotated[str, msgspec.Meta(max_length=SCRIPT_MAX)] = ""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A node asks to join. ``greet``: it leads itself and only tells of its claim."""

    me: Record
    job: Name
    cluster: Name
    skills: Skills
    epoch: Epoch = 0
    greet: bool = False
    version: Count = PROTOCOL
    known: Annotated[tuple[Record, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()


class Who(msgspec.Struct, frozen=True, tag="who"):
    """Somebody asks whether this port is of the job: without multicast, or since a node is silent.

    ``asker``: its own id, where it wants to know whether we still count on it.
    """

    job: Name
    cluster: Name
    asker: Id | None = None
    host: Annotated[str, msgspec.Meta(max_length=255)] = ""


class Here(msgspec.Struct, frozen=True, tag="here"):
    """It is, and this is who runs it. ``apart``: no connection of ours leads to the asker."""

    me: Record
    apart: bool = False


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The node is a member now. ``note``: for its people, what differs and does not keep it out."""

    me: Record
    epoch: Epoch = 0
    note: Text = ""


class Redirect(msgspec.Struct, frozen=True, tag="redirect"):
    """I do not lead, or you should. ``by``: whoever says so, in case another start was meant."""

    leader: Record
    by: Record | None = None


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """The node cannot be a member. ``final``: and never will be, its start was a mistake."""

    reason: Text
    final: bool = False


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """I am alive, and this is the round that my workers run in."""

    token: Token | None = None
    known: Annotated[tuple[Record, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """The leader tells who is there. ``note`` is for people."""

    present: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
    min_nodes: Count
    max_nodes: Count
    note: Text = ""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """My old workers are gone and I wait for a round. ``reason``: why I left the last one, if by myself.

    ``networks``: where I can be reached, best first, as far as my user allows; ``asked``: in which words.
    """

    mesh_port: Port
    epoch: Epoch = 0
    reason: Text = ""
    networks: Annotated[tuple[Attachment, ...], msgspec.Meta(max_length=NETWORKS_MAX)] = ()
    asked: Text = ""


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """The leader proposes a round. ``why``: for people, why it runs on the network of these addresses."""

    token: Token
    seats: Annotated[tuple[Seat, ...], msgspec.Meta(min_length=1, max_length=MEMBERS_MAX)]
    store_port: Port
    worker_port: Port
    why: Text = ""


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    """I promise this round, my old workers are gone, and I reach everybody."""

    token: Token


class Nack(msgspec.Struct, frozen=True, tag="nack"):
    """I cannot take part in this round, or no longer. ``unreachable``: the ids of those not reached."""

    token: Token
    reason: Text
    unreachable: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """The round begins as it was proposed."""

    token: Token


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """The proposal is off."""

    token: Token
    reason: Text = ""


class Regroup(msgspec.Struct, frozen=True, tag="regroup"):
    """The running round is over; stop the workers and say ready."""

    token: Token
    reason: Text


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """I go. ``finished``: my part is done; ``failed``: the job cannot succeed; ``left``: go on without me."""

    outcome: Annotated[str, msgspec.Meta(pattern=r"^(finished|failed|left)\Z")]
    detail: Text = ""


Message = (
    Hello
    | Who
    | Here
    | Welcome
    | Redirect
    | Refuse
    | Beat
    | Waiting
    | Ready
    | Prepare
    | Ack
    | Nack
    | Commit
    | Abort
    | Regroup
    | Bye
)

_decoder = msgspec.json.Decoder(Message)
_encoder = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """Return the line of a message, its newline included; sentences are cut to what the other side takes."""
    for name in ("reason", "detail", "note", "asked", "why"):
        text = getattr(message, name, "")
        if len(text) > TEXT_MAX:
            message = msgspec.structs.replace(message, **{name: text[: TEXT_MAX - 1] + "…"})
    return _encoder.encode(message) + b"\n"


def decode(line: bytes, sender: str) -> Message:
    """Return the message of a line; raise MalformedInput naming ``sender`` for anything else."""
    if len(line) > LINE_MAX:
        raise MalformedInput(sender, f"a line of {len(line)} bytes, more than the {LINE_MAX} of the protocol")
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInput(sender, f"not a message of the rendezvous protocol ({error})") from error
