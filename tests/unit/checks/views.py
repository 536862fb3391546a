"""Three nodes in good health as ``doctor --cluster`` sees them; tests break one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from avahi_gpu.model import (
    Address,
    Attached,
    ClusterView,
    Passage,
    PortTrial,
    SurveyedNode,
    Trial,
    Versions,
)

YES = Trial(True)
PORTS = (
    PortTrial(29400, "control", True),
    PortTrial(29500, "store", True),
    PortTrial(29999, "workers", True),
    PortTrial(41000, "high", True),
)


def node(number: int) -> SurveyedNode:
    address = f"10.0.0.{number}"
    return SurveyedNode(
        name=f"n{number}",
        host=f"n{number}.local",
        address=address,
        own=number == 1,
        hostname=f"n{number}",
        id=f"{number:012x}",
        networks=(Attached("eth0", 1500, (Address(address, 24, 4, "global"),)),),
        gpus=2,
        gpu="RTX",
        versions=Versions("3.11.2", "2.9.0+cu128", "12.8", "2.27.3", "570.1"),
        clock_s=0.0,
    )


def view_of(count: int = 3) -> ClusterView:
    nodes = tuple(node(n) for n in range(1, count + 1))
    ways = [Passage(a.name, b.name, YES, YES, YES, YES, PORTS) for a in nodes for b in nodes if a is not b]
    return ClusterView(nodes, tuple(ways))


def with_node(view: ClusterView, name: str, **changed: object) -> ClusterView:
    """Return the view with one node changed."""
    nodes = tuple(replace(n, **changed) if n.name == name else n for n in view.nodes)  # type: ignore[arg-type]
    return replace(view, nodes=nodes)


def with_way(
    view: ClusterView, source: str, target: str, change: Callable[[Passage], Passage]
) -> ClusterView:
    """Return the view with one way changed."""
    ways = tuple(change(p) if (p.source, p.target) == (source, target) else p for p in view.passages)
    return replace(view, passages=ways)


def without_doctor(view: ClusterView, name: str, silence: str = "no-offer") -> ClusterView:
    """Return the view where a node did not answer."""
    ways = tuple(p for p in view.passages if name not in (p.source, p.target))
    return replace(with_node(view, name, silence=silence, why="nobody there"), passages=ways)


def shut(*purposes: str, words: str = "no answer") -> Callable[[Passage], Passage]:
    """Return what shuts the ports of these purposes."""

    def change(way: Passage) -> Passage:
        ports = tuple(replace(p, ok=False, words=words) if p.purpose in purposes else p for p in way.ports)
        return replace(way, ports=ports)

    return change
