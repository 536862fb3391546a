"""``doctor --cluster`` and ``doctor --serve``: ask the doctors of all nodes, and be one of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from avahi_gpu.checks.peers import restrict_peers
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.cli.diagnosis import Order, conclude
from avahi_gpu.cli.verdicts import Format
from avahi_gpu.errors import ChangeFailed, ExitCode, Misuse
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.facts import gather_facts
from avahi_gpu.host.system import System
from avahi_gpu.model import ClusterView, Facts, Finding
from avahi_gpu.render.findings import show_findings
from avahi_gpu.render.matrix import show_matrix, view_data
from avahi_gpu.render.text import console, printable
from avahi_gpu.result import Result

WAIT_MAX_S = 45.0  # a doctor keeps its time for one asker no longer
SERVE_MAX_S = 3600.0  # nobody leaves it running for ever
# of one node alone, and answered better where all of them are asked
SUPERSEDED = ("AG605", "AG606", "AG607", "AG611", "AG612", "AG614")
NODES_ASKED = "AG620"
OWN_FIREWALL = "AG206"  # an error of it says why the others do not reach this machine


@dataclass(frozen=True)
class Round:
    """What the command line asks for beside an ``Order``. ``wait_s`` None: the usual."""

    peers: tuple[str, ...] = ()
    wait_s: float | None = None
    ssh: bool = False
    picture: str | None = None


def survey_cluster(system: System, order: Order, asked: Round) -> Result:
    """Ask all nodes, judge and tell. Raises AvahiGpuError."""
    if asked.wait_s is not None and not 0 < asked.wait_s <= WAIT_MAX_S:
        raise Misuse("that is no time to wait", f"give --wait more than 0 and at most {WAIT_MAX_S:g} seconds")
    if asked.picture is not None and not Path(asked.picture).absolute().parent.is_dir():
        raise Misuse(f"there is no folder for {asked.picture}", "name a file in a folder that exists")
    facts, view = asyncio.run(_read(system, order, asked, order.python))
    facts = with_view(restrict_peers(facts, order.peers), view)
    findings = judge(facts, order)
    show_matrix(view, order.out)
    show_findings(findings, order.out, whole=order.verbose or bool(order.only), is_root=facts.is_root)
    if asked.picture is not None:
        _draw(system, view, asked.picture)
        order.out.print(f"picture: {printable(asked.picture)}")
    result = conclude(system, order, facts, findings)
    code = result.exit_code
    if code is ExitCode.FINE and any(f.id == NODES_ASKED and f.verdict == "unknown" for f in findings):
        code = ExitCode.TOO_FEW_PEERS  # a script must not take "nobody was asked" for "all is well"
    return replace(result, exit_code=code, data={**result.data, **view_data(view)})


def judge(facts: Facts, order: Order) -> list[Finding]:
    """Ask what is asked for, of this machine and of all; one cause gives one error."""
    view = facts.view
    assert view is not None
    met = any(n.asked and not n.own for n in view.nodes)
    ignore = (*order.ignore, *SUPERSEDED) if met and not order.only else order.ignore
    findings = run_checks(facts, order.only, ignore)
    if not any(f.id == OWN_FIREWALL and f.verdict == "error" for f in findings):
        return findings
    own = {n.name for n in view.nodes if n.own}
    rest = tuple(p for p in view.passages if p.target not in own)
    return run_checks(replace(facts, view=replace(view, passages=rest)), order.only, ignore)


def with_view(facts: Facts, view: ClusterView) -> Facts:
    """Return the facts with the view.

    Whoever answered our doctor, or has announced one within ten seconds, is alive, whatever a firewall drops.
    """
    alive = {n.host for n in view.nodes if (n.asked or n.silence == "unreached") and n.host}
    peers = facts.peers and tuple(replace(p, alive=True) if p.host in alive else p for p in facts.peers)
    return replace(facts, peers=peers, view=view)


async def _read(system: System, order: Order, asked: Round, python: str | None) -> tuple[Facts, ClusterView]:
    from avahi_gpu.survey.remote import Remote
    from avahi_gpu.survey.survey import WAIT_S, survey

    facts, view = await asyncio.gather(
        gather_facts(system, python=python),
        survey(
            system,
            python=python,
            peers=named_peers(system, asked.peers),
            wait_s=asked.wait_s or WAIT_S,
            tell=_progress(order),
            remote=Remote(order.python) if asked.ssh else None,
        ),
    )
    return facts, view


def named_peers(system: System, peers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes to ask at their addresses, those of the settings where none are given."""
    return read_settings(system, os.environ, {"peers": ("--peers", peers)}).config.peers


def _progress(order: Order) -> Callable[[str], None]:
    """Tell on stderr what is going on, where people read."""
    if order.format is not Format.text:
        return lambda _: None
    err = console(sys.stderr)
    return lambda text: err.print(f"… {printable(text, 1000)}")


def _draw(system: System, view: ClusterView, name: str) -> None:
    from avahi_gpu.render.picture import draw

    try:
        system.write(Path(name).absolute(), draw(view).encode())
    except ChangeFailed as fault:
        raise ChangeFailed(f"the picture cannot be written: {fault.message}", fault.hint) from None


def serve_others(system: System, seconds: float, order: Order, peers: tuple[str, ...]) -> Result:
    """Answer the doctors of other nodes until the time is over. Raises AvahiGpuError."""
    from avahi_gpu.survey.serving import serve

    if not 0 < seconds <= SERVE_MAX_S:
        raise Misuse(
            f"--serve {seconds:g} makes no sense", f"give seconds, more than 0 and at most {SERVE_MAX_S:g}"
        )

    def tell(text: str) -> None:
        order.out.print(printable(text, 1000))
        sys.stdout.flush()

    named = named_peers(system, peers)
    served = asyncio.run(serve(system, seconds, python=order.python, peers=named, tell=tell))
    tell(f"{seconds:g} s are over; asked {'once' if served == 1 else f'{served} times'}")
    return Result("doctor", {"served": served})
