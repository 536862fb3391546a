"""``avahi-gpu jobs``: which jobs run on the LAN, on which nodes, who leads, and which wait for whom."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Annotated

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import Misuse
from avahi_gpu.host.clock import unix_time
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.system import System
from avahi_gpu.model import Job, Peer
from avahi_gpu.render.jobs import describe_change, job_data, show_jobs
from avahi_gpu.render.text import console
from avahi_gpu.result import Result

MAX_TIMEOUT_S = 600.0
SETTLED_S = 1.2  # the nodes of a round change their records within a second of each other
UNSETTLED_MAX_S = 5.0  # somebody's may change without an end


def command(
    *,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="Look for S seconds (1.35)."),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Print a line whenever a job starts, regroups or ends, until Ctrl-C."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the jobs that run on the LAN, with their nodes and leader, and those that wait for nodes."""
    with guarded("jobs", as_json=as_json):
        if timeout is not None and not 0 < timeout <= MAX_TIMEOUT_S:
            raise Misuse(f"--timeout {timeout:g} makes no sense", "give seconds, more than 0 and at most 600")
        if watch and (as_json or timeout is not None):
            raise Misuse("--watch goes with no other option", "leave out --json and --timeout")
        cluster = read_settings(System(), os.environ).config.cluster
        if watch:
            asyncio.run(_watch())
        jobs = asyncio.run(_look(timeout))
        data = {"jobs": [job_data(job, absent) for job, absent in jobs]}
        now = unix_time()
        finish(Result("jobs", data), as_json=as_json, show=lambda _: show_jobs(jobs, cluster, now, console()))


async def _look(timeout_s: float | None) -> list[tuple[Job, list[Peer]]]:
    from avahi_gpu.avahi.bus import connect
    from avahi_gpu.host.jobs import absentees, look_for_jobs
    from avahi_gpu.host.net import read_interfaces
    from avahi_gpu.host.peers import SEEN_WITHIN_S, look_for_peers

    within_s = SEEN_WITHIN_S if timeout_s is None else timeout_s
    async with connect() as avahi:
        interfaces = await asyncio.to_thread(read_interfaces)
        jobs, peers = await asyncio.gather(
            look_for_jobs(avahi, interfaces, within_s=within_s),
            look_for_peers(avahi, interfaces, within_s=within_s),
        )
    return [(job, absentees(job, peers)) for job in jobs]


async def _watch() -> None:
    """Print what becomes of the jobs, for ever."""
    from avahi_gpu.avahi.bus import connect
    from avahi_gpu.cli.watching import check_reader
    from avahi_gpu.host.jobs import JobWatch
    from avahi_gpu.host.net import read_interfaces

    out = console()
    loop = asyncio.get_running_loop()
    async with connect() as avahi:
        interfaces = await asyncio.to_thread(read_interfaces)
        async with JobWatch(avahi, interfaces) as watch:
            shown: dict[tuple[str, str, int], Job] = {}
            while True:
                await watch.change(UNSETTLED_MAX_S)
                end = loop.time() + UNSETTLED_MAX_S
                while loop.time() < end and await watch.change(SETTLED_S):
                    pass
                check_reader()
                now = _by_name(watch.jobs())
                for key in dict.fromkeys([*now, *shown]):
                    line = describe_change(shown.get(key), now.get(key))
                    if line:
                        out.print(f"{time.strftime('%H:%M:%S')}  {line}")
                        sys.stdout.flush()
                shown = now


def _by_name(jobs: tuple[Job, ...]) -> dict[tuple[str, str, int], Job]:
    """Return the jobs by cluster, name and number: one that is split is there twice."""
    found: dict[tuple[str, str, int], Job] = {}
    for job in jobs:
        number = sum(key[:2] == (job.cluster, job.name) for key in found)
        found[job.cluster, job.name, number] = job
    return found
