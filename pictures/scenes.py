"""What is played on virtual hosts for the pictures: commands as anybody types them, and what they print."""

from __future__ import annotations

from collections.abc import Iterator

from pictures.terminal import draw
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.jobs import Job
from tests.lab.test_peers import become_node

HOSTS = 3
COLUMNS = 104
SUBNET = "10.77.0"
WITHIN_S = 240.0
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}  # docs/reference/jobs.md: without a name server torch warns
COLOUR = {**QUIET, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
PROMPT = "\033[32m{host}\033[0m \033[1m$ {command}\033[0m"


def play() -> Iterator[tuple[str, str]]:
    """Yield name and text of each picture of a terminal, and of the LAN."""
    with cluster(HOSTS, bare=True, subnet=SUBNET) as lab:
        yield "setup", draw("one machine becomes a node", _setup(lab), COLUMNS)
        yield "launch", draw("the same line on every machine", _launch(lab), COLUMNS)
        yield "doctor", draw("one broken host", _doctor(lab[0]), COLUMNS)
    with cluster(HOSTS, subnet=SUBNET) as lab:
        yield "lan", _lan(lab)
    with cluster(HOSTS, subnet=SUBNET) as lab:
        yield "network", _network(lab)


def _typed(host: Host, command: str) -> str:
    return PROMPT.format(host=host.name, command=command)


def _run(host: Host, command: str) -> list[str]:
    """Return the prompt, and what the command prints."""
    follower = host.follow(["sh", "-c", command.removeprefix("sudo ")], env=COLOUR)
    follower.process.wait(WITHIN_S)
    follower.wait()
    return [_typed(host, command), *follower.lines, ""]


def _setup(lab: Cluster) -> list[str]:
    for host in lab.hosts[1:]:
        host.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=WITHIN_S)
    return _run(lab[0], "sudo avahi-gpu setup --yes")[:-1]


def _launch(lab: Cluster) -> list[str]:
    lab[0].run(["avahi-gpu", "peers", "--expect", "3"], check=True, timeout=WITHIN_S)
    told = _run(lab[0], "avahi-gpu peers")
    command = "avahi-gpu launch --nnodes 3 examples/allreduce.py"
    others = [host.follow(command.split()) for host in lab.hosts[1:]]
    told += _last_of_live(_run(lab[0], command)[:-1])
    for other in others:
        other.process.wait(WITHIN_S)
        other.wait()
    return told


def _last_of_live(lines: list[str]) -> list[str]:
    """Leave out what a terminal writes over: who is there is one line that changes."""
    return [row for row in lines if "waiting for" not in row]


def _doctor(host: Host) -> list[str]:
    """Somebody has taken mDNS out of the hosts line."""
    line = host.read("/etc/nsswitch.conf")
    host.write("/etc/nsswitch.conf", "\n".join(_without_mdns(row) for row in line.splitlines()) + "\n")
    typed, *told = _run(host, "sudo avahi-gpu doctor --fix --yes")[:-1]
    first = next(n for n, row in enumerate(told) if "These changes are offered" in row)
    host.write("/etc/nsswitch.conf", "\n".join(_without_mdns(row) for row in line.splitlines()) + "\n")
    return [*_run(host, "avahi-gpu doctor"), typed, "  …", *told[first:]]


def _without_mdns(row: str) -> str:
    return "hosts: files dns" if row.startswith("hosts:") else row


def _lan(lab: Cluster) -> str:
    """Return the picture of a LAN whose third node is cut off in the middle of a job."""
    for host, records in zip(lab, GPUS, strict=True):
        become_node(host, "torch=2.13.0", *records)
    with Job(lab.hosts, (2, 3), job="llama", terms={"lost_after_s": 60}) as job:
        job.start()
        job.rounds(WITHIN_S)
        seen = lab[1].run(["avahi-gpu", "peers", "--expect", "3"], timeout=60)
        assert seen.returncode == 0, seen.stderr
        lab[2].cut()
        return lab[0].run(["avahi-gpu", "peers", "--format", "svg"], check=True, timeout=60).stdout


def _network(lab: Cluster) -> str:
    """Return the picture of a network whose third cable carries a tenth of the others."""
    for host in lab:
        host.shape(100 if host is lab[2] else 950)
    command = ["avahi-gpu", "bench", "--nnodes", str(HOSTS), "--svg", "/var/tmp/network.svg"]
    measuring = [host.follow(command, env=QUIET) for host in lab]
    codes = [follower.wait(WITHIN_S) for follower in measuring]
    assert codes == [0] * HOSTS, measuring[0].output
    return lab[0].read("/var/tmp/network.svg")


GPUS = (
    ("gpus=2", "gpu=NVIDIA GeForce RTX 4090", "vram=24564"),
    ("gpus=1", "gpu=NVIDIA RTX 6000 Ada Generation", "vram=49140"),
    ("gpus=4", "gpu=NVIDIA GeForce RTX 3090", "vram=24576"),
)
