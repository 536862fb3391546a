"""6xx, asked by ``doctor --cluster`` alone: what nodes should share, and what each should have alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from avahi_gpu.checks import fixes
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, warn
from avahi_gpu.checks.survey import asked_nodes, join, survey_check
from avahi_gpu.model import ClusterView, SurveyedNode

CLOCK_S = 1.0  # beyond that logs, certificates and file times of two nodes no longer agree
DECIDING = (("torch", "torch"), ("NCCL", "nccl"), ("CUDA", "cuda"), ("Python", "python"))
TOLD = (*DECIDING, ("driver", "driver"))


@survey_check("AG625", slug="same-versions", says="all nodes have the same torch, NCCL, CUDA and Python")
def same_versions(view: ClusterView) -> Outcome:
    """Major and minor numbers decide, as when a job begins (rendezvous/terms.py)."""
    nodes = asked_nodes(view)
    apart, lesser = [], []
    for what, key in TOLD:
        told = {n.name: getattr(n.versions, key) for n in nodes if getattr(n.versions, key)}
        line = f"{what}: " + ", ".join(f"{name} has {version}" for name, version in told.items())
        releases = {".".join(v.partition("+")[0].split(".")[:2]) for v in told.values()}
        if len(releases) > 1 and what != "driver":
            apart.append((what, line))
        elif len(set(told.values())) > 1:
            lesser.append((what, line))
    if apart:
        return error(
            f"the nodes have different versions of {join(what for what, _ in apart)}",
            [line for _, line in apart + lesser],
            hint="install the same on all of them; launch refuses to mix them, unless --allow-skew is given",
        )
    if lesser:
        return info(
            f"the nodes' versions of {join(what for what, _ in lesser)} differ a little",
            [line for _, line in lesser],
        )
    without = [n.name for n in nodes if not n.versions.torch]
    if without and len(without) < len(nodes):
        return warn(
            f"no torch is found on {join(without)}",
            [f"{n.name} has torch {n.versions.torch}" for n in nodes if n.versions.torch],
            hint="start the doctor there in the environment that trains, or give it --python PATH",
        )
    return ok(*(f"{n.name}: torch {n.versions.torch}" for n in nodes if n.versions.torch))


@survey_check("AG626", slug="same-mtu", says="all nodes send frames of the same size")
def same_mtu(view: ClusterView) -> Outcome:
    """Works as long as both ends say their size; a switch in between says nothing (NVIDIA/nccl#1957)."""
    told = {n.name: _mtu(n) for n in asked_nodes(view) if _mtu(n)}
    if len(set(told.values())) > 1:
        return warn(
            "the nodes have different MTUs",
            [f"{name}: {mtu}" for name, mtu in told.items()],
            hint="give the LAN's interface the same MTU on all of them: ip link set dev INTERFACE mtu 1500",
        )
    return ok(*(str(mtu) for mtu in dict.fromkeys(told.values()))) if told else skip("no node told its MTU")


@survey_check("AG628", slug="clocks-agree", says="the nodes' clocks agree within a second")
def clocks_agree(view: ClusterView) -> Outcome:
    """Jobs do without: no clock decides anything there. Logs, make, certificates and tokens do not."""
    told = [(n, n.clock_s) for n in asked_nodes(view) if n.clock_s is not None]
    if len(told) < 2:
        return skip("no other clock was read")
    # which one is right nobody knows: the middle one is the likeliest
    middle = sorted(offset for _, offset in told)[(len(told) - 1) // 2]
    wrong = [(n, s) for n, s in told if abs(s - middle) - n.clock_error_s > CLOCK_S]
    lines = [f"{n.name}: {s - middle:+.3f} s, give or take {n.clock_error_s:.3f} s" for n, s in told]
    if wrong:
        names = join(n.name for n, _ in wrong)
        return warn(
            f"the clock of {names} is off"
            if len(told) > 2
            else f"the clocks of {join(n.name for n, _ in told)} differ",
            lines,
            hint="let NTP set it: timedatectl set-ntp true, or chronyd",
        )
    return ok(*lines)


@survey_check("AG629", slug="names-differ", says="every node has a host name of its own")
def names_differ(view: ClusterView) -> Outcome:
    """Avahi renames the second one, so that it is published as another name than it calls itself."""
    same = _shared(asked_nodes(view), lambda n: n.hostname.lower().partition(".")[0])
    if same:
        return warn(
            f"{join(n.name for nodes in same.values() for n in nodes)} call themselves by the same name",
            [f"{name}: {join(f'{n.name} at {n.address}' for n in nodes)}" for name, nodes in same.items()],
            hint=f"on all but one, as root: {fixes.NEW_NAME}",
        )
    return ok()


@survey_check("AG630", slug="machine-ids-differ", says="every node has a machine id of its own")
def machine_ids_differ(view: ClusterView) -> Outcome:
    """Cloned disks share it; DHCP servers and journals then take two machines for one."""
    same = _shared(asked_nodes(view), lambda n: n.id)
    if same:
        return warn(
            f"{join(n.name for nodes in same.values() for n in nodes)} have the same machine id",
            [join(f"{n.name} at {n.address}" for n in nodes) for nodes in same.values()],
            hint=f"on all but one, as root: {fixes.NEW_MACHINE_ID}; then restart it",
        )
    return ok()


@survey_check("AG631", slug="same-gpus", says="all nodes have as many GPUs")
def same_gpus(view: ClusterView) -> Outcome:
    """launch and torchrun take what each has; accelerate and others want the same number (C-15)."""
    nodes = asked_nodes(view)
    lines = [f"{n.name}: {n.gpus}{f' × {n.gpu}' if n.gpu else ''}" for n in nodes]
    if len({n.gpus for n in nodes}) > 1:
        return info("the nodes have different numbers of GPUs", lines)
    if len({n.gpu for n in nodes}) > 1:
        return info("the nodes have different GPUs: the slowest sets the pace", lines)
    return ok(*lines)


def _mtu(node: SurveyedNode) -> int:
    return next((n.mtu for n in node.networks if any(a.ip == node.address for a in n.addresses)), 0)


def _shared(
    nodes: Iterable[SurveyedNode], key: Callable[[SurveyedNode], str]
) -> dict[str, list[SurveyedNode]]:
    by_key: dict[str, list[SurveyedNode]] = defaultdict(list)
    for node in nodes:
        if key(node) and key(node) != "localhost":
            by_key[key(node)].append(node)
    return {k: some for k, some in by_key.items() if len(some) > 1}
