"""``avahi-gpu peers --format deepspeed|mpi|accelerate|env|ssh|hosts``: the nodes for other launchers."""

from __future__ import annotations

import typer

from avahi_gpu.errors import AS_ROOT, TooFewPeers
from avahi_gpu.host.net import lan_interfaces, read_interfaces
from avahi_gpu.model import Interface, Peer
from avahi_gpu.render import launcher_lists
from avahi_gpu.render.launcher_lists import RANKED, TRAINING
from avahi_gpu.render.lineup import Lineup, line_up
from avahi_gpu.render.text import printable
from avahi_gpu.rendezvous.environment import interface_variables

NOTES = 20  # of who is left out; a stranger may announce thousands


def print_list(format: str, peers: list[Peer], cluster: str, expect: int | None) -> None:
    """Print the nodes of ``cluster`` in that format; on stderr who is left out.

    Raises TooFewPeers where there are fewer than ``expect``, none, or this machine has no rank. Nothing is
    printed on stdout then: it would end up in a file, or in a shell, all the same.
    """
    own_addresses = first_addresses(read_interfaces())
    lineup = line_up(peers, cluster, own_addresses, training=format in TRAINING)
    for note in lineup.notes[:NOTES]:
        typer.echo(f"avahi-gpu: {printable(note, 1000)}", err=True)
    if len(lineup.notes) > NOTES:
        typer.echo(f"avahi-gpu: {len(lineup.notes) - NOTES} more are left out", err=True)
    _demand_enough(lineup, format, expect)
    if format == "env":
        own = lineup.entries[lineup.own_rank or 0]
        variables = interface_variables(own.interface, own.address) if own.interface else {}
        text = launcher_lists.env(lineup, variables)
    else:
        text = launcher_lists.WRITERS[format](lineup)
    typer.echo(text, nl=False)


def first_addresses(interfaces: tuple[Interface, ...]) -> dict[str, str]:
    """Return the first IPv4 address of each interface that leads to a LAN."""
    return {
        interface.name: address.ip
        for interface in lan_interfaces(interfaces)
        for address in reversed(interface.addresses)
        if address.family == 4
    }


def _demand_enough(lineup: Lineup, format: str, expect: int | None) -> None:
    there = len(lineup.entries)
    why = (
        "who is left out, and why, stands above"
        if lineup.notes
        else "are the others on and set up? `avahi-gpu doctor` tells what is in the way"
    )
    if not there or (expect is not None and there < expect):
        wanted = f"{there} of {expect}" if expect is not None else "none of the"
        who = ", ".join(e.name for e in lineup.entries) or "nobody"
        raise TooFewPeers(f"{wanted} nodes can be listed: {who}", why)
    if format in RANKED and lineup.own_rank is None:
        hint = why if lineup.notes else f"it does not publish itself: run `{AS_ROOT} setup`"
        raise TooFewPeers(f"this machine is not among the {there} nodes, and so has no rank", hint)
