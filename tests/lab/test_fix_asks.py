"""``doctor --fix`` at a real terminal: it asks, and asks on its own for what touches the firewall."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import doctor, set_up
from tests.lab.host import Host

NSSWITCH = "/etc/nsswitch.conf"
WALL = "table inet filter {\nchain input {\ntype filter hook input priority 0;\nudp dport 5353 drop\n}\n}\n"
FIX = ["avahi-gpu", "doctor", "--only", "AG104", "--only", "AG204", "--fix"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(2) as lab:
        set_up(lab, forget=True)
        yield lab


@pytest.fixture
def host(lab: Cluster) -> Iterator[Host]:
    """A node with a wrong hosts line and a firewall that lets no mDNS in."""
    host = lab[0]
    good = host.read(NSSWITCH)
    host.write(NSSWITCH, good.replace("mdns4_minimal [NOTFOUND=return] ", ""))
    host.run(["nft", "-f", "-"], input=WALL, check=True)
    yield host
    host.run(["nft", "flush", "ruleset"], check=True)
    host.write(NSSWITCH, good)
    host.run(["rm", "-rf", "/var/lib/avahi-gpu"], check=True)


def on_a_terminal(host: Host, argv: list[str], answers: str, *, interrupt_at: str = "") -> tuple[int, str]:
    """Run a command whose terminal gets these answers typed; return its exit code and what it showed.

    ``interrupt_at``: what is shown when Ctrl-C is pressed.
    """
    ours, theirs = pty.openpty()
    process = host.popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    os.write(ours, answers.encode())
    shown = b""
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline and select.select([ours], [], [], 60)[0]:
            part = os.read(ours, 65536)
            shown += part
            if interrupt_at and interrupt_at.encode() in shown:
                process.ctrl_c()
                interrupt_at = ""
            if not part:
                break
    except OSError:  # EIO: the last process that held the terminal has ended
        pass
    finally:
        os.close(ours)
    return process.wait(30), shown.decode()


def ruleset(host: Host) -> str:
    return host.run(["nft", "--stateless", "list", "ruleset"], check=True).stdout


def test_the_firewall_has_a_question_of_its_own(host: Host) -> None:
    before = ruleset(host)

    code, shown = on_a_terminal(host, FIX, "y\nn\n")

    assert "mdns4_minimal" in host.read(NSSWITCH)
    assert ruleset(host) == before
    assert code == 1
    assert shown.count("[y/N]") == 2
    assert "nft" in shown and "undo runs: nft delete rule" in shown
    assert "AG204" in shown.rpartition("Asked again:")[2]  # what still is wrong


def test_two_times_yes_mends_both_and_undo_takes_the_last_run_back(host: Host) -> None:
    before, line = ruleset(host), host.read(NSSWITCH)

    code, shown = on_a_terminal(host, FIX, "y\ny\n")

    assert (code, "avahi-gpu undo --last takes back what was changed now." in shown) == (0, True), shown
    assert doctor(host, "--only", "AG104", "--only", "AG204").errors == []
    assert ruleset(host) != before

    code, shown = on_a_terminal(host, ["avahi-gpu", "undo", "--last"], "y\n")

    assert code == 0, shown
    assert "nft delete rule inet filter input handle" in shown
    assert (ruleset(host), host.read(NSSWITCH)) == (before, line)


def test_no_changes_nothing(host: Host) -> None:
    before, line = ruleset(host), host.read(NSSWITCH)

    code, shown = on_a_terminal(host, FIX, "n\n")

    assert (code, "nothing was changed" in shown) == (1, True)
    assert (ruleset(host), host.read(NSSWITCH)) == (before, line)


def test_ctrl_c_at_the_question_changes_nothing_and_shows_no_traceback(host: Host) -> None:
    line = host.read(NSSWITCH)

    code, shown = on_a_terminal(host, FIX, "", interrupt_at="[y/N]")

    assert (code, "Traceback" in shown) == (130, False), shown
    assert host.read(NSSWITCH) == line


def test_colours_are_for_terminals_alone(host: Host) -> None:
    seen = on_a_terminal(host, ["avahi-gpu", "doctor", "--only", "AG104"], "")[1]
    piped = host.run(["avahi-gpu", "doctor", "--only", "AG104"], timeout=60)

    assert "\x1b[" in seen
    assert "\x1b" not in piped.stdout + piped.stderr
