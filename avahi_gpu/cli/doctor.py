"""``avahi-gpu doctor``: what is wrong with this machine as a node, and how to mend it."""

from __future__ import annotations

from typing import Annotated

import typer

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.checks.registry import all_checks, select_checks
from avahi_gpu.cli.diagnosis import FailOn, Format, Order, demand_sense, diagnose, findings_of
from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import AvahiGpuError, Misuse
from avahi_gpu.host.system import System
from avahi_gpu.render.findings import nagios_line, show_list
from avahi_gpu.render.text import console, printable
from avahi_gpu.result import Result

NAGIOS_UNKNOWN = 3  # Monitoring Plugins guidelines


def command(  # noqa: PLR0917  typer takes options as parameters
    peers: Annotated[
        list[str] | None,
        typer.Argument(metavar="PEER", help="Nodes that must be there; the others are left out."),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended; avahi-gpu undo --last takes it back.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="This check or area only; repeatable.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Not this check or area; repeatable.")
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="What makes the exit code 1.")] = FailOn.error,
    format: Annotated[Format, typer.Option(help="How to print it.")] = Format.text,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, as --format json.")] = False,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write a report to send to others, without names of people."),
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python whose torch this node trains with.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the checks and exit.")] = False,
) -> None:
    """Explain what keeps this machine, or its peers, from working together; with --fix mend it."""
    chosen = Format.json if as_json else format
    order = Order(
        tuple(peers or ()), tuple(only or ()), tuple(ignore or ()), fix, yes, chosen, fail_on, python, report
    )
    if chosen is Format.nagios and not listing:
        _monitor(order)
    with guarded("doctor", as_json=chosen is Format.json):
        demand_sense(order)
        if listing:
            if chosen is Format.nagios or fix or report is not None:
                raise Misuse("--list only lists", "leave --fix, --report and --format nagios out")
            ignored = select_checks(order.ignore)
            listed = [c for c in select_checks(order.only) or all_checks() if c not in ignored]
            rows = [(c.id, c.area, c.slug, c.says) for c in listed]
            data = [dict(zip(("id", "area", "slug", "says"), row, strict=True)) for row in rows]
            finish(
                Result("doctor", {"checks": data}),
                as_json=chosen is Format.json,
                show=lambda _: show_list(rows, console()),
            )
        finish(diagnose(System(), order), as_json=chosen is Format.json, show=lambda _: None)


def _monitor(order: Order) -> None:
    """Print the one line that a monitoring system reads, and end with its exit code."""
    try:
        if order.fix:
            raise Misuse("--fix and --format nagios do not go together", "a monitor only looks")
        demand_sense(order)
        line, code = nagios_line(findings_of(System(), order))
    except AvahiGpuError as fault:
        line, code = f"AVAHI-GPU UNKNOWN - {printable(fault.message)}", NAGIOS_UNKNOWN
    typer.echo(line)
    raise typer.Exit(code)
