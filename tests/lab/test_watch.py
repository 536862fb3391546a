"""``avahi-gpu peers --watch`` on a real LAN: who comes, dies, revives and goes."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml import make_library
from tests.lab.cluster import Cluster, cluster
from tests.lab.driver import BUSY_S
from tests.lab.host import Host
from tests.lab.jobs import Job
from tests.lab.process import Follower
from tests.lab.screen import Session
from tests.lab.test_peers import become_node

WATCH = ("avahi-gpu", "peers", "--watch")
COME_S, DEAD_S, BACK_S = 2.0, 3.0, 3.0  # what is promised
STARTED_S = 20.0  # Python starts beside seven others
FILE = "/etc/avahi/services/torch.service"


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Three hosts, two of them nodes; each test leaves it so."""
    with cluster(3) as hosts:
        become_node(hosts[0], "gpus=2", "gpu=RTX 4090", "vram=24564")
        become_node(hosts[1], "gpus=1", "gpu=RTX 3090", "vram=24564")
        yield hosts


def event_of(line: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(line)
    return told


def wait_for_event(follower: Follower, kind: str, name: str, within_s: float, after: int = 0) -> int:
    """Wait for such an event of a node ('' for none); return the number of its line."""
    end = time.monotonic() + within_s
    while True:
        after = follower.wait_for(f'"event": "{kind}"', max(0.01, end - time.monotonic()), after=after)
        event = event_of(follower.lines[after])
        if (event["node"] or {"name": ""})["name"] == name:
            return after
        after += 1


def readdress(host: Host, last: int) -> str:
    """Give a host another address of its network; return it."""
    address = f"{host.address.rpartition('.')[0]}.{last}"
    for words in ("addr flush dev eth0 scope global", f"addr add {address}/24 dev eth0"):
        host.run(["ip", *words.split()], check=True)
    return address


def test_comings_deaths_and_returns_are_seen_in_time_and_keys_sort(lab: Cluster) -> None:
    with Session(lab[0], WATCH, columns=130) as session:
        session.wait_until(lambda _: "alive" in session.line_of("gpu-node-2"), STARTED_S)
        become_node(lab[2], "gpus=8", "gpu=H100", "vram=81559")
        assert session.wait_until(lambda _: session.line_of("gpu-node-3")) < COME_S + BUSY_S
        session.wait_until(lambda lines: lines[0] == "3 nodes, 3 alive")

        lab[1].cut()
        assert session.wait_until(lambda _: "no answer" in session.line_of("gpu-node-2")) < DEAD_S + BUSY_S
        session.wait_until(lambda _: re.search(r"\b([5-9]|\d\d) s ago$", session.line_of("gpu-node-2")))
        session.wait_until(lambda lines: lines[0] == "3 nodes, 2 alive, 1 silent")
        lab[1].heal()
        assert session.wait_until(lambda _: "alive" in session.line_of("gpu-node-2")) < BACK_S + BUSY_S

        assert session.screen.lines[1].split()[:5] == ["NODE", "STATE", "RTT", "ADDRESS", "VIA"]
        session.wait_until(lambda _: re.search(r" ms .* 10 Gbit/s ", session.line_of("gpu-node-2")))
        for keys, order in (("g", "312"), ("g", "213"), ("a", "123"), ("n", "123"), ("n", "321")):
            session.press(keys)
            session.wait_until(lambda lines, o=order: [x[9] for x in lines[2:5]] == list(o))

        lab[2].run(["rm", FILE], check=True)
        lab[2].restart_avahi()
        session.wait_until(lambda _: " left " in session.line_of("gpu-node-3"))
        session.press("x\x1b[5~q")
        assert session.wait() == 0
        assert session.restored


def test_the_terminal_is_given_back_whatever_comes(lab: Cluster) -> None:
    with Session(lab[0], WATCH) as session:
        session.wait_until(lambda _: session.line_of("gpu-node-2"), STARTED_S)
        assert session.screen.other and not session.screen.cursor_shown

        for columns, rows in ((40, 8), (20, 3), (200, 50), (130, 24)):  # it is drawn anew, and fits
            session.resize(columns, rows)
            session.wait_until(lambda _: session.line_of("gpu-node-1") and not session.screen.too_wide)

        session.press("\x1a")  # Ctrl-Z
        session.wait_until(lambda _: session.restored)
        session.signal(signal.SIGCONT)
        session.wait_until(lambda _: session.screen.other and session.line_of("gpu-node-2"))

        session.press("\x03")  # Ctrl-C
        assert session.wait() == 130
        assert session.restored
        assert session.screen.lines[0] == "avahi-gpu: interrupted"

    # Ctrl-\ amid keys that it throws away
    for number, keys in ((signal.SIGTERM, ""), (signal.SIGQUIT, "nsa" * 8 + "\x1c")):
        with Session(lab[0], WATCH) as session:
            session.wait_until(lambda _, s=session: s.line_of("gpu-node-2"), STARTED_S)
            session.press(keys) if keys else session.signal(number)
            assert session.wait() == 130
            assert session.restored and "Traceback" not in session.raw


def test_it_ends_when_nobody_is_there_to_look(lab: Cluster) -> None:
    """The terminal is gone and SIGHUP is ignored, or the reader of a pipe has left a LAN that is quiet."""
    with Session(
        lab[0], ("sh", "-c", "trap '' HUP; exec avahi-gpu peers --watch 2>/run/watch-err")
    ) as session:
        session.wait_until(lambda _: session.line_of("gpu-node-2"), STARTED_S)
        session.hang_up()
        assert session.process.wait(STARTED_S) == 130
        assert lab[0].read("/run/watch-err").strip() == "avahi-gpu: interrupted"

    pipe = "avahi-gpu peers --watch | head -1; echo ${PIPESTATUS[0]}"
    assert lab[0].run(["bash", "-c", pipe], timeout=3 * STARTED_S).stdout.splitlines()[1:] == ["0"]
    pipe = "avahi-gpu jobs --watch | head -c 0; echo ${PIPESTATUS[0]}"
    assert lab[0].run(["bash", "-c", pipe], timeout=3 * STARTED_S).stdout.split() == ["0"]


def test_events_on_a_pipe_survive_a_new_daemon_and_a_change_of_network(lab: Cluster) -> None:
    """One host watches: its own daemon is restarted, its cable is out for a while, its address changes."""
    watching = lab[0].follow([*WATCH, "--json"])
    plain = lab[0].follow(WATCH)
    for name in ("gpu-node-1", "gpu-node-2"):
        wait_for_event(watching, "joined", name, STARTED_S)
        plain.wait_for(f"joined     {name}", STARTED_S)

    lab[0].stop_avahi()
    gone = wait_for_event(watching, "avahi", "", 3 + BUSY_S)
    lab[1].cut()
    dead = wait_for_event(
        watching, "dead", "gpu-node-2", DEAD_S + BUSY_S, gone
    )  # nobody needs Avahi for that
    lab[1].heal()
    wait_for_event(watching, "alive", "gpu-node-2", BACK_S + BUSY_S, dead)
    lab[0].start_avahi()
    back = wait_for_event(watching, "avahi", "", 3 + BUSY_S, gone + 1)
    assert "back" in event_of(watching.lines[back])["says"]

    lab[0].cut()
    out = wait_for_event(watching, "network", "", 3 + BUSY_S, back)
    assert "eth0 has lost its connection" in event_of(watching.lines[out])["says"]
    dead = wait_for_event(watching, "dead", "gpu-node-2", DEAD_S + BUSY_S, back)  # it has not left
    lab[0].heal()
    alive = wait_for_event(watching, "alive", "gpu-node-2", BACK_S + BUSY_S, dead)

    try:
        there = readdress(lab[1], 99)
        moved = wait_for_event(watching, "moved", "gpu-node-2", 10 + BUSY_S, alive)
        assert event_of(watching.lines[moved])["node"]["address"] == there
        wait_for_event(watching, "alive", "gpu-node-2", 5 + BUSY_S, moved)
        own = readdress(lab[0], 98)
        new = wait_for_event(watching, "network", "", 5 + BUSY_S, moved)
        while own not in event_of(watching.lines[new])["says"]:  # for a moment it had none
            new = wait_for_event(watching, "network", "", 5 + BUSY_S, new + 1)
        end = time.monotonic() + 10 + BUSY_S
        while event_of(watching.lines[new])["node"] is None or own not in watching.lines[new]:
            new = wait_for_event(watching, "moved", "gpu-node-1", end - time.monotonic(), new + 1)
    finally:
        readdress(lab[1], 2)
        readdress(lab[0], 1)

    plain.wait_for("answers    gpu-node-2")
    told = [event_of(line) for line in watching.lines]
    assert not [e for e in told if e["event"] == "left"]
    assert [line.split(maxsplit=1)[1] for line in plain.lines[:2]] == [
        f"joined     gpu-node-1 (this machine)  {lab[0].address}",
        f"joined     gpu-node-2  {lab[1].address}",
    ]
    plain.ctrl_c()
    watching.ctrl_c()
    assert (plain.wait(), watching.wait()) == (130, 130)
    assert "Traceback" not in plain.output + watching.output


def test_a_number_of_nodes_and_a_time_and_a_cluster(lab: Cluster) -> None:
    enough = lab[0].follow([*WATCH, "--json", "--expect", "2", "--timeout", "3"])
    too_few = lab[0].follow([*WATCH, "--expect", "1", "--timeout", "2", "--cluster", "other"])

    assert too_few.wait() == 3, too_few.output
    assert "joined" not in too_few.output and "0 of 1 nodes are there" in too_few.output
    assert enough.wait() == 0, enough.output
    kinds = [event_of(line).get("event") for line in enough.lines]
    assert sorted(map(str, kinds)) == ["None", "complete", "joined", "joined"]
    assert event_of(enough.lines[-1])["exit_code"] == 0  # the usual object ends it


def test_jobs_and_free_memory_are_shown_as_they_change(lab: Cluster, tmp_path: Path) -> None:
    library = make_library(tmp_path)
    env = {"LD_LIBRARY_PATH": str(tmp_path), "FAKE_NVML": "/etc/lab/nvml"}
    card = "550.90.07;12040;NVIDIA GeForce RTX 4090;24564;8;9;"
    lab[0].write("/etc/lab/nvml", card + "20480\n")

    with Session(lab[0], WATCH, columns=160, **env) as session, Job(lab.hosts[:2], (2, 2)) as job:
        session.wait_until(lambda _: "alive" in session.line_of("gpu-node-2"), STARTED_S)
        if library is not None:  # without a compiler there is no driver to ask
            session.wait_until(lambda _: " 20 GiB " in session.line_of("gpu-node-1"))
            lab[0].write("/etc/lab/nvml", card + "1024\n")
            session.wait_until(lambda _: " 1 GiB " in session.line_of("gpu-node-1"))
            session.wait_until(lambda _: " -  " in session.line_of("gpu-node-2"))  # it does not tell
        job.start()
        job.rounds(20)
        for rank, name in enumerate(("gpu-node-1", "gpu-node-2")):
            session.wait_until(lambda _, r=rank, n=name: f"rank {r} of 2 in job" in session.line_of(n))
        for node in reversed(job.nodes):
            node.close()
        session.wait_until(lambda _: "rank" not in session.line_of("gpu-node-2"))
        session.wait_until(lambda lines: "is not in job any more" in "".join(lines))


@pytest.mark.faults
def test_a_flood_of_records_hides_nobody(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(3)
    become_node(lab[0])
    become_node(lab[1])
    with Session(lab[0], WATCH) as session:
        session.wait_until(lambda _: "alive" in session.line_of("gpu-node-2"), STARTED_S)
        lab[2].stop_avahi()
        service = (
            "<service-group><name>evil-{}</name><service><type>_torch._tcp</type><port>{}</port></service>"
        )
        for number in range(400):
            text = service.format(number, 1 + number) + "</service-group>"
            lab[2].write(f"/etc/avahi/services/{number}.service", text)
        lab[2].start_avahi(settle=False)
        session.wait_until(lambda lines: int(lines[0].split()[0]) > 300, 90)
        lab[1].cut()
        dead = session.wait_until(lambda _: " no answer  gpu-node-2" in session.raw.replace("\x1b", ""), 30)
        session.press("q")
        assert session.wait(30) == 0 and session.restored
        assert dead < 2 * DEAD_S + BUSY_S
