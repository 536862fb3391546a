"""The doctor on real hosts: one thing is really broken, and the doctor names that thing and nothing else."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import Diagnosis, doctor, set_up
from tests.lab.host import Host

NSSWITCH = "/etc/nsswitch.conf"
SERVICE = "/etc/avahi/services/torch.service"
CONF = "/etc/avahi/avahi-daemon.conf"


def alone(host: Host, *arguments: str) -> Diagnosis:
    """Ask about this machine only, which spares the listening for others."""
    return doctor(host, "--ignore", "cluster", *arguments)


def mend(host: Host) -> Diagnosis:
    """Mend what is wrong with this machine."""
    return alone(host, "--fix", "--yes")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Three nodes, set up. Every test puts back what it broke."""
    with cluster(3) as lab:
        set_up(lab)
        yield lab


@pytest.fixture
def node(nodes: Cluster) -> Iterator[Host]:
    """gpu-node-1, whose files and daemon are as before after the test."""
    host = nodes[0]
    kept = {p: host.path(p).read_bytes() for p in (NSSWITCH, SERVICE, CONF, "/etc/resolv.conf", "/etc/hosts")}
    yield host
    restart = host.run(["avahi-daemon", "--check"]).returncode != 0
    for path, content in kept.items():
        file = host.path(path)
        broken = not file.exists() or file.read_bytes() != content or file.stat().st_mode & 0o777 != 0o644
        if broken:
            host.write(path, content)
            restart = restart or path in (SERVICE, CONF)
    if restart:
        host.restart_avahi()


def until(found: Callable[[], bool], within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def resolves(host: Host, name: str) -> bool:
    return host.run(["getent", "hosts", name]).returncode == 0


def is_listed_by(host: Host, name: str) -> bool:
    return name in host.run(["avahi-browse", "-rpt", "_torch._tcp"]).stdout


# --- all is well ----------------------------------------------------------------------------------------


def test_a_node_in_good_health_has_no_error_and_debians_loopback_line_is_explained(node: Host) -> None:
    found = doctor(node)

    assert (found.exit_code, found.errors, found.of("warn"), found.of("unknown")) == (0, [], [], [])
    assert found.findings["AG103"]["verdict"] == "info" and "127.0.1.1" in found.says("AG103")
    assert found.findings["AG604"]["verdict"] == "ok"
    assert found.findings["AG504"]["evidence"] == ["seen on eth0"]


def test_people_read_one_line_at_the_end(node: Host) -> None:
    shown = node.run(["avahi-gpu", "doctor"], timeout=60)

    assert shown.returncode == 0
    assert shown.stdout.splitlines()[-1].startswith("no error found (")


def test_a_monitor_reads_one_line_and_its_own_codes(node: Host) -> None:
    well = node.run(["avahi-gpu", "doctor", "--format", "nagios"], timeout=60)
    node.stop_avahi()
    ill = node.run(["avahi-gpu", "doctor", "--format", "nagios"], timeout=60)

    assert (well.returncode, well.stdout.count("\n")) == (0, 1) and well.stdout.startswith("AVAHI-GPU OK - ")
    assert (ill.returncode, ill.stdout.count("\n")) == (2, 1) and "avahi-daemon does not run" in ill.stdout


def test_a_named_peer_must_be_there(node: Host) -> None:
    there = doctor(node, "gpu-node-2")
    missing = doctor(node, "gpu-node-2", "gpu-node-9")

    assert (there.exit_code, there.errors) == (0, [])
    assert "gpu-node-3" not in there.says("AG601")
    assert (missing.exit_code, missing.errors) == (1, ["AG601"])
    assert missing.findings["AG601"]["says"] == "gpu-node-9 is not listed: nobody answers for that name"


# --- names ----------------------------------------------------------------------------------------------


def test_a_malformed_action_with_one_meaning_is_mended(node: Host) -> None:
    node.write(NSSWITCH, node.read(NSSWITCH).replace("[NOTFOUND=return]", "[NOT FOUND=return]"))
    assert node.run(["getent", "passwd", "root"]).returncode != 0  # glibc drops the whole file

    found = alone(node)

    assert (found.exit_code, found.errors) == (1, ["AG101"])
    assert f"{NSSWITCH}:6" in found.says("AG101")
    assert mend(node).errors == []
    assert resolves(node, "gpu-node-2.local")
    assert node.run(["getent", "passwd", "root"]).returncode == 0


def test_a_malformed_file_of_unclear_meaning_is_named_and_left_alone(node: Host) -> None:
    broken = node.read(NSSWITCH).replace("[NOTFOUND=return]", "[NOTFOUND=return")
    node.write(NSSWITCH, broken)

    found = mend(node)

    assert (found.exit_code, found.errors) == (1, ["AG101"])
    assert node.read(NSSWITCH) == broken


# --- bus and daemon -------------------------------------------------------------------------------------


def test_a_stopped_daemon_is_the_one_error_and_is_started(node: Host) -> None:
    node.stop_avahi()

    found = doctor(node)

    assert (found.exit_code, found.errors) == (1, ["AG304"])
    assert found.findings["AG105"]["verdict"] == "skip" and "AG304" in found.says("AG105")
    mended = mend(node)
    assert (mended.exit_code, mended.errors) == (0, [])
    assert {mended.findings[id]["verdict"] for id in ("AG304", "AG105", "AG504")} == {"ok"}


# --- the service file -----------------------------------------------------------------------------------


def test_a_removed_service_file_is_written_again(nodes: Cluster, node: Host) -> None:
    before = node.read(SERVICE)
    node.path(SERVICE).unlink()
    assert until(lambda: not is_listed_by(nodes[1], "gpu-node-1"))

    found = doctor(node)

    assert (found.exit_code, found.errors) == (1, ["AG501"])
    assert mend(node).errors == []
    assert node.read(SERVICE) == before
    assert until(lambda: is_listed_by(nodes[1], "gpu-node-1"))


def test_an_outdated_service_file_is_a_warning_and_is_renewed(node: Host) -> None:
    node.write(SERVICE, node.read(SERVICE).replace("gpus=", "gpus=99"))
    node.restart_avahi()

    found = alone(node)

    assert (found.exit_code, found.errors, found.of("warn")) == (0, [], ["AG503"])
    assert alone(node, "--fail-on", "warn").exit_code == 1
    assert mend(node).of("warn") == []


# --- the network and the others -------------------------------------------------------------------------


@contextmanager
def undone(host: Host, do: list[str], undo: list[list[str]]) -> Iterator[None]:
    host.run(do, check=True)
    try:
        yield
    finally:
        for argv in undo:
            host.run(argv, check=True)
        host.restart_avahi()


def test_an_interface_that_is_down_is_the_one_error(nodes: Cluster) -> None:
    second = nodes[1]
    up = [["ip", "link", "set", "eth0", "up"], ["ip", "route", "replace", "default", "dev", "eth0"]]
    with undone(second, ["ip", "link", "set", "eth0", "down"], up):
        found = alone(second)

    assert (found.exit_code, found.errors) == (1, ["AG201"])
    assert "eth0: is down" in found.says("AG201")


# --- who may do what ------------------------------------------------------------------------------------

AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def as_nobody(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    return host.run([*AS_NOBODY, "avahi-gpu", "doctor", *arguments], timeout=60, env={"HOME": "/nonexistent"})


def test_without_root_it_looks_but_does_not_touch(node: Host) -> None:
    well = as_nobody(node)
    node.write(NSSWITCH, node.read(NSSWITCH).replace("mdns4_minimal [NOTFOUND=return] ", ""))
    broken = node.read(NSSWITCH)
    ill = as_nobody(node, "--fix", "--yes")

    assert (well.returncode, well.stderr) == (0, ""), well.stdout
    assert ill.returncode == 4 and "root" in ill.stderr and "Traceback" not in ill.stderr
    assert node.read(NSSWITCH) == broken


def test_fix_asks_and_does_nothing_where_nobody_can_answer(node: Host) -> None:
    node.write(NSSWITCH, node.read(NSSWITCH).replace("mdns4_minimal [NOTFOUND=return] ", ""))
    broken = node.read(NSSWITCH)

    asked = node.run(["avahi-gpu", "doctor", "--fix"], timeout=60)

    assert asked.returncode == 2 and "--yes" in asked.stderr
    assert node.read(NSSWITCH) == broken


def test_with_nothing_to_mend_nothing_is_asked(node: Host) -> None:
    done = node.run(["avahi-gpu", "doctor", "--ignore", "cluster", "--fix"], timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "There is nothing to mend."


def test_only_what_was_asked_for_is_mended(node: Host) -> None:
    node.stop_avahi()
    node.write(NSSWITCH, node.read(NSSWITCH).replace("mdns4_minimal [NOTFOUND=return] ", ""))

    done = doctor(node, "--only", "AG104", "--fix", "--yes")

    assert (done.exit_code, list(done.findings)) == (0, ["AG104"])
    assert "mdns4_minimal" in node.read(NSSWITCH)
    assert node.run(["avahi-daemon", "--check"]).returncode != 0


def test_a_fix_that_did_not_help_is_said_so(node: Host) -> None:
    node.stop_avahi()
    node.write("/etc/lab/bin/avahi-daemon", "#!/bin/sh\n", 0o755)  # ends well, and starts nothing
    line = "PATH=/etc/lab/bin:$PATH exec avahi-gpu doctor --only AG304 --fix --yes"

    done = node.run(["sh", "-c", line], timeout=60)

    assert done.returncode == 1
    assert done.stderr.startswith("avahi-gpu: start avahi-daemon: done, and it did not help: ")
    assert "1 error" in done.stdout


def test_the_last_mending_alone_is_taken_back(node: Host) -> None:
    node.run(["rm", "-rf", "/var/lib/avahi-gpu"], check=True)
    good = node.read(NSSWITCH)
    first, second = good.replace("mdns4_minimal [NOTFOUND=return] ", ""), good.replace("[NOT", "[NOT ")
    service = node.read(SERVICE)
    node.write(NSSWITCH, first)
    assert mend(node).errors == []
    node.write(NSSWITCH, second)
    node.write(SERVICE, service.replace("gpus=", "gpus=9"))
    shown = node.run(["avahi-gpu", "doctor", "--ignore", "cluster", "--fix", "--yes"], check=True, timeout=60)
    assert "avahi-gpu undo --last takes back what was changed now." in shown.stdout

    last = node.run(["avahi-gpu", "undo", "--last", "--yes"], check=True, timeout=60)

    assert last.stdout.startswith("The last run was: doctor --fix 2")
    assert (node.read(NSSWITCH), node.read(SERVICE)) == (second, service.replace("gpus=", "gpus=9"))
    assert mend(node).errors == []  # so that the next one stands on what the first left
    node.run(["avahi-gpu", "undo", "--last", "--yes"], check=True, timeout=60)
    node.write(NSSWITCH, good)
    node.run(["avahi-gpu", "undo", "--last", "--yes"], check=True, timeout=60)
    assert node.read(NSSWITCH) == first


def test_undo_takes_back_what_fix_did(node: Host) -> None:
    broken = node.read(NSSWITCH).replace("mdns4_minimal [NOTFOUND=return] ", "")
    node.run(["avahi-gpu", "undo", "--yes"], check=True, timeout=60)
    node.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=60)
    node.run(["rm", "-rf", "/var/lib/avahi-gpu"], check=True)  # from here on the journal is doctor's alone
    node.write(NSSWITCH, broken)
    assert mend(node).errors == []
    assert node.read(NSSWITCH) != broken

    node.run(["avahi-gpu", "undo", "--yes"], check=True, timeout=60)

    assert node.read(NSSWITCH) == broken


def test_a_report_tells_the_findings_and_nothing_about_people(node: Host, tmp_path: Path) -> None:
    node.stop_avahi()
    file = tmp_path / "report.md"
    node.write(
        "/etc/hosts", node.read("/etc/hosts") + "10.0.0.9 nas /home/margaret/share 02:42:ac:11:00:02\n"
    )

    done = node.run(["avahi-gpu", "doctor", "--report", str(file)], timeout=60, env={"USER": "margaret"})

    text = file.read_text(encoding="utf-8")
    assert done.returncode == 1
    assert "**error** AG304" in text and "10.0.0.9 nas" in text
    assert "margaret" not in text and "02:42" not in text
    assert node.read("/etc/machine-id").strip() not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "AG999"],
        ["--ignore", "nonsense"],
        ["--yes"],
        ["--report", "/nowhere/at/all"],
        ["--report="],
        ["--report", "/etc"],
        ["--list", "--fix"],
        ["--list", "--only", "AG999"],
        ["--list", "--format", "nagios"],
    ],
)
def test_a_wrong_command_line_is_said(arguments: list[str], node: Host) -> None:
    done = node.run(["avahi-gpu", "doctor", *arguments], timeout=60)

    assert done.returncode == 2
    assert done.stderr.startswith("avahi-gpu: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--report="], ["--format", "nagios"], ["--fail-on", "x"], ["--nope"]])
def test_a_wrong_command_line_is_said_to_programs_too(arguments: list[str], node: Host) -> None:
    done = node.run(["avahi-gpu", "doctor", "--json", *arguments], timeout=60)

    told = json.loads(done.stdout)
    assert (done.returncode, told["exit_code"], [e["code"] for e in told["errors"]]) == (2, 2, ["usage"])


@pytest.mark.parametrize("arguments", [["--fix"], ["--report", "/etc/lab/x"], ["--yes"], ["--only", "AG999"]])
def test_a_monitor_only_looks(arguments: list[str], node: Host) -> None:
    done = node.run(["avahi-gpu", "doctor", "--format", "nagios", *arguments], timeout=60)

    assert (done.returncode, done.stdout.count("\n")) == (3, 1)
    assert done.stdout.startswith("AVAHI-GPU UNKNOWN - ")


def test_the_list_is_of_what_would_be_asked(node: Host) -> None:
    done = node.run(["avahi-gpu", "doctor", "--list", "--only", "gpu", "--ignore", "AG402"], check=True)

    assert done.stdout.split()[:2] == ["AG401", "gpu"]
    assert "AG402" not in done.stdout and "AG104" not in done.stdout
