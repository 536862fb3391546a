"""One node as a card of a picture: name, address, whether it answers, its GPUs, its part in jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from avahi_gpu.model import JobNode, Peer
from avahi_gpu.render.drawing import box, fit, group, line, paint, words
from avahi_gpu.render.table import describe_memory
from avahi_gpu.render.text import printable

CARD_WIDTH, CARD_HEIGHT = 224.0, 114.0  # without jobs
PILL_HEIGHT, PILL_STEP = 20.0, 24.0
INSET = 14.0  # of the words
CHIPS_MAX = 8  # GPUs drawn one by one; of more, one stands for all
CHIP_STEP = 11.0
PILLS_MAX = 3  # jobs shown on one node
BADGE = 92.0
BOLDER = 1.13  # so much wider is bold text
THIN = ' stroke-width="1.5"'


@dataclass(frozen=True)
class Part:
    """A node's part in one job."""

    job: str
    colour: str
    node: JobNode
    leads: bool
    waits: bool

    @property
    def says(self) -> str:
        if self.waits:
            return f"{self.job}: waits"
        if self.leads:
            return f"★ {self.job}: leads"
        rank = self.node.part.rank
        return self.job if rank is None else f"{self.job}: rank {rank}"


def card_height(jobs: int) -> float:
    """Return the height of a card with so many jobs on it."""
    return CARD_HEIGHT + (jobs * PILL_STEP + 4 if jobs else 0)


def card(place: tuple[float, float], height: float, peer: Peer, parts: Sequence[Part], foreign: str) -> str:
    """Return a card at ``place``. ``foreign``: the node's cluster where that is another than ours."""
    x, y = place
    left, inner, right = x + INSET, CARD_WIDTH - 2 * INSET, x + CARD_WIDTH - INSET
    state, ink = _state(peer)
    dead = peer.alive is False or peer.address is None
    edge = "bad" if dead else "blue" if peer.self else "edge"
    dashes = THIN + (' stroke-dasharray="5 4"' if dead else "")
    drawn = [
        box(x, y, CARD_WIDTH, height, fill="card", stroke=edge, round=10, more=dashes),
        words(
            left,
            y + 25,
            fit(peer.name, inner, 15 * BOLDER),
            size=15,
            bold=True,
            ink="soft" if dead else "ink",
        ),
        words(left, y + 43, fit(peer.address or "no address", inner, 12), ink="soft"),
        f'<circle cx="{left + 4:g}" cy="{y + 57:g}" r="4"{paint(ink)}/>',
        words(left + 14, y + 61, state, ink=ink),
    ]
    if peer.self:
        drawn += _badge(right, y + 48, "this machine", "blue")
    elif foreign:
        drawn += _badge(right, y + 48, fit(f"in {foreign}", BADGE - 12, 11), "warn")
    drawn += _gpus(left, y + 70, inner, peer, ink="soft" if dead else "good")
    for number, part in enumerate(parts[:PILLS_MAX]):
        more = len(parts) - PILLS_MAX if number == PILLS_MAX - 1 else 0
        says = part.says + (f" and {more} more" if more > 0 else "")
        top = y + CARD_HEIGHT + number * PILL_STEP
        drawn.append(box(left, top, inner, PILL_HEIGHT, fill="card", stroke=part.colour, round=10, more=THIN))
        drawn.append(words(left + 10, top + 14, fit(says, inner - 18, 12), ink=part.colour, bold=part.leads))
    return group(drawn, ", ".join([describe_card(peer), *(part.says for part in parts)]))


def describe_card(peer: Peer) -> str:
    """Return in words what a card shows of a node itself."""
    gpus = f"{peer.gpus} × {_model(peer) or 'GPU'}" if peer.gpus else "no GPU"
    return f"{printable(peer.name, 63)} at {peer.address or 'no address'}, {_state(peer)[0]}, {gpus}"


def _badge(right: float, y: float, text: str, ink: str) -> Iterator[str]:
    yield box(right - BADGE, y, BADGE, 18, fill="own" if ink == "blue" else "paper", round=9)
    yield words(right - BADGE / 2, y + 13, text, size=11, ink=ink, anchor="middle")


def _state(peer: Peer) -> tuple[str, str]:
    """Return what is said of whether a node answers, and its colour."""
    if peer.address is None:
        return "not resolved", "bad"
    return {True: ("answers", "good"), False: ("no answer", "bad"), None: ("unknown", "warn")}[peer.alive]


def _gpus(x: float, y: float, width: float, peer: Peer, ink: str) -> Iterator[str]:
    """Yield a small slab for each GPU, their memory, and below them what they are."""
    if not peer.gpus:
        yield words(x, y + 14, "no GPU" if peer.address else "", ink="soft")
        return
    drawn = peer.gpus if peer.gpus <= CHIPS_MAX else 1
    for number in range(drawn):
        left = x + number * CHIP_STEP
        yield box(left, y + 2, 8, 15, fill="chip", stroke=ink, round=2)
        for at in (6, 9):
            yield line(left + 2.5, y + at, left + 5.5, y + at, stroke=ink, width=1)
    after = drawn * CHIP_STEP + 6
    memory = describe_memory(peer)
    if peer.gpus > CHIPS_MAX and "×" not in memory:
        memory = f"{peer.gpus} × {memory or 'GPU'}"
    yield words(x + after, y + 14, fit(memory, width - after, 12))
    yield words(x, y + 32, fit(_model(peer), width, 12), ink="soft")


def _model(peer: Peer) -> str:
    """Return what the GPUs are, without what every card's name begins with."""
    return printable(peer.gpu).replace("NVIDIA ", "").replace("GeForce ", "")
