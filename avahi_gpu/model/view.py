"""What ``doctor --cluster`` has seen: every node as it told of itself, and every way between two of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from avahi_gpu.model.words import DEFAULT_CLUSTER, Address, Versions

# why a node was not asked: it offers no doctor; its offer cannot be reached; it lacks or wants the cluster
# key; it talks in another way; it has no time; it broke off; ssh did not start one there
Silence = Literal["", "no-offer", "unreached", "key", "version", "busy", "fault", "ssh"]
Purpose = Literal["control", "store", "workers", "high", "doctor"]


@dataclass(frozen=True)
class Trial:
    """One attempt: True it worked, False it did not, None nobody could try. ``words``: what was seen."""

    ok: bool | None = None
    words: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class PortTrial:
    """A TCP connection to one port. ``purpose``: what the port is one of."""

    port: int
    purpose: Purpose
    ok: bool | None = None
    words: str = ""


@dataclass(frozen=True)
class Passage:
    """The way from one node to another one, both by name, tried from the first.

    ``frame``: an echo as large as both ends' MTU allow, forbidden to be cut in pieces.
    """

    source: str
    target: str
    glibc: Trial = field(default_factory=Trial)
    avahi: Trial = field(default_factory=Trial)
    echo: Trial = field(default_factory=Trial)
    frame: Trial = field(default_factory=Trial)
    ports: tuple[PortTrial, ...] = ()

    @property
    def state(self) -> Literal["ok", "names", "frames", "ports", "blocked", "unknown"]:
        """The worst that was seen, in one word. ``blocked``: nothing got through."""
        tried = [p.ok for p in self.ports if p.ok is not None]
        if not tried:
            return "unknown"
        if False in tried:
            return "ports" if True in tried or self.echo.ok else "blocked"
        if self.frame.ok is False and self.echo.ok:
            return "frames"
        return "names" if False in (self.glibc.ok, self.avahi.ok) else "ok"


@dataclass(frozen=True)
class Attached:
    """One network that a node is on."""

    interface: str
    mtu: int
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class SurveyedNode:
    """A node. ``name`` is unique in the view; ``address`` is where the others were told to reach it.

    ``silence`` '': it answered; else why it did not, in ``why`` for people. ``clock_s``: how far its clock is
    before ours, give or take ``clock_error_s``; None where it was not asked.
    """

    name: str
    host: str = ""  # gpu-node-2.local; '' without Avahi
    address: str = ""
    own: bool = False
    silence: Silence = ""
    why: str = ""
    hostname: str = ""  # the kernel's
    id: str = ""  # of the machine: a hash of its machine-id
    cluster: str = DEFAULT_CLUSTER
    networks: tuple[Attached, ...] = ()
    gpus: int = 0
    gpu: str = ""
    versions: Versions = field(default_factory=Versions)
    clock_s: float | None = None
    clock_error_s: float = 0.0

    @property
    def asked(self) -> bool:
        return not self.silence


@dataclass(frozen=True)
class ClusterView:
    """All nodes, this machine first, and the ways between them."""

    nodes: tuple[SurveyedNode, ...]
    passages: tuple[Passage, ...] = ()
    elsewhere: tuple[str, ...] = ()  # nodes of other clusters, which were left alone
    with_key: bool = False  # this machine holds a cluster key
    trouble: str = ""  # why nobody could be looked for, '' where somebody was
