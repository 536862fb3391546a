"""The LAN as a picture (SVG): each network of this machine is a rail, each node a card on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from avahi_gpu.model import DOMAIN, Interface, Job, Peer
from avahi_gpu.render.card import CARD_WIDTH, PILLS_MAX, Part, card, card_height, describe_card
from avahi_gpu.render.drawing import JOB_COLOURS, box, document, fit, line, words
from avahi_gpu.render.text import printable

GAP, MARGIN = 22.0, 28.0
TRUNK = 18.0  # the cards stand so far to the right of it
RAIL_ABOVE = 30.0  # between a rail and its cards
ROW_GAP = 24.0
HEAD, NETWORK_HEAD = 66.0, 30.0  # the title; the line that tells of a network
MIN_WIDTH = 560.0  # the title and a network's words want so much
JOBS_MAX = 12  # told below the picture
CARDS_MAX = 200  # beyond that it is no picture any more
ROUND_END = ' stroke-linecap="round"'


def draw_lan(peers: Sequence[Peer], jobs: Sequence[Job], interfaces: Sequence[Interface]) -> str:
    """Return the picture of the nodes that this machine sees, with the jobs that run on them."""
    return Plan(peers, jobs, interfaces).draw()


class Plan:
    """The picture as it grows downwards from ``y``."""

    def __init__(self, peers: Sequence[Peer], jobs: Sequence[Job], interfaces: Sequence[Interface]) -> None:
        self.peers, self.jobs = peers, jobs
        self.interfaces = {i.name: i for i in interfaces}
        self.networks = _networks(peers[:CARDS_MAX])
        self.colours = [JOB_COLOURS[n % len(JOB_COLOURS)] for n in range(len(jobs))]
        self.own_cluster = next((p.cluster for p in peers if p.self), "")
        self.columns = _columns(max((len(some) for _, some in self.networks), default=1))
        cards = self.columns * (CARD_WIDTH + GAP) - GAP
        self.width = max(MIN_WIDTH, 2 * MARGIN + TRUNK + cards)
        self.parts: list[str] = []
        self.y = HEAD

    def draw(self) -> str:
        """Return the whole of it."""
        title = _title(self.peers, self.jobs)
        self.parts.append(words(MARGIN, 42, title, size=20, bold=True))
        for name, some in self.networks:
            self._draw_network(name, some)
        if not self.peers:
            self.parts.append(words(MARGIN, self.y + 12, "No node is seen on this LAN.", size=14, ink="soft"))
            self.y += 36
        self._draw_legend()
        return document(self.width, self.y + MARGIN - 8, title, describe(self.peers, self.jobs), self.parts)

    def _draw_network(self, name: str, peers: Sequence[Peer]) -> None:
        says = _network_says(name, self.interfaces.get(name))
        says = fit(says, self.width - 2 * MARGIN, 13)
        self.parts.append(words(MARGIN, self.y + 14, says, size=13, ink="soft"))
        self.y += NETWORK_HEAD
        rows = [peers[at : at + self.columns] for at in range(0, len(peers), self.columns)]
        heights = [card_height(max(min(len(self._parts_of(p)), PILLS_MAX) for p in row)) for row in rows]
        steps = [RAIL_ABOVE + height + ROW_GAP for height in heights]
        self.parts.append(box(MARGIN - 5, self.y - 5, 10, 10, fill="rail", round=3))
        if len(rows) > 1:
            end = self.y + sum(steps[:-1])
            self.parts.append(line(MARGIN, self.y, MARGIN, end, stroke="rail", width=3, more=ROUND_END))
        for row, height, step in zip(rows, heights, steps, strict=True):
            self._draw_row(row, height)
            self.y += step

    def _draw_row(self, row: Sequence[Peer], height: float) -> None:
        left = [MARGIN + TRUNK + n * (CARD_WIDTH + GAP) for n in range(len(row))]
        end = left[-1] + CARD_WIDTH / 2
        self.parts.append(line(MARGIN, self.y, end, self.y, stroke="rail", width=3, more=ROUND_END))
        for x, peer in zip(left, row, strict=True):
            self.parts += self._drop(x + CARD_WIDTH / 2, peer)
            foreign = peer.cluster if self.own_cluster not in ("", peer.cluster) else ""
            place = (x, self.y + RAIL_ABOVE)
            self.parts.append(card(place, height, peer, self._parts_of(peer), foreign))

    def _drop(self, x: float, peer: Peer) -> Iterable[str]:
        """Yield the line from the rail to a card; broken where nobody answers."""
        y = self.y
        if peer.alive is not False and peer.address is not None:
            yield line(x, y, x, y + RAIL_ABOVE, stroke="rail", width=3)
            interface = self.interfaces.get(peer.interface or "")
            if peer.self and interface is not None and interface.speed_mbit:
                yield words(x + 8, y + 20, speed(interface.speed_mbit), size=11, ink="soft")
            return
        yield line(x, y, x, y + RAIL_ABOVE, stroke="bad", more=' stroke-dasharray="4 4"')
        middle = y + RAIL_ABOVE / 2
        for way in (-6, 6):
            yield line(x - 6, middle - way, x + 6, middle + way, stroke="bad", width=3)

    def _parts_of(self, peer: Peer) -> list[Part]:
        """Return what a node does in which jobs, by the name or the address that both records tell."""
        host = peer.host.rstrip(".").removesuffix("." + DOMAIN)
        return [
            Part(printable(job.name, 40), colour, node, leads=node == job.leader, waits=node in job.waiting)
            for job, colour in zip(self.jobs, self.colours, strict=True)
            for node in job.nodes
            if node.host == (host or None) or node.address == peer.address
        ]

    def _draw_legend(self) -> None:
        said = [(_job_says(j), colour) for j, colour in zip(self.jobs, self.colours, strict=True)]
        said = said[:JOBS_MAX]
        if len(self.jobs) > JOBS_MAX:
            said.append((f"and {_count(len(self.jobs) - JOBS_MAX, 'job')} more", "soft"))
        if len(self.peers) > CARDS_MAX:
            said.append((f"{_count(len(self.peers) - CARDS_MAX, 'node')} more are not drawn", "soft"))
        for text, colour in said:
            self.parts.append(box(MARGIN, self.y + 1, 12, 12, fill=colour, round=3))
            shown = fit(text, self.width - 2 * MARGIN - 20, 13)
            self.parts.append(words(MARGIN + 20, self.y + 12, shown, size=13))
            self.y += 22


def _columns(count: int) -> int:
    return count if count <= 3 else 2 if count == 4 else 3 if count <= 9 else 4 if count <= 16 else 5


def _networks(peers: Sequence[Peer]) -> list[tuple[str, list[Peer]]]:
    """Return the nodes by the interface of this machine that they are seen on; '' those without address."""
    found: dict[str, list[Peer]] = {}
    for peer in peers:
        found.setdefault(peer.interface or "", []).append(peer)
    return sorted(found.items(), key=lambda pair: (pair[0] == "", pair[0]))


def _network_says(name: str, interface: Interface | None) -> str:
    if not name:
        return "listed, but at no address that this machine knows"
    told = [f"{printable(name, 15)} of this machine"]
    if interface is not None:
        told.append(interface.link)
        told += [speed(interface.speed_mbit)] if interface.speed_mbit else []
        address = interface.first
        told += [f"{address.ip}/{address.prefix}"] if address is not None else []
    return " · ".join(told)


def speed(mbit: int) -> str:
    """Return ``100 Mbit/s``, ``2.5 Gbit/s``."""
    return f"{mbit} Mbit/s" if mbit < 1000 else f"{mbit / 1000:g} Gbit/s"


# --- in words --------------------------------------------------------------------------------------------


def describe(peers: Sequence[Peer], jobs: Sequence[Job]) -> str:
    """Return in words what the picture shows."""
    nodes = [describe_card(p) for p in peers[:CARDS_MAX]]
    told = f"Nodes: {'; '.join(nodes)}." if nodes else "No node."
    return " ".join([told, *(f"{_job_says(job)}." for job in jobs[:JOBS_MAX])])


def _title(peers: Sequence[Peer], jobs: Sequence[Job]) -> str:
    gpus = sum(p.gpus for p in peers if p.alive is not False)
    running = sum(job.running for job in jobs)
    told = [_count(len(peers), "node"), _count(gpus, "GPU")]
    return ", ".join([*told, *([f"{_count(running, 'job')} running"] if running else [])])


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _job_says(job: Job) -> str:
    name = printable(job.name, 40)
    if not job.running:
        wants = f", wants {job.wants} more" if job.wants else ""
        return f"{name} waits with {_count(len(job.waiting), 'node')}{wants}"
    leader = printable(job.leader_host, 63) or "nobody known"
    return f"{name}: round {job.round} on {_count(len(job.members), 'node')}, leader {leader}"
