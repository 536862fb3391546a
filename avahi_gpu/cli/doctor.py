"""``avahi-gpu doctor``: what is wrong with this machine as a node, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.cli.verdicts import FailOn, Format
from avahi_gpu.errors import AvahiGpuError, Misuse
from avahi_gpu.render.text import console, printable
from avahi_gpu.result import Result

if TYPE_CHECKING:
    from avahi_gpu.cli.cluster_doctor import Round
    from avahi_gpu.cli.diagnosis import Order

NAGIOS_UNKNOWN = 3  # Monitoring Plugins guidelines


def command(  # noqa: PLR0917  typer takes options as parameters
    peers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Nodes that must be there, the others are left out; or names to trace."
        ),
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
    deepspeed_config: Annotated[
        str | None,
        typer.Option(
            "--deepspeed-config", metavar="FILE", help="Also look at this configuration of DeepSpeed's."
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also tell what is fine, one line a question.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the checks and exit.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Ask all nodes, each of which runs doctor --serve meanwhile.")
    ] = False,
    serve: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Answer doctor --cluster of the other nodes for so long."),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            "--peers",
            metavar="A,B",
            help="With --cluster or --serve: addresses of other nodes, where multicast is blocked.",
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="--cluster: how long to wait for the others. [default: 10]"),
    ] = None,
    ssh: Annotated[
        bool, typer.Option("--ssh", help="--cluster: start doctor --serve on the others by ssh.")
    ] = False,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="--cluster: also draw it, as SVG.")
    ] = None,
) -> None:
    """Explain what keeps this machine, or its peers, from working together; with --fix mend it."""
    from avahi_gpu.cli.diagnosis import Order, demand_sense, diagnose
    from avahi_gpu.host.system import System

    chosen = Format.json if as_json else format
    order = Order(
        tuple(peers or ()),
        tuple(only or ()),
        tuple(ignore or ()),
        fix,
        yes,
        chosen,
        fail_on,
        python,
        report,
        verbose,
        deepspeed_config,
    )
    together = cluster or serve is not None
    if chosen is Format.nagios and not (listing or together):
        _monitor(order)
    with guarded("doctor", as_json=chosen is Format.json):
        demand_sense(order)
        if as_json and format is Format.nagios:
            raise Misuse("--json and --format nagios do not go together", "leave one of them out")
        if not cluster and (wait is not None or ssh or picture is not None):
            raise Misuse("--wait, --ssh and --picture go with --cluster alone", "add --cluster")
        if addresses is not None and not together:
            raise Misuse("--peers goes with --cluster or --serve alone", "add one of them")
        if together:
            if listing:
                raise Misuse("--list only lists", "leave --cluster and --serve out")
            from avahi_gpu.cli.cluster_doctor import Round
            from avahi_gpu.launch.command import split_peers

            named = split_peers(addresses) if addresses is not None else ()
            _ask_together(order, Round(named, wait, ssh, picture), cluster=cluster, serve=serve)
        if listing:
            if chosen is Format.nagios or fix or report is not None:
                raise Misuse("--list only lists", "leave --fix, --report and --format nagios out")
            _list(order)
        finish(diagnose(System(), order), as_json=chosen is Format.json, show=lambda _: None)


def _list(order: Order) -> NoReturn:
    """Print the checks that are asked for, and end."""
    import avahi_gpu.checks  # noqa: F401  registers them
    from avahi_gpu.checks.registry import all_checks, select_checks
    from avahi_gpu.render.findings import show_list

    ignored = select_checks(order.ignore)
    listed = [c for c in select_checks(order.only) or all_checks() if c not in ignored]
    rows = [(c.id, c.area, c.slug, c.says) for c in listed]
    data = [dict(zip(("id", "area", "slug", "says"), row, strict=True)) for row in rows]
    as_json = order.format is Format.json
    finish(Result("doctor", {"checks": data}), as_json=as_json, show=lambda _: show_list(rows, console()))


def _ask_together(order: Order, asked: Round, *, cluster: bool, serve: float | None) -> NoReturn:
    """Be one of the doctors that ask each other, and end."""
    from avahi_gpu.cli.cluster_doctor import serve_others, survey_cluster
    from avahi_gpu.host.system import System

    as_json = order.format is Format.json
    if order.fix or order.format is Format.nagios:
        raise Misuse("--cluster and --serve only ask", "leave --fix and --format nagios out")
    if serve is not None:
        if cluster or order.peers or order.only or order.ignore or order.report is not None:
            raise Misuse("--serve only answers", "give --peers and --python beside it, and nothing else")
        finish(serve_others(System(), serve, order, asked.peers), as_json=as_json, show=lambda _: None)
    finish(survey_cluster(System(), order, asked), as_json=as_json, show=lambda _: None)


def _monitor(order: Order) -> None:
    """Print the one line that a monitoring system reads, and end with its exit code."""
    from avahi_gpu.cli.diagnosis import demand_sense, findings_of
    from avahi_gpu.host.system import System
    from avahi_gpu.render.findings import nagios_line

    try:
        if order.fix:
            raise Misuse("--fix and --format nagios do not go together", "a monitor only looks")
        demand_sense(order)
        line, code = nagios_line(findings_of(System(), order))
    except AvahiGpuError as fault:
        line, code = f"AVAHI-GPU UNKNOWN - {printable(fault.message)}", NAGIOS_UNKNOWN
    typer.echo(line)
    raise typer.Exit(code)
