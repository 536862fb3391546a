"""6xx: who the other nodes say they are: ids, names, clusters, versions, GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from avahi_gpu.checks import fixes
from avahi_gpu.checks.names import is_alternative
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, warn
from avahi_gpu.checks.peers import (
    is_leftover,
    join,
    names_of,
    one_each,
    own_addresses,
    own_cluster,
    peers_of_cluster,
    present,
    resolved,
    verb,
)
from avahi_gpu.checks.registry import check
from avahi_gpu.files import txt
from avahi_gpu.model import DEFAULT_PORT, Facts, PeerFacts

NODES_AT_MOST = 10  # what the project is made and tested for
LIBRARIES = (("CUDA", "cuda"), ("NCCL", "nccl"), ("Python", "python"))  # what launch compares beside torch


@check(
    "AG606",
    slug="unique-ids",
    area="cluster",
    says="every node has an id of its own",
    needs=("AG203", "AG304", "AG306"),
)
def unique_ids(facts: Facts) -> Outcome:
    """Cloned disks share /etc/machine-id, by which DHCP servers too tell machines apart."""
    owners: dict[str, set[str]] = defaultdict(set)
    for peer in one_each(facts.peers or ()):
        if peer.id and peer.alive and not is_leftover(peer, facts):
            owners[peer.id].add(peer.name)
    if facts.node_id in owners:
        owners[facts.node_id].add(f"{_own_name(facts)} (this machine)")
    shared = {id: sorted(names) for id, names in owners.items() if len(names) > 1}
    if shared:
        return error(
            f"{join(sorted(n for names in shared.values() for n in names))} have the same machine id",
            [f"{id}: {', '.join(names)}" for id, names in sorted(shared.items())],
            hint=f"on all but one, as root: {fixes.NEW_MACHINE_ID}; then restart it "
            "(cloned disks share the id, and a DHCP server may give both one address)",
        )
    return ok() if owners else skip("no other node told its id")


@check(
    "AG607",
    slug="same-torch",
    area="cluster",
    says="all nodes run the same torch",
    needs=("AG203", "AG304"),
)
def same_torch(facts: Facts) -> Outcome:
    """``launch`` and the backend refuse nodes whose torch differs in major or minor version."""
    own, told = _versions(facts, "torch")
    if not own or not told:
        return skip("fewer than two nodes told which torch they have")
    lines = _table(own, told)
    differ = [name for name, version in told.items() if _release(version) != _release(own)]
    if differ:
        return error(
            _odd(differ, told, "torch"),
            lines,
            hint="a job of these nodes is refused: install the same version on all of them, "
            "then run avahi-gpu setup there again",
        )
    if any(version != own for version in told.values()):
        return info("the nodes' torch differs in its last number only", lines)
    return ok(*lines)


@check(
    "AG610",
    slug="peers-tell",
    area="cluster",
    says="every node tells its id and the usual port",
    needs=("AG203", "AG304"),
)
def peers_tell(facts: Facts) -> Outcome:
    """A service file that was written by hand, or that another program uses for the same type."""
    peers = resolved(facts)
    if not peers:
        return skip("no other node has an address")
    mute = [p for p in peers if not p.id]
    portless = [p for p in peers if p.port == 0]
    if mute or portless:
        named = [p for p in peers if not p.id or p.port == 0]
        return warn(
            f"{names_of(named)} {verb(named, 'does', 'do')} not publish what avahi-gpu setup writes",
            [f"{p.name}: its TXT record has no node id" for p in mute]
            + [f"{p.name}: port 0" for p in portless],
            hint="run avahi-gpu setup there: its service file was written by hand, or by another program",
        )
    other = [p for p in peers if p.port != DEFAULT_PORT]
    if other:
        return info(
            f"{names_of(other)} {verb(other, 'publishes', 'publish')} another port than {DEFAULT_PORT}",
            [f"{p.name}: port {p.port}" for p in other],
        )
    return ok()


@check(
    "AG611",
    slug="unique-names",
    area="cluster",
    says="every node has a host name of its own",
    needs=("AG107", "AG203", "AG304", "AG606"),
)
def unique_names(facts: Facts) -> Outcome:
    """Avahi renames the second of two machines of one name; their kernels, and so torch, still say the same.

    A node tells its kernel's name in its TXT record, and is published under the one that Avahi found free.
    """
    peers = one_each(p for p in present(facts) if not is_leftover(p, facts))
    if not peers:
        return skip("no other node answers")
    claims: dict[str, list[str]] = defaultdict(list)
    for claim in {_label(facts.hostname), _label(facts.daemon.host_name)} - {""}:
        claims[claim].append("this machine")
    for peer in peers:
        label = _label(peer.host)
        # another name that Avahi would not have made of it is one that setup wrote before a change
        told = peer.calls_itself.lower() if is_alternative(peer.calls_itself, label) else ""
        for claim in {told, label} - {""}:
            claims[claim].append(peer.name)
    renamed = [p for p in peers if p.calls_itself and p.calls_itself.lower() != _label(p.host)]
    evidence = [f"{p.name}: its host name is {p.calls_itself}, published is {p.host}" for p in renamed]
    taken = {name: who for name, who in claims.items() if len(who) > 1}
    if taken:
        return error(
            "; ".join(f"{join(sorted(who))} have the same host name {name}" for name, who in taken.items()),
            evidence,
            hint=f"on all but one, as root: {fixes.NEW_NAME}",
        )
    counted = [p for p in renamed if is_alternative(p.calls_itself, _label(p.host))]
    if counted:
        return warn(
            f"{names_of(counted)} {verb(counted, 'was', 'were')} renamed by Avahi",
            evidence,
            hint="run avahi-gpu doctor there: its own name was taken when its avahi-daemon started",
        )
    if renamed:
        return info(f"{names_of(renamed)} had another host name when setup ran there", evidence)
    return ok()


@check(
    "AG612",
    slug="same-libraries",
    area="cluster",
    says="all nodes have the same CUDA, NCCL and Python",
    needs=("AG203", "AG304"),
)
def same_libraries(facts: Facts) -> Outcome:
    """What ``launch`` refuses beside another torch; another torch mostly brings other libraries with it."""
    says, evidence, compared = [], [], False
    for title, key in LIBRARIES:
        own, told = _versions(facts, key, same_torch_only=True)
        if not own or not told:
            continue
        compared = True
        differ = [name for name, version in told.items() if _release(version) != _release(own)]
        if differ:
            says.append(_odd(differ, told, title))
            evidence += [f"{title}: {line}" for line in _table(own, told)]
    if says:
        return error(
            "; ".join(says),
            evidence,
            hint="a job of these nodes is refused: install the same environment on all of them, "
            "then run avahi-gpu setup there again",
        )
    own, told = _versions(facts, "driver")
    if own and any(_release(version) != _release(own) for version in told.values()):
        return info("the nodes have different GPU drivers", _table(own, told))
    return ok() if compared else skip("fewer than two nodes told their versions")


@check(
    "AG613",
    slug="same-cluster",
    area="cluster",
    says="the other nodes are of this machine's cluster",
    needs=("AG203", "AG304"),
)
def same_cluster(facts: Facts) -> Outcome:
    """Nodes of different clusters see each other and never work together: cluster= in /etc/avahi-gpu."""
    cluster = own_cluster(facts)
    if cluster is None or not facts.peers:
        return skip("this machine publishes no cluster" if cluster is None else "no other node is seen")
    others = [p for p in facts.peers if p.cluster != cluster]
    lines = [f"this machine: {cluster}", *(f"{p.name}: {p.cluster}" for p in others)]
    hint = "nodes of one cluster give the same name: avahi-gpu setup --cluster NAME"
    if others and facts.wanted_peers:
        return error(f"{names_of(others)} {verb(others, 'is', 'are')} of another cluster", lines, hint=hint)
    if others and not peers_of_cluster(facts):
        return warn(f"no other node of the cluster {cluster} is seen", lines, hint=hint)
    if others:
        return info(f"{names_of(others)} {verb(others, 'is', 'are')} of another cluster", lines)
    return ok(cluster)


@check(
    "AG614",
    slug="gpu-counts",
    area="cluster",
    says="all nodes have as many GPUs",
    needs=("AG203", "AG304"),
)
def same_gpus(facts: Facts) -> Outcome:
    """``torchrun`` and ``launch`` cope; accelerate divides the total by the number of machines."""
    told = {p.name: p.gpus for p in present(facts) if p.id}
    if facts.gpus is None or not told:
        return skip("fewer than two nodes told their GPUs")
    lines = [f"this machine: {len(facts.gpus)}", *(f"{name}: {number}" for name, number in told.items())]
    if {*told.values(), len(facts.gpus)} != {len(facts.gpus)}:
        return info(
            "the nodes have different numbers of GPUs",
            lines,
            hint="avahi-gpu launch and torchrun start as many workers as each has; accelerate does not",
        )
    return ok(*lines)


@check(
    "AG615",
    slug="cluster-size",
    area="cluster",
    says=f"the cluster has at most {NODES_AT_MOST} nodes",
    needs=("AG203", "AG304"),
)
def cluster_size(facts: Facts) -> Outcome:
    """More may work; nobody has tried it."""
    size = 1 + len(resolved(facts))
    if size > NODES_AT_MOST:
        return info(f"the cluster has {size} nodes; avahi-gpu is made for {NODES_AT_MOST}")
    return ok(f"{size} nodes") if facts.peers else skip("no other node is seen")


@check(
    "AG616",
    slug="unique-addresses",
    area="cluster",
    says="every address belongs to one machine",
    needs=("AG203", "AG304"),
)
def unique_addresses(facts: Facts) -> Outcome:
    """Two machines that were given the same address by hand, or by two DHCP servers."""
    own = own_addresses(facts)
    owners: dict[str, list[PeerFacts]] = defaultdict(list)
    for peer in resolved(facts):
        if peer.address:
            owners[peer.address].append(peer)
    shared = {
        address: ps for address, ps in owners.items() if len({p.host for p in ps}) > 1 or address in own
    }
    # our own card does not answer us: one that does is another machine's
    fought = {
        address: ps for address, ps in shared.items() if len(ps[0].cards or ()) > (0 if address in own else 1)
    }
    lines = [f"{address}: {_claimants(ps, address in own)}" for address, ps in (fought or shared).items()]
    if fought:
        return error(
            f"two machines have the address {join(fought)}",
            [
                *lines,
                *(f"{a}: network cards {', '.join(ps[0].cards or ())} answer" for a, ps in fought.items()),
            ],
            hint="give one of them another address; look for a static address inside the DHCP server's range",
        )
    if shared:
        return info("several names lead to one address", lines)
    return ok() if owners else skip("no other node has an address")


def _claimants(peers: Iterable[PeerFacts], own: bool) -> str:
    return ", ".join([*(["this machine"] if own else []), *(p.name for p in peers)])


def _versions(facts: Facts, key: str, *, same_torch_only: bool = False) -> tuple[str, dict[str, str]]:
    """Return this machine's version and those that other nodes told, by name.

    Where this Python has none, what the machine's own record says counts: the doctor may live elsewhere.
    """
    published = [txt.read(s.txt).versions for s in facts.own_service or ()]
    mine = [facts.versions, *published] if facts.versions.torch else [*published, facts.versions]
    own = next((str(getattr(v, key)) for v in mine if getattr(v, key)), "")
    torch = next((v.torch for v in mine if v.torch), "")
    told = {
        p.name: str(getattr(p.versions, key))
        for p in peers_of_cluster(facts)
        if getattr(p.versions, key)
        and not is_leftover(p, facts)
        and (not same_torch_only or not p.versions.torch or _release(p.versions.torch) == _release(torch))
    }
    return own, told


def _odd(differ: list[str], told: dict[str, str], title: str) -> str:
    """Say who differs: this machine, where all the others agree with each other."""
    if len(differ) == len(told) > 1 and len({_release(version) for version in told.values()}) == 1:
        return f"this machine has another {title} than the other nodes"
    return f"{join(sorted(differ))} {'has' if len(differ) == 1 else 'have'} another {title} than this machine"


def _table(own: str, told: dict[str, str]) -> list[str]:
    return [f"this machine: {own}"] + [f"{name}: {version}" for name, version in sorted(told.items())]


def _release(version: str) -> tuple[str, ...]:
    return tuple(version.partition("+")[0].split(".")[:2])


def _own_name(facts: Facts) -> str:
    return facts.daemon.host_name or facts.hostname


def _label(host: str) -> str:
    """Return the first label of a host name, in lower case."""
    return host.partition(".")[0].lower()
