"""What the agreement takes in and gives out, step by step, for AVAHI_GPU_LOG=debug. Pure.

One line an event or action: how many seconds after the start, what, whose connection, and the few fields that
decide something. A field that is not named here is never shown, so that nothing secret can come in by a new
message; what comes from the network is bounded and printable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.terms import show_nodes

NAME_SHOWN = 40  # characters of a host's name; ours are shorter
TEXT_SHOWN = 160  # characters of a sentence
HOSTS_SHOWN = 10  # more than a LAN of this size has


class Trace:
    """Turns one node's events and actions into lines; remembers who is behind which connection."""

    def __init__(self, own: Candidate, started: float) -> None:
        self.own = own
        self.started = started
        self.names: dict[str, str] = {own.id: shown(own.host, NAME_SHOWN)}  # by id
        self.peers: dict[int, str] = {}  # by connection
        self.beats: dict[tuple[str, int], m.Token | None] = {}  # the round of the last beat, by way
        self.choice = ""

    def lines(
        self, event: steps.Event, actions: Iterable[steps.Action], candidates: Candidates, now: float
    ) -> Iterator[tuple[int, str]]:
        """Yield what has happened at monotonic time ``now``: the event, the election's choice, the actions.

        Each with its level of logging: the choice and what became of the round are worth more than the way.
        Time that passes without a consequence, and beats that say nothing new, are no steps.
        """
        at = f"{now - self.started:+.4f}"
        actions = list(actions)
        told = self.describe_event(event)
        done = [(action, line) for action in actions if (line := self.describe_action(action))]
        if told or done:
            unsaid = "time has passed" if isinstance(event, steps.Tick) else "a beat like the last one"
            yield logging.DEBUG, f"{at} in  {told or unsaid}"
        choice = describe_choice(candidates, now)
        if choice != self.choice:
            self.choice = choice
            yield logging.INFO, f"{at} --  {choice}"
        for action, line in done:
            worth = isinstance(action, steps.Deliver | steps.Over | steps.End)
            yield logging.INFO if worth else logging.DEBUG, f"{at} out {line}"
        self.forget(event, actions)

    def forget(self, event: steps.Event, actions: Iterable[steps.Action]) -> None:
        """Drop what is known of connections that have ended."""
        ended = [step.conn for step in (event, *actions) if isinstance(step, steps.Lost | steps.Drop)]
        for conn in ended:
            self.peers.pop(conn, None)
            self.beats.pop(("in", conn), None)
            self.beats.pop(("out", conn), None)

    # --- events and actions --------------------------------------------------------------------------------

    def describe_event(self, event: object) -> str:
        """Return the line of an event; '' for one that is no step."""
        match event:
            case steps.Seen(candidate):
                self.learn(candidate.id, candidate.host)
                return f"seen {self.describe_candidate(candidate)}"
            case steps.Unseen(id):
                return f"record gone: {self.name(id)}"
            case steps.Excluded(_, reason):
                return f"cannot be of the job: {shown(reason, TEXT_SHOWN)}"
            case steps.Opened(conn, id, address):
                self.peers[conn] = self.name(id)
                return f"connected {self.peer(conn)}, from our address {shown(address)}"
            case steps.OpenFailed(id, reason):
                return f"no connection to {self.name(id)}: {shown(reason, TEXT_SHOWN)}"
            case steps.Accepted(conn, address, remote):
                self.peers[conn] = shown(remote)
                return f"accepted {self.peer(conn)}, at our address {shown(address)}"
            case steps.Received(conn, message):
                return self.describe_message("in", conn, message)
            case steps.Lost(conn, reason):
                return f"lost {self.peer(conn)}: {shown(reason, TEXT_SHOWN)}"
            case steps.Wanted(mesh_port, reason):
                return f"the agent wants a round, mesh port {mesh_port}{because(reason)}"
            case steps.Moved(_, networks, asked):
                return f"this node is at {describe_networks(networks, asked)}"
            case steps.Severed(token, reason):
                return f"the network of round {token} is cut{because(reason)}"
            case steps.Reserved(token, store_port, worker_port):
                return f"ports of round {token}: store {store_port}, workers {worker_port}"
            case steps.MeshDone(token, unreachable):
                gaps = "; ".join(shown(text, TEXT_SHOWN) for _, text in unreachable[:HOSTS_SHOWN])
                return f"mesh of round {token}: {gaps or 'all reached'}"
            case steps.Closed(outcome, detail):
                return f"the agent ends: {shown(outcome)}{because(detail)}"
            case steps.Answered(conn, apart):
                return f"{self.peer(conn)} answers elsewhere{', and counts on us no longer' if apart else ''}"
            case steps.Tick():
                return ""
            case _:
                return tag(event)

    def describe_action(self, action: object) -> str:
        """Return the line of an action; '' for a beat that says nothing new."""
        match action:
            case steps.Open(candidate):
                self.learn(candidate.id, candidate.host)
                return f"connect to {self.describe_candidate(candidate)}"
            case steps.Send(conn, message):
                return self.describe_message("out", conn, message)
            case steps.Drop(conn):
                return f"drop {self.peer(conn)}"
            case steps.Ask(conn):
                return f"ask whether {self.peer(conn)} lives, over another connection"
            case steps.Reserve(token, address):
                return f"reserve ports of round {token} on {shown(address)}"
            case steps.TestMesh(token, seats):
                return f"test the mesh of round {token}: {self.describe_seats(seats)}"
            case steps.Deliver(formed):
                ports = f"store {formed.store_port}, workers {formed.worker_port}"
                where = self.describe_seats(formed.seats)
                return f"round {formed.token} stands, rank {formed.rank}: {where}; {ports}"
            case steps.Over(reason):
                return f"the round is over{because(reason)}"
            case steps.End(reason, _, finished):
                how = "finished" if finished else "without a way on"
                return f"the end, {how}{because(reason)}"
            case steps.Tell(text, present, waiting):
                here = f" ({self.list_names(present)})" if present else ""
                return f"{'wait' if waiting else 'tell'}: {shown(text, TEXT_SHOWN)}{here}"
            case _:
                return tag(action)

    def describe_message(self, way: str, conn: int, message: object) -> str:
        """Return the line of a message; '' for a beat that says nothing new."""
        link = f"{'from' if way == 'in' else 'to'} {self.peer(conn)}"
        match message:
            case m.Beat(token, known):
                said = bool(known) or self.beats.get((way, conn), message) != token
                self.beats[way, conn] = token
                news = f", knows {self.list_records(known)}" if known else ""
                return f"beat {link}: {f'runs {token}' if token else 'runs nothing'}{news}" if said else ""
            case m.Hello():
                me = self.describe_record(message.me)
                if way == "in":
                    self.peers[conn] = self.name(message.me.id)
                    link = f"from {self.peer(conn)}"
                what = "greets" if message.greet else "asks to join"
                return f"hello {link}: {what}, {me}, {describe_skills(message.skills)}, epoch {message.epoch}"
            case m.Who() | m.Here():
                return f"{tag(message)} {link}"
            case m.Welcome(me, epoch, note):
                return f"welcome {link}: {self.describe_record(me)} leads, epoch {epoch}{because(note)}"
            case m.Redirect(leader):
                return f"redirect {link}: {self.describe_record(leader)} leads"
            case m.Refuse(reason, final):
                return f"refuse {link}{', for good' if final else ''}{because(reason)}"
            case m.Waiting(present, smallest, largest, note):
                here = self.list_names(present)
                return f"waiting {link}: {here} of {show_nodes(smallest, largest)}{because(note)}"
            case m.Ready(mesh_port, epoch, reason, networks, asked):
                where = f", at {describe_networks(networks, asked)}" if networks else ""
                return f"ready {link}: mesh port {mesh_port}, epoch {epoch}{where}{because(reason)}"
            case m.Prepare(token, seats, store_port, worker_port, why):
                ports = f"store {store_port}, workers {worker_port}"
                where = self.describe_seats(seats)
                return f"prepare {link}: round {token}: {where}; {ports}{because(why)}"
            case m.Nack(token, reason):
                return f"nack {link}: round {token}{because(reason)}"
            case m.Ack(token) | m.Commit(token):
                return f"{tag(message)} {link}: round {token}"
            case m.Abort(token, reason) | m.Regroup(token, reason):
                return f"{tag(message)} {link}: round {token}{because(reason)}"
            case m.Bye(outcome, detail):
                return f"bye {link}: {shown(outcome)}{because(detail)}"
            case _:  # a proof, say: that it was sent is the step, what it holds is nobody's business
                return f"{tag(message)} {link}"

    # --- who is who ----------------------------------------------------------------------------------------

    def learn(self, id: str, host: str) -> None:
        """Remember the name of a candidate, as long as there are not too many to be true."""
        if len(self.names) < 4 * m.MEMBERS_MAX:
            self.names.setdefault(id, shown(host, NAME_SHOWN))

    def name(self, id: str) -> str:
        """Return the host name of a candidate, or its id."""
        return self.names.get(id) or shown(id)

    def peer(self, conn: int) -> str:
        """Return a connection as people read it: ``gpu-node-2 #3``."""
        return f"{self.peers.get(conn, 'nobody')} #{conn}"

    def describe_candidate(self, c: Candidate) -> str:
        """Return ``gpu-node-2 at 10.0.0.2:29400``, with what speaks for it."""
        more = (f", priority {c.priority}" if c.priority else "") + (f", leads {c.size}" if c.size else "")
        return f"{self.name(c.id)} at {shown(c.address)}:{c.port}{more}"

    def describe_record(self, record: m.Record) -> str:
        self.learn(record.id, record.host)
        more = f", leads {record.size}" if record.size else ""
        return f"{self.name(record.id)} at {shown(record.address)}:{record.port}{more}"

    def describe_seats(self, seats: Iterable[m.Seat]) -> str:
        return self.list_names(f"{shown(s.host, NAME_SHOWN)} at {shown(s.address)}" for s in seats)

    def list_records(self, records: Iterable[m.Record]) -> str:
        return self.list_names(self.describe_record(r) for r in records)

    def list_names(self, names: Iterable[str]) -> str:
        """Return the first of the names, and how many more there are."""
        all_names = [shown(name, TEXT_SHOWN) for name in names]
        more = len(all_names) - HOSTS_SHOWN
        return ", ".join(all_names[:HOSTS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def describe_choice(candidates: Candidates, now: float) -> str:
    """Return whom this node would follow now, why, and who does not count."""
    best = candidates.best(now)
    usable = candidates.usable(now)
    field = sorted([candidates.own, *usable], key=lambda c: c.claim)
    others = [c for c in field if c.id != best.id]
    chosen = "itself" if best.id == candidates.own.id else shown(best.host, NAME_SHOWN)
    reason = compare(best, others[0]) if others else "nobody else is known to be there"
    parts = [f"election: {chosen} of {len(field)}: {reason}"]
    hurried = [c for c in usable if c.claim < best.claim]
    doubted = [c for c in candidates.known.values() if c.id in candidates.doubted_since]
    aside = [c for c in candidates.known.values() if candidates.aside_until.get(c.id, now) > now]
    for word, those in (("no answer yet from", hurried), ("does not count:", doubted), ("aside:", aside)):
        if those:
            names = sorted(shown(c.host, NAME_SHOWN) for c in those)[:HOSTS_SHOWN]
            parts.append(f"{word} {', '.join(names)}")
    return "; ".join(parts)


def compare(best: Candidate, other: Candidate) -> str:
    """Return what puts ``best`` before ``other``, by the order of the election."""
    name = shown(other.host, NAME_SHOWN)
    if best.claim > other.claim:
        return f"{name} would lead, but has not answered yet"
    if best.size != other.size:
        return f"leads a round of {best.size}, {name} {f'one of {other.size}' if other.size else 'none'}"
    if best.priority != other.priority:
        return f"priority {best.priority}, {name} has {other.priority}"
    if best.rank[1] != other.rank[1]:
        return f"its name comes before {name}"
    return f"its id {best.id[:8]} comes before {other.id[:8]}, the names are the same"


def describe_networks(networks: tuple[m.Attachment, ...], asked: str) -> str:
    """Return where a node can be reached, best first, and how its user chose that."""
    found = [f"{shown(n.interface)} {shown(n.address)}/{n.prefix}" for n in networks[:HOSTS_SHOWN]]
    return (", ".join(found) or "no network") + (f" as {shown(asked)} asks" if asked else "")


def describe_skills(skills: m.Skills) -> str:
    """Return what decides whether nodes can work together; what is not told is left out."""
    pairs = [
        ("nnodes", show_nodes(skills.min_nodes, skills.max_nodes) if skills.max_nodes else ""),
        ("processes", str(skills.processes or "")),
        ("torch", skills.torch),
        ("NCCL", skills.nccl),
        ("CUDA", skills.cuda),
        ("Python", skills.python),
        ("script", skills.script),
        ("digest", skills.digest),
    ]
    return ", ".join(f"{name} {shown(value)}" for name, value in pairs if value) or "no skills told"


def tag(step: object) -> str:
    """Return the name of a message, an event or an action."""
    return type(step).__name__.lower()


def because(reason: str) -> str:
    """Return the second half of a sentence, '' where no reason is told."""
    return f": {shown(reason, TEXT_SHOWN)}" if reason else ""


def shown(text: str, limit: int = 64) -> str:
    """Return ``text`` bounded, with every character that could steer a terminal written as its number."""
    safe = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text[:limit]
    )
    return safe + ("…" if len(text) > limit else "")
