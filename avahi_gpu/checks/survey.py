"""6xx, asked by ``doctor --cluster`` alone: what the nodes see of each other, each by its own word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import ClusterView, Facts, SurveyedNode

EVIDENCE_MAX = 24  # lines; ten nodes have ninety ways between them
SERVE = "avahi-gpu doctor --serve 120"
Judge = Callable[[ClusterView], Outcome]


def survey_check(
    id: str, *, slug: str, says: str, needs: tuple[str, ...] = ("AG620",)
) -> Callable[[Judge], Judge]:
    """Register a question about the view of all nodes."""

    def register(judge: Judge) -> Judge:
        def of_facts(facts: Facts) -> Outcome:
            if facts.view is None:
                return skip("only `avahi-gpu doctor --cluster` asks the other nodes")
            return judge(facts.view)

        of_facts.__doc__ = judge.__doc__
        check(id, slug=slug, area="cluster", says=says, needs=needs, survey=True)(of_facts)
        return judge

    return register


@survey_check("AG620", slug="nodes-asked", says="every listed node was asked", needs=())
def nodes_asked(view: ClusterView) -> Outcome:
    """Each node has to offer its doctor for the time of the question; see survey/service.py."""
    others = [n for n in view.nodes if not n.own]
    silent = [n for n in others if not n.asked and n.silence != "key"]
    where = "there" if len(silent) == 1 else "on each of them"
    hint = f"{where} run `{SERVE}`, and here `avahi-gpu doctor --cluster` meanwhile"
    if silent and all(n.silence == "unreached" and n.host for n in silent):
        hint = "a firewall there or on the way keeps us from its doctor: run `avahi-gpu doctor` there"
    if not others:
        why = (
            f"no other node could be looked for: {view.trouble}" if view.trouble else "no other node is known"
        )
        return unknown(why, hint="name them: --cluster --peers ADDRESS,ADDRESS")
    lines = [f"{n.name}: {_why(n)}" for n in silent]
    if not any(n.asked for n in others) and not any(p.ports for p in view.passages):
        return Outcome(
            "unknown", f"{join(n.name for n in others)} could not be asked", tuple(lines), hint=hint
        )
    if silent:
        return warn(f"{join(n.name for n in silent)} {was(silent)} not asked", lines, hint=hint)
    return ok(*(f"{n.name} at {n.address}" for n in others if n.asked))


@survey_check("AG621", slug="nodes-share-the-key", says="all nodes hold the same cluster key", needs=())
def nodes_share_the_key(view: ClusterView) -> Outcome:
    """Nodes that do not prove the same key take no part in each other's jobs."""
    apart = [n for n in view.nodes if n.silence == "key"]
    if apart:
        return error(
            f"{join(n.name for n in apart)} and this machine do not hold the same cluster key",
            [n.why for n in apart],
            hint="compare `avahi-gpu key check` on all nodes, as the user who trains",
        )
    if not any(n.asked and not n.own for n in view.nodes):
        return skip("no other node was asked")
    return ok("all have it" if view.with_key else "none is used")


def asked_nodes(view: ClusterView) -> list[SurveyedNode]:
    """Return the nodes that told of themselves, this one among them."""
    return [n for n in view.nodes if n.asked]


def cut(lines: Iterable[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    found = list(lines)
    more = len(found) - EVIDENCE_MAX
    return found[:EVIDENCE_MAX] + ([f"and {more} more"] if more > 0 else [])


def join(names: Iterable[str]) -> str:
    """Return names as a person writes them."""
    found = list(names)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)


def was(some: Sequence[object]) -> str:
    """Return the verb for one or several."""
    return "was" if len(some) == 1 else "were"


def _why(node: SurveyedNode) -> str:
    if node.silence == "unreached" and node.host:
        return f"its doctor is announced at {node.address}, and cannot be reached ({node.why})"
    return node.why
