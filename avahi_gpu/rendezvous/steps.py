"""What happens to the agreement (events) and what it wants done (actions). Data alone."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Attachment, Message, Seat, Token

# --- events ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """Avahi, or the user's list of peers, names a candidate."""

    candidate: Candidate


@dataclass(frozen=True)
class Unseen:
    """Avahi says that a candidate's record is gone."""

    id: str


@dataclass(frozen=True)
class Excluded:
    """Somebody says that it is of our job and cannot be: another key, another cluster. Decides nothing.

    ``reason``: a sentence for people.
    """

    host: str
    reason: str


@dataclass(frozen=True)
class Opened:
    """A connection that was asked for is up. ``address``: our own end of it."""

    conn: int
    id: str
    address: str


@dataclass(frozen=True)
class OpenFailed:
    """A connection that was asked for could not be made."""

    id: str
    reason: str


@dataclass(frozen=True)
class Accepted:
    """Somebody connected to us. ``address``: our own end of it; ``remote``: theirs."""

    conn: int
    address: str
    remote: str


@dataclass(frozen=True)
class Received:
    """A message came in."""

    conn: int
    message: Message


@dataclass(frozen=True)
class Lost:
    """A connection has ended."""

    conn: int
    reason: str


@dataclass(frozen=True)
class Answered:
    """Whoever is behind ``conn`` answered over another connection. ``apart``: it counts on us no longer."""

    conn: int
    apart: bool = False


@dataclass(frozen=True)
class Wanted:
    """The agent has no workers and wants a round. ``mesh_port`` is open for the mesh test."""

    mesh_port: int
    reason: str = ""


@dataclass(frozen=True)
class Moved:
    """This node's networks, best first, as far as the user allows (``asked``: in which words).

    ``address``: the one that it offers before a round has one. Comes before anything else, and again whenever
    an interface comes, goes or takes another address. ``lacks``: addresses that are still here and of no use,
    each with the sentence that says why.
    """

    address: str
    networks: tuple[Attachment, ...]
    asked: str = ""
    lacks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Severed:
    """The running round's own network no longer carries: nothing comes from the leader's seat."""

    token: Token
    reason: str


@dataclass(frozen=True)
class Reserved:
    """The ports of a proposal are ours."""

    token: Token
    store_port: int
    worker_port: int


@dataclass(frozen=True)
class MeshDone:
    """The mesh test has ended. ``unreachable``: ids, with the reason as a sentence; empty: all reached."""

    token: Token
    unreachable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class Closed:
    """The agent ends: ``finished``, ``failed`` or ``left``."""

    outcome: str
    detail: str = ""


Event = (
    Seen
    | Unseen
    | Excluded
    | Opened
    | OpenFailed
    | Accepted
    | Received
    | Lost
    | Answered
    | Wanted
    | Moved
    | Severed
    | Reserved
    | MeshDone
    | Tick
    | Closed
)

# --- actions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Open:
    """Connect to a candidate; answer with Opened or OpenFailed."""

    candidate: Candidate


@dataclass(frozen=True)
class Send:
    """Send a message; a connection that is gone by now swallows it."""

    conn: int
    message: Message


@dataclass(frozen=True)
class Drop:
    """Close a connection once what was sent is out; no Lost follows."""

    conn: int


@dataclass(frozen=True)
class Ask:
    """Ask over a fresh connection whether node ``id`` lives; answer with Answered, or not at all."""

    conn: int
    id: str
    address: str
    port: int


@dataclass(frozen=True)
class Reserve:
    """Take a store port on ``address`` and a port for the workers; answer with Reserved."""

    token: Token
    address: str


@dataclass(frozen=True)
class TestMesh:
    """Reach every seat but our own, and the leader's ports; answer with MeshDone."""

    token: Token
    seats: tuple[Seat, ...]
    store_port: int
    worker_port: int


@dataclass(frozen=True)
class Round:
    """A formed group. The leader is rank 0; ``rank`` is our own place in ``seats``.

    ``why``: for people, why it runs on the network of these addresses.
    """

    token: Token
    seats: tuple[Seat, ...]
    rank: int
    store_port: int
    worker_port: int
    why: str = ""

    @property
    def leader(self) -> Seat:
        return self.seats[0]

    @property
    def own(self) -> Seat:
        return self.seats[self.rank]


@dataclass(frozen=True)
class Deliver:
    """The round stands: start the workers."""

    round: Round


@dataclass(frozen=True)
class Over:
    """The running round is over: stop the workers, then want a new one.

    ``lost``: at once, since nobody waits for us who may go on without us.
    """

    reason: str
    lost: bool = False


@dataclass(frozen=True)
class End:
    """There will be no round for us any more. ``finished``: nothing went wrong."""

    reason: str
    hint: str = ""
    finished: bool = False


@dataclass(frozen=True)
class Tell:
    """A line for people. ``present``: who is there while we wait; ``excluded``: the host that cannot join."""

    text: str
    present: tuple[str, ...] = ()
    waiting: bool = False
    excluded: str = ""


Action = Open | Send | Drop | Ask | Reserve | TestMesh | Deliver | Over | End | Tell
