"""``avahi-gpu setup``: make this machine a node, and see with its own eyes that it is one."""

from __future__ import annotations

from typing import Annotated

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import Misuse
from avahi_gpu.host.interruption import heard


def command(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell what would change; exit 5 if anything.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the diffs of files.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="AREA", help="names, network, host or service; repeatable."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Cluster that this node belongs to.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python whose torch this node trains with.")
    ] = None,
    firewall: Annotated[
        bool,
        typer.Option("--firewall", help="Open the firewall for the LAN, and for it alone."),
    ] = False,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Set up the system under DIR.", hidden=True)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make this machine a node: packages, avahi-daemon, service file, hosts line. A second run is a no-op."""
    with guarded("setup", as_json=as_json), heard():
        from avahi_gpu.cli.provisioning import Order, demand_cluster_name, set_up, setup_areas
        from avahi_gpu.host.system import System

        if root is not None:
            raise Misuse("--root comes later", "run setup on the machine itself")
        if firewall and only and "network" not in only:
            raise Misuse("--firewall is of the area network", "add: --only network")
        if cluster is not None:
            demand_cluster_name(cluster)
        order = Order(check, diff, yes, as_json, python, cluster, setup_areas(only or []), firewall)
        finish(set_up(System(), order), as_json=as_json, show=lambda _: None)
