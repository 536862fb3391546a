"""What the command line of ``launch`` asks for, and the torchrun command that means the same. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from avahi_gpu.errors import Misuse
from avahi_gpu.files.config import complain
from avahi_gpu.host.key_file import KeyFile
from avahi_gpu.model import DEFAULT_CLUSTER
from avahi_gpu.rendezvous.terms import JOIN_TIMEOUT_S, LAST_CALL_S, LOST_AFTER_S

NODES_MAX = 64  # as many as a round of the rendezvous protocol has seats
PROCESSES_MAX = 1024  # per node; more is a slip of the finger
SECONDS_MAX = 7 * 24 * 3600.0  # a week; whoever waits longer does not watch

DEVICES = ("auto", "gpu", "cpu", "xpu")  # words for --nproc-per-node; torchrun counts all but auto

# torchrun's options that take no value (torch.distributed.run.get_args_parser), needed to find the script
# among its options before torch is imported; a test compares them with the installed torch
TORCHRUN_FLAGS = ("--standalone", "--module", "--no-python", "--run-path", "--virtual-local-rank", "--help")

# those that take one and that launch leaves to the user; with OURS they are all that a word can mean
TORCHRUN_VALUES = (
    "--max-restarts",
    "--monitor-interval",
    "--start-method",
    "--event-log-handler",
    "--role",
    "--log-dir",
    "--redirects",
    "--tee",
    "--local-ranks-filter",
    "--duplicate-stdout-filters",
    "--duplicate-stderr-filters",
    "--logs-specs",
    "--numa-binding",
    "--signals-to-handle",
    "--shutdown-timeout",
    "--log-line-prefix-template",
    "--print-completion",
)

# torchrun's options that launch sets itself, and what to give instead
OURS = {
    "--nnodes": "give --nnodes before `--`",
    "--nproc-per-node": "give --nproc-per-node before `--`",
    "--rdzv-backend": "launch has one backend; use torchrun itself for another",
    "--rdzv-endpoint": "no address is needed: the nodes find each other",
    "--rdzv-id": "give the job's name by --job before `--`",
    "--rdzv-conf": "give --join-timeout, --last-call and --lost-after before `--`",
    "--standalone": "give --nnodes 1 before `--`",
    "--node-rank": "the nodes agree on their ranks; --master HOST names the first",
    "--master-addr": "give --master HOST before `--`",
    "--master-port": "a free port is found for every round",
    "--local-addr": "give --interface NAME before `--`",
}

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?")
_INTERFACE = re.compile(r"[^\s/]{1,15}")  # IFNAMSIZ, netdevice(7)
_PEER = re.compile(r"[A-Za-z0-9.:%\[\]_-]{1,255}")


@dataclass(frozen=True)
class Program:
    """What follows ``--``: torchrun's own options, the script, and the script's arguments."""

    options: tuple[str, ...]
    script: str
    arguments: tuple[str, ...]
    kind: str = "file"  # file, module (-m) or program (--no-python)


@dataclass(frozen=True)
class Request:
    """One ``launch`` as asked for, checked."""

    program: Program
    job: str
    min_nodes: int
    max_nodes: int
    processes: str = "auto"  # one of DEVICES, or a number
    cluster: str = DEFAULT_CLUSTER
    master: str = ""
    peers: tuple[str, ...] = ()
    interface: str | None = None
    interfaces: tuple[str, ...] = ()  # those that may be used; none: all
    interface_words: str = ""  # how the user said so
    priority: int = 0
    lost_after_s: float = LOST_AFTER_S
    join_timeout_s: float = JOIN_TIMEOUT_S
    last_call_s: float = LAST_CALL_S
    allow_skew: bool = False
    key: KeyFile | None = None  # None: whoever is on the LAN may join

    @property
    def certain(self) -> bool:
        """Whether nothing is left that torch alone can refuse: a number of GPUs, an option."""
        return not self.program.options and self.processes not in ("gpu", "xpu")


# --- reading the command line ------------------------------------------------------------------------------


def parse_nodes(text: str) -> tuple[int, int]:
    """Return the smallest and the largest number of nodes of ``3`` or ``2:3``. Raises Misuse."""
    found = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text.strip(), re.ASCII)
    if found is None:
        raise Misuse(f"--nnodes {text} is not a number of nodes", "write --nnodes 3, or --nnodes 2:3")
    smallest, largest = int(found[1]), int(found[2] or found[1])
    if smallest < 1:
        raise Misuse(f"--nnodes {text} asks for no node at all", "the smallest number of nodes is 1")
    if smallest > largest:
        raise Misuse(
            f"--nnodes {text} puts the larger number first",
            f"the smallest number of nodes comes first: --nnodes {largest}:{smallest}",
        )
    if largest > NODES_MAX:
        raise Misuse(
            f"--nnodes {text} is more than {NODES_MAX} nodes", "a LAN of this size needs a scheduler"
        )
    return smallest, largest


def parse_processes(text: str) -> str:
    """Return how many processes a node runs: one of ``DEVICES`` or a number. Raises Misuse."""
    word = text.strip().lower()
    if word in DEVICES:
        return word
    if not re.fullmatch(r"\d{1,6}", word, re.ASCII) or not 1 <= int(word) <= PROCESSES_MAX:
        raise Misuse(
            f"--nproc-per-node {text} is neither a number of processes nor one of {', '.join(DEVICES)}",
            "leave it out for one process on each GPU, or one in all where there is none",
        )
    return str(int(word))


def split_words(words: Sequence[str]) -> Program:
    """Return what the words behind our own options mean. Raises Misuse.

    ``["--max-restarts", "2", "train.py", "--epochs", "3"]``: torchrun's options end at the first word that is
    neither an option nor an option's value; everything behind the script is the script's own.
    """
    options: list[str] = []
    rest = list(words)
    kind = "file"
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name = _long_name(word)
        if name in OURS:
            raise Misuse(f"launch sets torchrun's {name} itself", OURS[name])
        _demand_known(word, name)
        options.append(word)
        if name == "--module":
            kind = "module"
        elif name == "--no-python":
            kind = "program"
        if _takes_value(word, name):
            if not rest:
                raise Misuse(f"torchrun's option {word} lacks its value", "and the script goes behind it")
            options.append(rest.pop(0))
    if not rest:
        raise Misuse("no script to run is named", "for example: avahi-gpu launch --nnodes 3 train.py")
    return Program(tuple(options), rest[0], tuple(rest[1:]), kind)


def _long_name(word: str) -> str:
    """Return torchrun's long name of an option as typed, with hyphens and without a value."""
    name = word.partition("=")[0].replace("_", "-")
    return "--module" if name == "-m" else "--help" if name == "-h" else name


def _demand_known(word: str, name: str) -> None:
    """Raise Misuse for a word that torchrun would refuse, before it takes the script for its value.

    torchrun takes an option that is cut short, too. One with ``=`` swallows no script: it is left to the
    installed torchrun, which may be newer than the table.
    """
    known = (*TORCHRUN_FLAGS, *TORCHRUN_VALUES, *OURS)
    if not word.startswith("--"):
        fits = word in ("-m", "-h") or word[:2] in ("-r", "-t")
    else:
        fits = "=" in word or any(option.startswith(name) for option in known)
    if not fits:
        near = difflib.get_close_matches(name, (*TORCHRUN_FLAGS, *TORCHRUN_VALUES), 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise Misuse(
            f"torchrun has no option {word}",
            f"{meant}`torchrun --help` lists them; the script's own options go behind the script",
        )


def _takes_value(word: str, name: str) -> bool:
    if not word.startswith("--"):
        return word in ("-r", "-t")  # -r3 carries its value
    return "=" not in word and not any(flag.startswith(name) for flag in TORCHRUN_FLAGS)


def default_job(program: Program) -> str:
    """Return the name of a job that was given none, the same on every node that runs the same command."""
    if program.kind == "module":
        stem = program.script.rpartition(".")[2]
    else:
        stem = PurePath(program.script).name.removesuffix(".py")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:63]
    return name or "job"


def check_job(name: str) -> str:
    """Return a job's name. Raises Misuse for one that cannot be published."""
    if not _JOB.fullmatch(name):
        raise Misuse(
            f"--job {named(name)} is not a name for a job",
            "use up to 63 letters, digits, dots, hyphens, underscores; without --job it is the script's name",
        )
    return name


def check_cluster(name: str) -> str:
    """Return a cluster's name. Raises Misuse for one that cannot be published."""
    wanted = complain("cluster", name)
    if wanted:
        raise Misuse(f"--cluster {named(name)} is not a name for a cluster", f"give {wanted}")
    return name


def check_master(host: str) -> str:
    """Return a host's bare name, without ``.local``. Raises Misuse."""
    bare = host.strip().removesuffix(".").removesuffix(".local")
    if not _HOST.fullmatch(bare) or ".." in bare:
        raise Misuse(f"--master {named(host)} is not a host name", "give it as `avahi-gpu peers` shows it")
    return bare


def check_interface(name: str | None) -> str | None:
    """Return an interface's name. Raises Misuse."""
    if name is not None and not _INTERFACE.fullmatch(name):
        raise Misuse(f"--interface {named(name)} is not the name of an interface", "`ip link` lists them")
    return name


def split_peers(text: str) -> tuple[str, ...]:
    """Return the hosts of ``A,B``. Raises Misuse."""
    peers = tuple(part.strip() for part in text.split(",") if part.strip())
    for peer in peers:
        if not _PEER.fullmatch(peer):
            raise Misuse(f"--peers names {peer}, which is no host", "give names or addresses: --peers A,B")
    if not peers:
        raise Misuse(f"--peers {named(text)} names no host", "give names or addresses: --peers A,B")
    if len(peers) > NODES_MAX:
        raise Misuse(f"--peers names more than {NODES_MAX} hosts", "name those that run the job")
    return peers


def named(value: str) -> str:
    """Return a value as a sentence shows it: one of blanks, or none at all, in quotes."""
    return value if value.strip() else repr(value)


def check_seconds(option: str, value: float, smallest: float) -> float:
    """Return a number of seconds that lies within reason. Raises Misuse."""
    if not smallest <= value <= SECONDS_MAX:
        raise Misuse(
            f"{option} {value:g} is out of bounds",
            f"give it in seconds, at least {smallest:g} and at most {SECONDS_MAX:g}",
        )
    return value


# --- torchrun ----------------------------------------------------------------------------------------------


def torchrun_arguments(request: Request, processes: int | str) -> list[str]:
    """Return the arguments of a torchrun that does the same job; ``processes`` as torchrun takes it."""
    conf = rendezvous_settings(request)
    program = request.program
    return [
        f"--nnodes={request.min_nodes}:{request.max_nodes}"
        if request.min_nodes != request.max_nodes
        else f"--nnodes={request.max_nodes}",
        f"--nproc-per-node={processes}",
        "--rdzv-backend=avahi",
        f"--rdzv-id={request.job}",
        *([f"--rdzv-conf={','.join(f'{k}={v}' for k, v in conf.items())}"] if conf else []),
        *program.options,
        program.script,
        *program.arguments,
    ]


def rendezvous_settings(request: Request) -> dict[str, str]:
    """Return what differs from the backend's defaults, by the keys that its ``--rdzv-conf`` knows."""
    found: dict[str, str] = {}
    if request.cluster != DEFAULT_CLUSTER:
        found["cluster"] = request.cluster
    if request.master:
        found["master"] = request.master
    if request.interface:
        found["interface"] = request.interface
    if request.peers:
        found["peers"] = "+".join(request.peers)  # a comma would end the value
    for key, value, default in (
        ("lost_after", request.lost_after_s, LOST_AFTER_S),
        ("last_call_timeout", request.last_call_s, LAST_CALL_S),
        ("join_timeout", request.join_timeout_s, JOIN_TIMEOUT_S),
    ):
        if value != default:
            found[key] = f"{value:g}"
    if request.allow_skew:
        found["allow_skew"] = "1"
    return found


# --- the environment ---------------------------------------------------------------------------------------


def leftovers(environ: Mapping[str, str]) -> list[str]:
    """Return the ``PET_…`` variables: torchrun takes from them every option that its command line lacks."""
    return sorted(name for name in environ if name.startswith("PET_"))
