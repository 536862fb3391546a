"""The harness itself: hosts are real, faults are real, and nothing stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, cluster, processes_of
from tests.lab.host import REPOSITORY
from tests.lab.process import CommandFailed

MakeCluster = Callable[..., Cluster]


def hosts_line(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("hosts:"))


def reaches(lab: Cluster, source: int, target: int) -> bool:
    return lab[source].run(["ping", "-c1", "-W1", lab[target].address]).returncode == 0


def until(found: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(token: str) -> bool:
    return until(lambda: not processes_of(token))


# --- what a host is -------------------------------------------------------------------------------------


def test_a_link_out_of_the_host_is_not_written_through(shared_cluster3: Cluster) -> None:
    host = shared_cluster3[0]
    host.run(["ln", "-s", "../usr/lib/no-such-file", "/etc/astray"], check=True)

    with pytest.raises(ValueError, match="/usr/lib/no-such-file"):
        host.write("/etc/astray", "x")

    assert not Path("/usr/lib/no-such-file").exists()
    host.run(["rm", "/etc/astray"], check=True)


def test_a_peer_resolves_through_glibc(shared_cluster3: Cluster) -> None:
    answer = shared_cluster3[0].run(["getent", "hosts", "gpu-node-2.local"], check=True)

    assert answer.stdout.split() == [shared_cluster3[1].address, "gpu-node-2.local"]


def test_every_host_sees_every_name_with_avahi_browse(shared_cluster3: Cluster) -> None:
    """A service file on one host is listed and resolved on the two others."""
    file = "/etc/avahi/services/probe.service"
    content = (
        "<?xml version='1.0'?><!DOCTYPE service-group SYSTEM 'avahi-service.dtd'>"
        "<service-group><name>probe</name><service><type>_probe._tcp</type><port>1</port></service>"
        "</service-group>"
    )
    shared_cluster3[0].write(file, content)
    try:
        time.sleep(1.5)  # the daemon probes for a second before it announces
        for host in shared_cluster3.hosts[1:]:
            listed = host.run(["avahi-browse", "-rpt", "_probe._tcp"], check=True).stdout
            assert f";gpu-node-1.local;{shared_cluster3[0].address};1;" in listed
    finally:
        shared_cluster3[0].path(file).unlink()


def test_hosts_have_debians_stock_etc_hosts_and_their_own_machine_id(shared_cluster3: Cluster) -> None:
    for host in shared_cluster3:
        assert host.read("/etc/hosts") == f"127.0.0.1\tlocalhost\n127.0.1.1\t{host.name}\n"
        assert host.run(["hostname"], check=True).stdout.strip() == host.name
        assert host.run(["cat", "/var/lib/dbus/machine-id"], check=True).stdout.strip() == host.machine_id
    assert len({host.machine_id for host in shared_cluster3}) == 3


def test_a_dead_name_server_is_refused_at_once(shared_cluster3: Cluster) -> None:
    """No look-up of the lab waits for DNS."""
    start = time.monotonic()
    answer = shared_cluster3[0].run(["getent", "hosts", "nowhere.example"])

    assert answer.returncode == 2
    assert time.monotonic() - start < 1.0


def test_files_written_in_a_host_do_not_reach_the_machine(shared_cluster3: Cluster) -> None:
    host = shared_cluster3[0]
    host.write("/etc/avahi-gpu-lab-probe", "there", mode=0o600)

    assert host.run(["cat", "/etc/avahi-gpu-lab-probe"], check=True).stdout == "there"
    assert host.run(["stat", "-c%a", "/etc/avahi-gpu-lab-probe"]).stdout.strip() == "600"
    assert shared_cluster3[1].run(["test", "-e", "/etc/avahi-gpu-lab-probe"]).returncode == 1
    assert not Path("/etc/avahi-gpu-lab-probe").exists()
    host.path("/etc/avahi-gpu-lab-probe").unlink()


def test_a_host_has_its_own_sys_and_proc(shared_cluster3: Cluster) -> None:
    host = shared_cluster3[0]

    assert host.run(["ls", "/sys/class/net"], check=True).stdout.split() == ["eth0", "lo"]
    assert "boot.py" in host.run(["cat", "/proc/1/cmdline"], check=True).stdout


def test_a_bare_host_is_as_before_setup(make_cluster: MakeCluster) -> None:
    """The bus runs, avahi-daemon does not, nothing is published, and glibc does not ask mDNS."""
    host = make_cluster(1, bare=True)[0]

    assert host.run(["avahi-daemon", "--check"]).returncode != 0
    assert (
        host.run(
            [
                "dbus-send",
                "--system",
                "--print-reply",
                "--dest=org.freedesktop.DBus",
                "/",
                "org.freedesktop.DBus.GetId",
            ]
        ).returncode
        == 0
    )
    assert hosts_line(host.read("/etc/nsswitch.conf")).split() == ["hosts:", "files", "dns"]
    assert list(host.path("/etc/avahi/services").glob("*.service")) == []
    assert host.run(["getent", "hosts", "gpu-node-1.local"]).returncode == 2


def test_the_repository_and_its_python_are_there(shared_cluster3: Cluster) -> None:
    answer = shared_cluster3[0].run(
        [sys.executable, "-c", "import avahi_gpu, os; print(os.getcwd())"], check=True
    )

    assert answer.stdout.strip() == str(REPOSITORY)


# --- commands -------------------------------------------------------------------------------------------


def test_run_gives_output_exit_code_and_takes_input(shared_cluster3: Cluster) -> None:
    answer = shared_cluster3[0].run(["sh", "-c", "cat; echo err >&2; exit 7"], input="in\n")

    assert (answer.returncode, answer.stdout, answer.stderr) == (7, "in\n", "err\n")


def test_a_failed_command_shows_what_it_said(shared_cluster3: Cluster) -> None:
    with pytest.raises(CommandFailed, match="such a pity"):
        shared_cluster3[0].run(["sh", "-c", "echo such a pity >&2; exit 1"], check=True)


def test_a_missing_command_is_exit_code_127(shared_cluster3: Cluster) -> None:
    answer = shared_cluster3[0].run(["no-such-command"])

    assert answer.returncode == 127
    assert "no-such-command" in answer.stderr


def test_a_timeout_ends_the_command_and_its_children(shared_cluster3: Cluster) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        shared_cluster3[0].run(["sh", "-c", "sleep 60 & sleep 60; true"], timeout=0.3)

    assert shared_cluster3.strangers() == []


def test_signals_reach_the_command(shared_cluster3: Cluster) -> None:
    process = shared_cluster3[0].follow(
        ["sh", "-c", "trap 'echo told; exit 3' TERM; echo up; while :; do sleep 0.05; done"]
    )
    process.wait_for("up")
    process.process.terminate()
    process.wait_for("told")

    assert process.wait() == 3
    process.end()


def test_death_by_signal_is_seen_outside(shared_cluster3: Cluster) -> None:
    assert shared_cluster3[0].run(["sh", "-c", "kill -9 $$"]).returncode == -signal.SIGKILL


def test_killing_the_popen_kills_the_command(shared_cluster3: Cluster) -> None:
    process = shared_cluster3[0].follow(["sh", "-c", "echo up; exec sleep 60"])
    process.wait_for("up")
    process.kill()

    assert process.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 2
    while shared_cluster3.strangers() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert shared_cluster3.strangers() == []
    process.end()


def test_ctrl_c_reaches_the_whole_group_once(shared_cluster3: Cluster) -> None:
    child = "trap 'echo child told; exit 0' INT; echo up; while :; do sleep 0.05; done"
    parent = "trap 'echo parent told; exit 130' INT; sh -c \"$1\"; true"
    process = shared_cluster3[0].follow(["sh", "-c", parent, "sh", child])
    process.wait_for("up")
    process.ctrl_c()

    assert process.wait() == 130
    assert process.lines == ["up", "child told", "parent told"]
    process.end()


def test_follow_says_what_was_printed_when_the_awaited_line_does_not_come(shared_cluster3: Cluster) -> None:
    process = shared_cluster3[0].follow(["echo", "something else"])
    with pytest.raises(AssertionError, match="something else"):
        process.wait_for("never printed", 5)

    assert process.wait() == 0
    process.end()


# --- faults ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", [False, True])
def test_cut_cuts_and_heal_heals(shared_cluster3: Cluster, carrier: bool) -> None:
    assert reaches(shared_cluster3, 0, 1)

    shared_cluster3[1].cut(carrier=carrier)
    seen = shared_cluster3[1].read("/sys/class/net/eth0/carrier").strip()
    assert not reaches(shared_cluster3, 0, 1)
    assert not reaches(shared_cluster3, 1, 0)
    assert reaches(shared_cluster3, 0, 2)
    shared_cluster3[1].heal()

    assert seen == str(int(carrier))
    assert reaches(shared_cluster3, 0, 1)


def test_kill_takes_the_host_away_without_a_goodbye(make_cluster: MakeCluster) -> None:
    """Established connections of the others see silence, as after a power cut, and nothing of it runs on."""
    lab = make_cluster(2, avahi=False)
    serve = (
        "import socket; s = socket.create_server(('', 5000)); print('up', flush=True);"
        "c = s.accept()[0]; c.recv(1)"
    )
    ask = (
        "import socket; s = socket.create_connection(('ADDRESS', 5000)); print('connected', flush=True);"
        "s.settimeout(1.5); print(s.recv(1))"
    ).replace("ADDRESS", lab[0].address)
    server = lab[0].follow([sys.executable, "-c", serve])
    server.wait_for("up")
    client = lab[1].follow([sys.executable, "-c", ask])
    client.wait_for("connected")
    pids = lab[0].outer_pids()
    lab[0].kill()

    assert len(pids) >= 3
    assert [pid for pid in pids if Path(f"/proc/{pid}/ns/pid").exists()] == []
    client.wait_for("TimeoutError", 5)
    client.wait()
    client.end()
    server.end()


def test_a_frozen_host_answers_ping_but_runs_nothing(make_cluster: MakeCluster) -> None:
    lab = make_cluster(2, avahi=False)
    clock = lab[0].follow(["sh", "-c", "while :; do echo tick; sleep 0.05; done"])
    clock.wait_for("tick")
    lab[0].freeze()
    time.sleep(0.2)
    count = len(clock.lines)
    time.sleep(0.4)
    assert len(clock.lines) == count
    assert reaches(lab, 1, 0)
    lab[0].thaw()

    clock.wait_for("tick", 5, after=count)


def test_avahi_can_be_stopped_and_started(make_cluster: MakeCluster) -> None:
    lab = make_cluster(2)
    lab[1].stop_avahi()
    assert lab[1].run(["getent", "hosts", "gpu-node-1.local"]).returncode == 2
    lab[1].start_avahi()

    assert lab[1].run(["getent", "hosts", "gpu-node-1.local"]).returncode == 0


# --- side by side, and nothing left ---------------------------------------------------------------------


def test_two_clusters_side_by_side_do_not_see_each_other(make_cluster: MakeCluster) -> None:
    first, second = make_cluster(2), make_cluster(1)

    assert first.subnet != second.subnet
    assert first[0].run(["getent", "hosts", "gpu-node-2.local"]).returncode == 0
    with pytest.raises(subprocess.TimeoutExpired):
        second[0].run(["avahi-resolve", "-4n", "gpu-node-2.local"], timeout=1.5)
    assert first[0].run(["ping", "-c1", "-W1", second[0].address]).returncode != 0


def test_an_exception_in_the_block_leaves_nothing() -> None:
    class Broken(Exception):
        pass

    token = ""
    with pytest.raises(Broken), cluster(2) as lab:
        token = lab.token
        lab[0].popen(["sleep", "60"])
        assert processes_of(token)
        raise Broken

    assert processes_of(token) == []


def test_a_host_that_cannot_boot_is_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "dbus-daemon"
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setattr(
        "tests.lab.host.Host._environment",
        lambda self, more: {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin", "AVAHI_GPU_LAB": "broken-boot"},
    )
    with pytest.raises(Exception, match="dbus-daemon did not start: exit code 9"), cluster(1):
        pass

    assert gone("broken-boot")


SCRIPT = """
import sys, time
from tests.lab.cluster import cluster
with cluster(2) as lab:
    work = [host.popen(["sh", "-c", "sleep 60 & setsid sleep 60 & sleep 60"]) for host in lab]
    print(lab.token, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_script_that_is_ended_by_a_signal_leaves_nothing(number: signal.Signals) -> None:
    """Ctrl-C, kill and even kill -9 of the maker: the hosts notice by themselves."""
    mounts = Path("/proc/self/mountinfo").read_text()
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert script.stdout is not None
    token = script.stdout.readline().strip()
    assert re.fullmatch(r"\d+-\d+", token)
    assert until(lambda: len(processes_of(token)) >= 8)  # the last of them is still being started
    script.send_signal(number)
    script.wait(10)
    script.stdout.close()

    assert gone(token)
    ours = {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "overlay" in line}
    assert ours <= set(mounts.splitlines())
    assert f"lab-{os.getpid()}" not in os.listdir("/run")


ORPHANS = """
import subprocess
from tests.lab.cluster import cluster
with cluster(1, avahi=False) as lab:
    killed = lab[0].follow(["sh", "-c", "echo up; exec sleep 60"])
    killed.wait_for("up")
    killed.kill()
    killed.wait(5)
    try:
        lab[0].run(["sleep", "60"], timeout=0.5)
    except subprocess.TimeoutExpired:
        print("all is well")
"""
INIT = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"


def test_a_machine_whose_process_1_buries_nobody_is_fine() -> None:
    """As in many a container: what is orphaned there stays a zombie, and must not keep a host from ending."""
    outcome = subprocess.run(
        ["unshare", "--fork", "--pid", "--mount-proc", sys.executable, "-c", INIT, "-c", ORPHANS],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (outcome.returncode, outcome.stdout) == (0, "all is well\n"), outcome.stderr


def test_nothing_of_a_cluster_has_a_name_in_the_outer_machine(make_cluster: MakeCluster) -> None:
    """No interface, no named namespace, no mount: there is nothing that could be left behind."""
    lab = make_cluster(1)

    assert lab.subnet not in subprocess.run(["ip", "addr"], capture_output=True, text=True, check=True).stdout
    assert "gpu-node" not in Path("/proc/self/mountinfo").read_text()
    own = {Path(f"/proc/self/ns/{name}").readlink() for name in ("net", "mnt", "uts", "ipc", "pid")}
    theirs = {
        Path(f"/proc/{lab[0].pid}/ns/{name}").readlink() for name in ("net", "mnt", "uts", "ipc", "pid")
    }
    assert not own & theirs
