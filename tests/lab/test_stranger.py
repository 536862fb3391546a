"""A stranger on the LAN: it publishes itself as a job's best candidate hundreds of times, floods the control
ports, sends garbage, plays a leader and plays back what it has heard. With a cluster key the job forms and
trains all the same; without one people are told how to get one.

AVAHI_GPU_STRANGER_RECORDS=10000 asks for as many false records.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.jobs import Job, JobNode
from tests.lab.process import Follower
from tests.lab.runs import ALLREDUCE, launch, on_all

pytestmark = pytest.mark.lab

RECORDS = int(os.environ.get("AVAHI_GPU_STRANGER_RECORDS", "300"))
PUBLISH_S = 30.0 + RECORDS / 20  # avahi-daemon takes a thousand in some seconds; the machine may be busy
MEET_S = 30.0  # one second on an idle machine; avahi-daemon has hundreds of records to look through
ROUND_S = 10.0
KEY = "5c" * 32
# nobody answers at the stranger's control ports, and nobody refuses
SILENCE = """
table inet t {
  chain c {
    type filter hook input priority 0
    tcp dport 29400-29419 drop
  }
}
"""
ONLY_STRANGER = """
table inet t {
  chain c {
    type filter hook input priority 0
    iif "eth0" udp dport 5353 ip saddr != ADDRESS drop
    iif "eth0" udp dport 5353 meta nfproto ipv6 drop
  }
}
"""
ELSEWHERE = {"HOME": "/var/tmp"}  # where no key of the tester lies
SCRIPT = [sys.executable, "-m", "tests.lab.stranger_script"]


@contextmanager
def doing(host: Host, *what: str, within_s: float = ROUND_S) -> Iterator[Follower]:
    """Let the stranger do something until the end of the block."""
    follower = host.follow([*SCRIPT, *what])
    try:
        follower.wait_for("ready", within_s)
        yield follower
    finally:
        follower.end()


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """The stranger is gpu-node-1, the lowest name; the others are honest."""
    with cluster(4) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def besieged(lab: Cluster) -> Iterator[Cluster]:
    """The LAN with the stranger at its worst, as a candidate for the jobs ``job`` and ``allreduce``."""
    stranger, *honest = lab.hosts
    addresses = [host.address for host in honest]
    with (
        doing(stranger, "serve"),
        doing(stranger, "publish", "job", str(RECORDS - RECORDS // 10), within_s=PUBLISH_S),
        doing(stranger, "publish", "allreduce", str(RECORDS // 10), within_s=PUBLISH_S),
        doing(stranger, "flood", *addresses),
    ):
        yield lab


def told(node: JobNode, word: str, within_s: float = ROUND_S) -> str:
    """Return the first notice of a node that contains ``word``."""
    for line in node.lines:
        if word in line.get("notice", ""):
            return str(line["notice"])
    return str(node.wait_for("notice", within_s, lambda line: word in line["notice"])["notice"])


def test_what_was_said_once_is_worth_nothing_when_it_is_played_back(lab: Cluster) -> None:
    stranger, *honest = lab.hosts
    with Job(honest[:2], (2, 2), key=KEY) as job:
        with doing(honest[0], "listen", "/var/tmp/heard"):
            job.start()
            job.rounds(ROUND_S)
        heard = honest[0].path("/var/tmp/heard").read_bytes()
        assert b'"type":"prove"' in heard
        assert b'"type":"hello"' in heard  # sealed, and yet to be read: the key keeps nothing secret
        assert KEY.encode() not in heard
        stranger.write("/var/tmp/heard", heard)

        answer = stranger.run([*SCRIPT, "replay", "/var/tmp/heard", honest[0].address], check=True).stdout

        assert "unproven" in answer
        assert "welcome" not in answer
        assert stranger.address in told(job.nodes[0], "another address")
        job.nodes[1].kill()  # so that the wait below ends
        job.nodes[0].wait_for("over", ROUND_S)
        assert sum("over" in line for line in job.nodes[0].lines) == 1


def test_hundreds_of_records_that_lead_nowhere_keep_nobody_from_meeting_without_a_key(lab: Cluster) -> None:
    stranger, *honest = lab.hosts
    stranger.run(["nft", "-f", "-"], input=SILENCE, check=True)
    with (
        doing(stranger, "publish", "crowd", str(RECORDS), within_s=PUBLISH_S),
        Job(honest, (3, 3), job="crowd") as job,
    ):
        job.start()

        assert job.rounds(MEET_S)[0]["hosts"] == ["gpu-node-2", "gpu-node-3", "gpu-node-4"]
    stranger.run(["nft", "delete", "table", "inet", "t"], check=True)


def test_with_a_key_the_job_forms_whatever_the_stranger_does(besieged: Cluster) -> None:
    stranger, *honest = besieged.hosts
    with Job(honest, (3, 3), key=KEY) as job:
        job.start()

        rounds = job.rounds(MEET_S)

        assert rounds[0]["hosts"] == ["gpu-node-2", "gpu-node-3", "gpu-node-4"]
        for node in job.nodes:
            assert stranger.address in told(node, "does not prove the cluster key")
            text = str(node.lines)
            assert "evil" not in text
            assert "obey" not in text
            about = [line["notice"] for line in node.lines if stranger.address in line.get("notice", "")]
            assert len(about) <= 4, "people are told once of each thing"


def test_with_a_key_nodes_meet_although_only_the_records_of_the_stranger_get_through(
    besieged: Cluster,
) -> None:
    """As where avahi-daemon remembers so many false records that it takes in no others."""
    stranger, *honest = besieged.hosts
    rule = ONLY_STRANGER.replace("ADDRESS", stranger.address)
    for host in honest[:2]:
        host.run(["nft", "-f", "-"], input=rule, check=True)
    with Job(honest[:2], (2, 2), job="hidden", key=KEY) as job:
        job.start()

        assert job.rounds(MEET_S)[0]["hosts"] == ["gpu-node-2", "gpu-node-3"]
        assert any("floods the LAN" in str(node.lines) for node in job.nodes)
    for host in honest[:2]:
        host.run(["nft", "delete", "table", "inet", "t"], check=True)


def test_with_a_key_real_torch_trains_and_the_key_is_seen_nowhere(besieged: Cluster) -> None:
    _, *honest = besieged.hosts
    path = "/etc/avahi-gpu/key"
    honest[0].run(["avahi-gpu", "key", "new"], check=True, env=ELSEWHERE)
    key = honest[0].read(path)
    honest[1].write(path, key, 0o600)
    marks = [host.run(["avahi-gpu", "key", "check"], check=True, env=ELSEWHERE).stdout for host in honest[:2]]
    assert marks[0] == marks[1]
    command = launch("--nnodes", "2", ALLREDUCE)
    dry = (
        honest[0].run([*command[:2], "--dry-run", *command[2:]], check=True, timeout=60, env=ELSEWHERE).stdout
    )
    assert path in dry

    seen = [*marks, dry]
    with on_all(honest[:2], command, env=ELSEWHERE) as job:
        job[0].wait_for("round 1", 2 * MEET_S)
        for host in honest[:2]:
            for pid in host.outer_pids():
                for name in ("cmdline", "environ"):
                    with suppress(OSError):  # it has ended meanwhile
                        seen.append(Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace"))
        assert job.codes(2 * MEET_S) == [0, 0]
        assert [(rank, size, host) for rank, size, host, _ in job.sums()] == [
            (0, 2, "gpu-node-2"),
            (1, 2, "gpu-node-3"),
        ]
        seen.append(job.transcript())

    digits = key.strip()
    for text in seen:
        assert not re.search(f"{digits[:16]}|{digits[-16:]}", text, re.IGNORECASE)


def test_without_a_key_people_are_told_how_to_get_one(besieged: Cluster) -> None:
    stranger, *honest = besieged.hosts
    with Job(honest[:2], (2, 2)) as job:
        job.start()
        for node in job.nodes:
            assert "avahi-gpu key new" in told(node, stranger.address, MEET_S)
