"""What setup makes of a firewall that keeps the LAN out: it tells, and opens it only with ``--firewall``."""

from __future__ import annotations

from collections.abc import Sequence

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.errors import AS_ROOT, NeedsRoot
from avahi_gpu.model import Facts, Finding

MDNS = ("AG204", "AG205")  # without it no node is seen
TOLD = (*MDNS, "AG206", "AG215", "AG216", "AG217")
OPENS = "avahi-gpu setup --firewall opens it for the LAN"


def demand_sight(*, is_root: bool) -> None:
    """Raise NeedsRoot for whoever could not even be told what --firewall would change."""
    if not is_root:
        raise NeedsRoot(
            "--firewall reads the firewall's rules, which only root may do",
            f"run: {AS_ROOT} setup --firewall",
        )


def judge_proof(facts: Facts, proof: Sequence[str]) -> list[Finding]:
    """Return the findings that prove a node, or the firewall's where that keeps them from being well.

    Avahi may see this machine all the same, from before the firewall was shut: then it is told, and no more.
    """
    findings = run_checks(facts, proof, MDNS) if proof else []
    if all(f.verdict in ("ok", "info", "warn") for f in findings if f.id in proof):
        return findings
    shut = [f for f in run_checks(facts, MDNS) if f.id in MDNS and f.verdict == "error"]
    return [*shut, *(f for f in findings if f.id not in proof)] if shut else findings


def describe_firewall(
    facts: Facts, areas: frozenset[str], wrong: Sequence[Finding], *, opens: bool
) -> list[str]:
    """Return what is worth knowing of the firewall besides what is ``wrong``."""
    if facts.image is not None or (areas and "network" not in areas):
        return []
    worth = ("info", "warn", "error", "unknown") if opens else ("info", "warn", "error")
    known = {f.id for f in wrong}
    return [
        f"{f.says} ({f.id}); {f.hint if opens else OPENS}".removesuffix("; ")
        for f in run_checks(facts, TOLD)
        if f.id in TOLD and f.verdict in worth and f.id not in known
    ]
