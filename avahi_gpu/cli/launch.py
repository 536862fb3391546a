"""``avahi-gpu launch``: train on this node and the others that run the same command."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from avahi_gpu.cli.meeting import Cluster, JoinTimeout, KeyFile, LostAfter, Peers, settle
from avahi_gpu.cli.outcome import guarded, tell_error
from avahi_gpu.errors import AvahiGpuError, ExitCode, Misuse
from avahi_gpu.model import DEFAULT_CLUSTER
from avahi_gpu.rendezvous.terms import JOIN_TIMEOUT_S, LAST_CALL_S, LOST_AFTER_MIN_S, LOST_AFTER_S

if TYPE_CHECKING:
    from avahi_gpu.launch.command import Request
    from avahi_gpu.rendezvous.messages import Skills


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- TORCHRUN OPTIONS] SCRIPT [ARG]...",
            help="The script and its arguments; torchrun's own options may stand before it, behind --.",
            show_default=False,
        ),
    ] = None,
    *,
    nnodes: Annotated[
        str | None,
        typer.Option(metavar="N|MIN:MAX", help="How many nodes make up the job.", show_default=False),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The job's name, the same on all nodes. [default: the script's]"),
    ] = None,
    nproc_per_node: Annotated[
        str,
        typer.Option(
            metavar="auto|gpu|cpu|N", help="Processes on this node; auto: one a GPU, one without any."
        ),
    ] = "auto",
    master: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="The host that leads, where rank 0 runs.", show_default=False),
    ] = None,
    peers: Peers = None,
    lost_after: LostAfter = LOST_AFTER_S,
    join_timeout: JoinTimeout = JOIN_TIMEOUT_S,
    last_call: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long MIN nodes wait for more, up to MAX.")
    ] = LAST_CALL_S,
    cluster: Cluster = None,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The network to run on. [default: AVAHI_GPU_INTERFACE, else the best that all nodes share]",
        ),
    ] = None,
    key_file: KeyFile = None,
    allow_skew: Annotated[
        bool,
        typer.Option("--allow-skew", help="Let nodes with other versions of torch, NCCL, CUDA or Python in."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the environment and the torchrun command, run nothing.")
    ] = False,
) -> None:
    """Train on this node and all others that run the same command.

    Plain torchrun does the training; the nodes find each other, agree on ranks, address and port, and agree
    anew when one of them is lost. The script's exit code is the command's; 125 tells that it never ran here.
    """
    from avahi_gpu.host.key_file import find_key
    from avahi_gpu.host.system import System
    from avahi_gpu.launch import command as asked
    from avahi_gpu.launch.preflight import inspect
    from avahi_gpu.rendezvous.environment import name_choice

    with guarded("launch"):
        system = System()
        program = asked.split_words(words or [])
        settings = settle(
            system, os.environ, cluster=cluster, interface=interface, peers=peers, key_file=key_file
        )
        config = settings.config
        if nnodes is None:
            from avahi_gpu.launch.plan import suggest_nodes

            raise suggest_nodes(config.cluster)
        smallest, largest = asked.parse_nodes(nnodes)
        request = asked.Request(
            program=program,
            job=asked.check_job(job) if job is not None else asked.default_job(program),
            min_nodes=smallest,
            max_nodes=largest,
            processes=asked.parse_processes(nproc_per_node),
            cluster=config.cluster,
            master=asked.check_master(master) if master is not None else "",
            peers=config.peers,
            interface=config.interface,
            interfaces=config.interfaces,
            interface_words=name_choice(settings),
            priority=config.priority,
            lost_after_s=asked.check_seconds("--lost-after", lost_after, LOST_AFTER_MIN_S),
            join_timeout_s=asked.check_seconds("--join-timeout", join_timeout, 1.0),
            last_call_s=asked.check_seconds("--last-call", last_call, 0.0),
            allow_skew=allow_skew,
            key=find_key(system, os.environ, config.key_file),
        )
        skills = inspect(request, system)
        if dry_run:
            show_plan(request, skills, key_file)
            return
    train(request, skills)


def show_plan(request: Request, skills: Skills, key_file: str | None) -> None:
    """Print the dry run."""
    from avahi_gpu.launch.plan import make_plan
    from avahi_gpu.render.dry_run import describe_dry_run

    plan = make_plan(request, skills, key_named=key_file is not None)
    sys.stdout.write(describe_dry_run(plan.notes, plan.variables, plan.command))


def train(request: Request, skills: Skills) -> NoReturn:
    """Run the job, showing its progress on stderr; the process ends with the job's exit code."""
    from avahi_gpu.launch.job import run_job
    from avahi_gpu.launch.outcome import Stopped
    from avahi_gpu.render.waiting import Waiting, nodes_wanted

    display = Waiting(sys.stderr, request.min_nodes, request.max_nodes, limit_s=request.join_timeout_s)
    nodes = nodes_wanted(request.min_nodes, request.max_nodes)
    where = f" in cluster {request.cluster}" if request.cluster != DEFAULT_CLUSTER else ""
    display.event(f"job {request.job} of {nodes}{where}, torch {skills.torch}")
    if request.key is not None:
        display.event(f"only nodes with the cluster key {request.key.key.fingerprint} take part")
    error: AvahiGpuError | None = None
    try:
        ending = run_job(request, skills, display)
        code, error = ending.code, ending.error
    except AvahiGpuError as fault:
        code = ExitCode.USAGE if isinstance(fault, Misuse) else ExitCode.LAUNCH_FAILED
        error = fault
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Stopped as stopped:
        code = 128 + stopped.number
    display.close()
    if error is not None:
        tell_error(error)
    # all is said and done, and Python takes a second or two to take torch down in good order
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
