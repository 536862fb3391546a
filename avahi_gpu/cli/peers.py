"""``avahi-gpu peers``: which nodes are on the LAN, and which of them answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import AS_ROOT, AvahiGpuError, ExitCode, Misuse, TooFewPeers
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.peers import count_present, fellows
from avahi_gpu.host.system import System
from avahi_gpu.model import Peer
from avahi_gpu.render.inventory import host_variables, make_inventory
from avahi_gpu.render.launcher_lists import FORMATS
from avahi_gpu.render.table import (
    describe_present,
    describe_strangers,
    peer_data,
    show_peers,
)
from avahi_gpu.render.text import console, printable
from avahi_gpu.result import Result

EXPECT_TIMEOUT_S = 10.0  # a machine that is switched on and set up is seen within a second
MAX_EXPECT = 1000
MAX_TIMEOUT_S = 86400.0
READY = ("table", "json", "ansible", "svg", *FORMATS)


def command(
    *,
    expect: Annotated[
        int | None,
        typer.Option(metavar="N", help="Wait until N nodes of this cluster are there, this one included."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="Look for S seconds (with --expect 10, else 1.35); then exit 3."),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Go on looking: a live table, or a line for each event on a pipe."),
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="The nodes of that cluster alone.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; with --watch one for each event.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(READY), help="How they are printed.")
    ] = "table",
    listing: Annotated[
        bool, typer.Option("--list", help="--format ansible: the whole inventory, as without it.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="--format ansible: the variables of one host.")
    ] = None,
) -> None:
    """List the nodes on the LAN, with their GPUs and whether they answer."""
    as_json = as_json or format == "json"
    with guarded("peers", as_json=as_json):
        _refuse_nonsense(expect, timeout, format, watch=watch, as_json=as_json)
        if format != "ansible" and (listing or host is not None):
            raise Misuse("--list and --host are Ansible's words", "add --format ansible, or leave them out")
        settings = read_settings(
            System(), os.environ
        )  # as every command does: a mistake in it is told, not passed over
        if watch:
            from avahi_gpu.cli.watching import Wish
            from avahi_gpu.cli.watching import watch as follow

            wish = Wish(cluster or "", expect, timeout)
            finish(asyncio.run(follow(wish, as_json=as_json)), as_json=as_json, show=lambda _: None)
        if format == "svg":
            from avahi_gpu.cli.lan_picture import picture

            drawn, result = asyncio.run(picture(_look(expect, timeout, cluster), cluster))
            finish(result, as_json=False, show=lambda _: typer.echo(drawn, nl=False))
        peers, result = asyncio.run(_look(expect, timeout, cluster))
        if format in FORMATS:
            from avahi_gpu.cli.listing import print_list

            print_list(format, peers, cluster or settings.config.cluster, expect)
            finish(Result("peers", {}), as_json=False, show=lambda _: None)
        if format == "ansible":
            finish(result, as_json=False, show=lambda _: show_inventory(peers, host))
        finish(result, as_json=as_json, show=lambda _: _show_table(peers))


def _show_table(peers: list[Peer]) -> None:
    """Print the table; on stderr whether this machine itself is missing in it."""
    show_peers(peers, console())
    sys.stdout.flush()
    if peers and not any(p.self for p in peers):
        hint = f"run `{AS_ROOT} setup` to make it one"
        typer.echo(f"avahi-gpu: this machine is no node itself, nobody sees it: {hint}", err=True)


def show_inventory(peers: list[Peer], host: str | None) -> None:
    """Print the inventory, or the variables of one host; on stderr who is not in it."""
    inventory, notes = make_inventory(peers)
    for note in notes:
        typer.echo(f"avahi-gpu: {printable(note, 1000)}", err=True)
    typer.echo(json.dumps(inventory if host is None else host_variables(inventory, host), indent=2))


def _refuse_nonsense(
    expect: int | None, timeout: float | None, format: str, *, watch: bool, as_json: bool
) -> None:
    if format not in READY:
        raise Misuse("there is no such format", f"use --format {', '.join(READY[:-1])} or {READY[-1]}")
    if expect is not None and not 1 <= expect <= MAX_EXPECT:
        raise Misuse(f"--expect {expect} makes no sense", f"give a number from 1 to {MAX_EXPECT}")
    if timeout is not None and not 0 < timeout <= MAX_TIMEOUT_S:
        raise Misuse(f"--timeout {timeout:g} makes no sense", "give seconds, more than 0 and at most a day")
    if format in ("ansible", "svg", *FORMATS) and (as_json or watch):
        what = "an inventory" if format == "ansible" else f"--format {format}"
        raise Misuse(f"{what} goes with neither --json nor --watch", "leave out one of them")


async def _look(
    expect: int | None, timeout_s: float | None, cluster: str | None
) -> tuple[list[Peer], Result]:
    from avahi_gpu.avahi.bus import connect
    from avahi_gpu.host.net import read_interfaces
    from avahi_gpu.host.peers import SEEN_WITHIN_S, look_for_peers

    within_s = timeout_s if timeout_s is not None else SEEN_WITHIN_S if expect is None else EXPECT_TIMEOUT_S
    async with connect() as avahi:
        interfaces = await asyncio.to_thread(read_interfaces)
        with _progress(expect, within_s) as tell:
            peers = await look_for_peers(
                avahi, interfaces, expect=expect, within_s=within_s, tell=tell, cluster=cluster
            )
    data = {"peers": [peer_data(p) for p in peers]}
    there = count_present(peers)
    if expect is None or there >= expect:
        return peers, Result("peers", data)
    error = _too_few(peers, there, expect, within_s)
    return peers, Result("peers", data, ExitCode.TOO_FEW_PEERS, (error,))


def _too_few(peers: list[Peer], there: int, expect: int, within_s: float) -> AvahiGpuError:
    who = describe_present(fellows(peers))
    message = f"{there} of {expect} nodes were there within {within_s:g} s: {who}"
    if not any(p.self for p in peers):
        return TooFewPeers(message, f"this machine does not publish itself: run `{AS_ROOT} setup`")
    strangers = describe_strangers(peers)
    if strangers:
        return TooFewPeers(
            f"{message}; {strangers}", f"nodes of one cluster count: {AS_ROOT} setup --cluster NAME"
        )
    return TooFewPeers(message, "are the others on and set up? `avahi-gpu doctor` tells what is in the way")


@contextlib.contextmanager
def _progress(expect: int | None, within_s: float) -> Iterator[Callable[[list[Peer]], None]]:
    """Show who is there while somebody waits for a number of peers, on a terminal alone."""
    err = console(sys.stderr)
    if expect is None or not err.is_terminal:
        yield lambda _: None
        return
    with err.status("looking for nodes") as status:

        def tell(peers: list[Peer]) -> None:
            status.update(
                f"{expect} nodes wanted, {within_s:g} s at most; there: {describe_present(fellows(peers))}"
            )

        yield tell
