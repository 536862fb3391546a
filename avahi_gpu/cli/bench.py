"""``avahi-gpu bench``: what the network between the nodes gives, and what that means for training."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from avahi_gpu.cli.meeting import Cluster, JoinTimeout, KeyFile, LostAfter, Peers, settle
from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import ChangeFailed, ExitCode, LaunchFailed, MeasurementBroken, Misuse
from avahi_gpu.model import DEFAULT_CLUSTER
from avahi_gpu.rendezvous.terms import JOIN_TIMEOUT_S, LOST_AFTER_MIN_S, LOST_AFTER_S

if TYPE_CHECKING:
    from avahi_gpu.gauge.session import Ending
    from avahi_gpu.launch.command import Request
    from avahi_gpu.model.gauge import Estimate, Judgement, Measurement
    from avahi_gpu.result import Result

JOB = "avahi-gpu-bench"
OTHERS_WRITE_S = 0.5  # a file of 10 KB, through a power cut and a network
PREFIX = "bench."  # before the name that --job gives: a training job of that name is another one


def command(
    *,
    nnodes: Annotated[
        str | None,
        typer.Option(metavar="N", help="How many nodes are measured.", show_default=False),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIZE",
            help="Tell the time to exchange the gradients of so many parameters: 7B, 350M; repeatable.",
            show_default=False,
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="bf16|fp16|fp32", help="The type of the gradients.")] = "bf16",
    quick: Annotated[bool, typer.Option("--quick", help="Less exact, in a few seconds.")] = False,
    tcp: Annotated[
        bool, typer.Option("--tcp", help="Measure TCP alone, without torch and the all-reduce.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    svg: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw it, as SVG.", show_default=False)
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A name for this measurement, where two run at once.", show_default=False
        ),
    ] = None,
    nproc_per_node: Annotated[
        str,
        typer.Option(
            metavar="auto|gpu|cpu|N",
            help="Processes of the all-reduce on this node; auto: one a GPU, one without any.",
        ),
    ] = "auto",
    master: Annotated[
        str | None, typer.Option(metavar="HOST", help="The host that leads.", show_default=False)
    ] = None,
    peers: Peers = None,
    lost_after: LostAfter = LOST_AFTER_S,
    join_timeout: JoinTimeout = JOIN_TIMEOUT_S,
    cluster: Cluster = None,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The network to measure. [default: AVAHI_GPU_INTERFACE, else the best that all share]",
        ),
    ] = None,
    key_file: KeyFile = None,
) -> None:
    """Measure the network: run the same line on every node.

    Each pair of nodes is measured by TCP, one after the other, then the all-reduce of all. The node that
    leads shows the tables.
    """
    from avahi_gpu.gauge import figures
    from avahi_gpu.host.key_file import find_key
    from avahi_gpu.host.system import System
    from avahi_gpu.launch import command as asked
    from avahi_gpu.rendezvous.environment import name_choice

    with guarded("bench", as_json=as_json):
        system = System()
        parameters = [figures.parse_model(text) for text in model or ()] or list(figures.USUAL_MODELS)
        kind = figures.parse_dtype(dtype)
        check_picture(svg)
        settings = settle(
            system, os.environ, cluster=cluster, interface=interface, peers=peers, key_file=key_file
        )
        config = settings.config
        if nnodes is None:
            from avahi_gpu.launch.plan import suggest_nodes

            raise suggest_nodes(config.cluster, ranges=False)
        count = check_nodes(*asked.parse_nodes(nnodes))
        request = asked.Request(
            program=asked.Program((), "bench", ()),
            job=asked.check_job(PREFIX + job) if job is not None else JOB,
            min_nodes=count,
            max_nodes=count,
            processes=check_processes(asked.parse_processes(nproc_per_node)),
            cluster=config.cluster,
            master=asked.check_master(master) if master is not None else "",
            peers=config.peers,
            interface=config.interface,
            interfaces=config.interfaces,
            interface_words=name_choice(settings),
            priority=config.priority,
            lost_after_s=asked.check_seconds("--lost-after", lost_after, LOST_AFTER_MIN_S),
            join_timeout_s=asked.check_seconds("--join-timeout", join_timeout, 1.0),
            allow_skew=True,  # TCP does not care, and the all-reduce is left out where versions differ
            key=find_key(system, os.environ, config.key_file),
        )
    try:
        with guarded("bench", as_json=as_json):
            ending = measure(request, quick=quick, reduce=not tcp)
            judged, estimates = conclude(ending, parameters, kind)
            ending.error = ending.error or failure_of(ending.measured) or draw(system, ending, judged, svg)
            result = result_of(ending, judged, estimates)
            finish(result, as_json=as_json, show=lambda _: show(ending, judged, estimates))
    except typer.Exit as end:
        # all is said, and the rendezvous has said goodbye: nothing is left that its threads could do in order
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.exit_code)


def check_nodes(smallest: int, largest: int) -> int:
    """Return how many nodes are measured. Raises Misuse."""
    if smallest != largest:
        hint = f"give --nnodes {largest}: whoever came late would begin it anew"
        raise Misuse("a measurement has a fixed number of nodes", hint)
    if smallest < 2:
        raise Misuse("one node makes no network", "measure two nodes or more")
    return smallest


def check_picture(svg: str | None) -> None:
    """Raise Misuse where the picture has no place to go to: that is better known before than after."""
    if svg is None:
        return
    path = Path(svg).absolute()
    if not svg or path.is_dir():
        raise Misuse(f"--svg {svg or repr(svg)} is a folder", "name the file in it")
    if not path.parent.is_dir():
        raise Misuse(f"there is no folder for {svg}", "name a file in a folder that exists")


def check_processes(word: str) -> str:
    """Return how many processes a node runs. Raises Misuse for what only torchrun counts."""
    if word == "xpu":
        raise Misuse("--nproc-per-node xpu is not measured", "give cpu, gpu or a number")
    return word


def measure(request: Request, *, quick: bool, reduce: bool) -> Ending:
    """Run the measurement, showing its progress on stderr. Raises AvahiGpuError, KeyboardInterrupt."""
    from avahi_gpu.gauge.session import measure_network
    from avahi_gpu.launch.outcome import Stopped
    from avahi_gpu.render.measuring import Measuring
    from avahi_gpu.render.waiting import nodes_wanted
    from avahi_gpu.rendezvous.dealings import JobEnded

    board = Measuring(sys.stderr, request.min_nodes, request.max_nodes, limit_s=request.join_timeout_s)
    nodes = nodes_wanted(request.min_nodes, request.max_nodes)
    where = f" in cluster {request.cluster}" if request.cluster != DEFAULT_CLUSTER else ""
    board.event(f"measurement {request.job} of {nodes}{where}")
    if request.key is not None:
        board.event(f"only nodes with the cluster key {request.key.key.fingerprint} take part")
    try:
        return measure_network(request, board, quick=quick, reduce=reduce)
    except Stopped as stopped:
        raise typer.Exit(128 + stopped.number) from None
    except (JobEnded, LaunchFailed) as fault:
        raise MeasurementBroken(fault.message, fault.hint) from None
    finally:
        board.close()


def conclude(ending: Ending, parameters: list[int], dtype: str) -> tuple[Judgement, list[Estimate]]:
    """Return what follows from the measurement."""
    from avahi_gpu.gauge.figures import estimate
    from avahi_gpu.gauge.verdict import judge

    measured = ending.measured
    return judge(measured), [estimate(measured, count, dtype) for count in parameters if measured.links]


def failure_of(measured: Measurement) -> MeasurementBroken | None:
    """Return the error of an all-reduce that was begun and failed."""
    if not measured.failed:
        return None
    hint = "`avahi-gpu doctor --cluster` shows who does not reach whom; --tcp leaves the all-reduce out"
    return MeasurementBroken(measured.omitted, hint)


def result_of(ending: Ending, judged: Judgement, estimates: list[Estimate]) -> Result:
    """Return the result; with an error where not all was measured."""
    from avahi_gpu.gauge.verdict import card_share
    from avahi_gpu.render.gauge import measurement_data
    from avahi_gpu.result import Result

    measured = ending.measured
    data = measurement_data(measured, judged, estimates, lambda link: card_share(link, measured.nodes))
    data["leader"] = ending.leader
    if ending.error is None:
        return Result("bench", data)
    return Result("bench", data if measured.links else {}, ExitCode.FAILED, (ending.error,))


def show(ending: Ending, judged: Judgement, estimates: list[Estimate]) -> None:
    """Print it for people."""
    from avahi_gpu.render.gauge import show_brief, show_measurement
    from avahi_gpu.render.text import console

    if not ending.measured.links:
        return
    if ending.leads:
        show_measurement(ending.measured, judged, estimates, console())
    else:
        show_brief(ending.measured, judged, ending.leader, console())


def draw(system: object, ending: Ending, judged: Judgement, svg: str | None) -> ChangeFailed | None:
    """Write the picture; return what went wrong."""
    from avahi_gpu.host.system import System
    from avahi_gpu.render.heat import draw_heat

    if svg is None or not ending.measured.links:
        return None
    assert isinstance(system, System)
    path, picture = Path(svg).absolute(), draw_heat(ending.measured, judged).encode()
    try:
        system.write(path, picture)
    except ChangeFailed as fault:
        time.sleep(OTHERS_WRITE_S)
        if system.read(path).content == picture:  # in a folder that nodes share, they write it all at once
            return None
        return ChangeFailed(f"the picture cannot be written: {fault.message}", fault.hint)
    return None
