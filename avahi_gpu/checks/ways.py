"""6xx, asked by ``doctor --cluster`` alone: every way between two nodes, in both directions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown, warn
from avahi_gpu.checks.survey import asked_nodes, cut, join, survey_check
from avahi_gpu.model import ClusterView, Passage, PortTrial, SurveyedNode

PORTS_OF_JOBS = "29400-29419, 29500-29999 and 32768-60999"
PURPOSES = {
    "control": "the first port by which a job's nodes agree",
    "store": "torch's store",
    "workers": "the last port for workers' stores",
    "high": "a high port, as gloo and NCCL take them",
    "doctor": "the doctor's own port",
}


@survey_check("AG622", slug="nodes-reach-each-other", says="every node reaches every other one")
def nodes_reach_each_other(view: ClusterView) -> Outcome:
    """torch connects each pair: where one way is shut the job hangs, whatever the others do."""
    shut = [p for p in view.passages if p.state == "blocked"]
    if not shut:
        tried = [p for p in view.passages if p.state != "unknown"]
        return ok(f"{len(tried)} ways tried") if tried else unknown("no way between two nodes could be tried")
    return error(
        f"{_pairs(shut)} {'gets' if len(shut) == 1 else 'get'} no connection at all",
        cut(f"{_way(p)}: {_seen(p)}" for p in shut),
        hint=f"look at the firewall of {join(dict.fromkeys(p.target for p in shut))} (nft list ruleset, ufw "
        "status), and whether the switch parts its ports (client isolation, VLAN)",
    )


@survey_check("AG623", slug="job-ports-open", says="every node reaches the ports of jobs on every other one")
def job_ports_open(view: ClusterView) -> Outcome:
    """gloo, NCCL and the agents' store take any high port; 29500 alone is not enough (C-07)."""
    partly = [p for p in view.passages if p.state == "ports"]
    if not partly:
        if not any(p.ports for p in view.passages):
            return unknown("no port of another node could be tried")
        return ok(*_asked_ports(view.passages))
    return error(
        f"{_pairs(partly)}: some ports are shut",
        cut(f"{_way(p)}: {_shut_ports(p)}" for p in partly),
        hint=f"open TCP {PORTS_OF_JOBS} between the nodes in the firewall of "
        f"{join(dict.fromkeys(p.target for p in partly))}: docs/reference/ports.md has the rules",
    )


@survey_check("AG624", slug="nodes-resolve-each-other", says="every node resolves every other one's name")
def nodes_resolve_each_other(view: ClusterView) -> Outcome:
    """What ssh and mpirun need. ``launch`` takes addresses, and does without."""
    own = {n.name for n in view.nodes if n.own}  # its names are other checks' business
    asked = {n.name for n in view.nodes if n.asked}
    tried = [p for p in view.passages if p.source not in own and p.target in asked]
    lost = [p for p in tried if p.state != "blocked" and False in (p.glibc.ok, p.avahi.ok)]
    if lost:
        sources = list(dict.fromkeys(p.source for p in lost))
        says = f"on {join(sources)} not every node's name resolves"
        lines = cut(f"{_way(p)}: {_lost_name(p)}" for p in lost)
        hint = f"run `avahi-gpu doctor` on {join(sources)}"
        # the usual modules of glibc for mDNS ask for IPv4 alone: in a LAN without it all else works
        six = {n.name for n in view.nodes if ":" in n.address}
        if all(p.target in six and p.avahi.ok for p in lost):
            return warn(says, lines, hint=f"put mdns_minimal in the place of mdns4_minimal; {hint}")
        return error(says, lines, hint=hint)
    if not any(p.glibc.ok or p.avahi.ok for p in tried):
        return skip("no other node could look up a name")
    return ok()


@survey_check(
    "AG627", slug="full-frames-pass", says="frames of full size pass between all nodes", needs=("AG620",)
)
def full_frames_pass(view: ClusterView) -> Outcome:
    """Small packets pass and large ones vanish: connections are made, and then hang for ever."""
    lost = [p for p in view.passages if p.echo.ok and p.frame.ok is False]
    if lost:
        return error(
            f"{_pairs(lost)}: large packets are lost, small ones arrive",
            cut(
                f"{_way(p)}: an echo of the MTU's size, not to be cut in pieces: {p.frame.words}"
                for p in lost
            ),
            hint="something between them takes smaller frames: set all nodes' MTU to what the switch takes",
        )
    if not any(p.frame.ok for p in view.passages):
        return skip("no echo could be sent")
    return ok()


@survey_check(
    "AG632", slug="addresses-on-link", says="every node's address is in a subnet of every other one"
)
def addresses_on_link(view: ClusterView) -> Outcome:
    """mDNS is heard by all who share a wire, whatever their subnets; connections are not."""
    asked = [n for n in asked_nodes(view) if n.networks and n.address]
    listed = [n for n in view.nodes if not n.asked and n.host and n.address]
    away = []
    for one in asked:
        nodes = [*asked, *listed] if one.own else asked
        own = [a for net in one.networks for a in net.addresses]
        subnets = [ipaddress.ip_network(f"{a.ip}/{a.prefix}", strict=False) for a in own]
        shown = join(map(str, subnets))
        away += [
            f"{one.name} ({shown}) has no subnet with {other.name} at {other.address}"
            for other in nodes
            if other is not one and not _shares(other, subnets)
        ]
    if away:
        return error(
            "not all nodes are in one subnet",
            cut(away),
            hint="give them addresses and prefixes of one subnet; one may have an old static address",
        )
    return ok() if asked else skip("no other node told its addresses")


# --- words ----------------------------------------------------------------------------------------------


def _way(passage: Passage) -> str:
    return f"{passage.source} → {passage.target}"


def _pairs(passages: Sequence[Passage]) -> str:
    shown = [f"from {p.source} to {p.target}" for p in passages[:3]]
    more = len(passages) - len(shown)
    return ", ".join(shown) + (f" and {more} more ways" if more else "")


def _seen(passage: Passage) -> str:
    words = ", ".join(dict.fromkeys(f"TCP {p.port}: {p.words}" for p in passage.ports if p.ok is False))
    echo = {True: "", False: "; ping: no answer", None: "; ping: not tried"}[passage.echo.ok]
    return words + echo


def _shut_ports(passage: Passage) -> str:
    shut = [p for p in passage.ports if p.ok is False]
    fine = [str(p.port) for p in passage.ports if p.ok]
    return ", ".join(map(_port, shut)) + (f"; open: {', '.join(fine)}" if fine else "; ping works")


def _port(trial: PortTrial) -> str:
    return f"TCP {trial.port} ({PURPOSES[trial.purpose]}): {trial.words}"


def _asked_ports(passages: Iterable[Passage]) -> list[str]:
    kinds = {t.purpose: t for p in passages for t in p.ports if t.ok}
    return [f"TCP {t.port if t.purpose != 'high' else 'high'}: {PURPOSES[t.purpose]}" for t in kinds.values()]


def _lost_name(passage: Passage) -> str:
    parts = [
        f"{who}: {trial.words or 'nothing'}"
        for who, trial in (("glibc", passage.glibc), ("Avahi", passage.avahi))
        if trial.ok is False
    ]
    return ", ".join(parts)


def _shares(node: SurveyedNode, subnets: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    """Return whether a node has an address in one of these subnets."""
    own = {node.address, *(a.ip for n in node.networks for a in n.addresses)}
    return any(ipaddress.ip_address(ip) in subnet for ip in own for subnet in subnets)
