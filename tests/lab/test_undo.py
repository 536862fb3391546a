"""undo after setup, whatever happened in between: /etc is as it was, and nobody's edit is lost."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.tree import changed, take_picture

SETUP = ["avahi-gpu", "setup", "--yes"]
UNDO = ["avahi-gpu", "undo", "--yes"]
SERVICE = "/etc/avahi/services/torch.service"
NSSWITCH = "/etc/nsswitch.conf"
HAND_WRITTEN = """<?xml version="1.0" standalone='no'?>
<service-group><name>by hand</name><service><type>_torch._tcp</type><port>1</port></service></service-group>
"""

# ends itself with SIGKILL at the n-th moment around a write, as a power cut would
DIES = """
import os, signal, sys
from avahi_gpu.host import system
left = int(sys.argv.pop(1))
def tick():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def dying(work):
    def do(*arguments, **more):
        tick()
        result = work(*arguments, **more)
        tick()
        return result
    return do
for name in ("write", "append", "remove", "start_daemon"):
    setattr(system.System, name, dying(getattr(system.System, name)))
from avahi_gpu.cli.app import main
main()
"""


@pytest.fixture
def host(make_cluster: Callable[..., Cluster]) -> Host:
    """One host before setup."""
    return make_cluster(1, bare=True).hosts[0]


def test_etc_is_as_before_and_nothing_is_left_of_ours(host: Host) -> None:
    etc, lib = take_picture(host), take_picture(host, "/var/lib")

    host.run(SETUP, check=True)
    host.run(SETUP, check=True)
    done = host.run(UNDO, check=True)

    assert changed(etc, take_picture(host)) == []
    assert changed(lib, take_picture(host, "/var/lib")) == []
    assert "Not taken back, it may be of use to others: start avahi-daemon" in done.stdout
    again = host.run(UNDO, check=True)
    assert again.stdout == "nothing to undo\n"


def test_check_only_tells_what_would_be_taken_back(host: Host) -> None:
    nothing = host.run(["avahi-gpu", "undo", "--check", "--json"], check=True)
    host.run(SETUP, check=True)
    etc, lib = take_picture(host), take_picture(host, "/var/lib")

    told = host.run(["avahi-gpu", "undo", "--check", "--json"])

    assert json.loads(nothing.stdout)["data"] == {"changes": [], "changed": False, "kept": []}
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["status"], answer["data"]["changed"]) == (5, "ok", False)
    paths = [change.get("path") for change in answer["data"]["changes"]]
    assert {SERVICE, NSSWITCH} <= set(paths)
    assert (changed(etc, take_picture(host)), changed(lib, take_picture(host, "/var/lib"))) == ([], [])
    assert host.run(UNDO, check=True).stdout.count("+++ ") == 0


def test_the_service_leaves_the_lan(host: Host) -> None:
    host.run(SETUP, check=True)
    host.run(UNDO, check=True)

    deadline = time.monotonic() + 10  # goodbyes are believed after a second (RFC 6762 section 10.1)
    while listed := host.run(["avahi-browse", "-pt", "_torch._tcp"], check=True).stdout:
        assert time.monotonic() < deadline, listed


def test_a_hand_written_service_file_comes_back_with_its_mode(host: Host) -> None:
    host.write(SERVICE, HAND_WRITTEN, 0o640)
    before = take_picture(host)

    done = host.run([*SETUP, "--diff"], check=True)
    assert "-<service-group><name>by hand</name>" in done.stdout
    assert host.read(SERVICE) != HAND_WRITTEN
    host.run(UNDO, check=True)

    assert changed(before, take_picture(host)) == []


def test_a_folder_made_by_us_goes_too(host: Host) -> None:
    host.run(["rm", "-r", "/etc/avahi/services"], check=True)
    before = take_picture(host)

    host.run(SETUP, check=True)
    host.run(UNDO, check=True)

    assert changed(before, take_picture(host)) == []


def test_an_edit_made_since_is_kept_and_told(host: Host) -> None:
    host.run(SETUP, check=True)
    mine = host.read(NSSWITCH) + "# mine\n"
    host.write(NSSWITCH, mine)

    done = host.run([*UNDO, "--json"], check=True)

    data = json.loads(done.stdout)["data"]
    assert data["kept"] == [NSSWITCH]
    assert [c["path"] for c in data["changes"]] == [SERVICE]
    assert host.read(NSSWITCH) == mine
    assert f"{NSSWITCH} was edited since: your edit is kept." in host.run(UNDO, check=True).stdout


def test_who_is_not_root_is_told_so(host: Host) -> None:
    done = host.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *UNDO])

    assert done.returncode == 4, done.stderr


def test_without_a_terminal_nobody_is_asked(host: Host) -> None:
    host.run(SETUP, check=True)
    before = take_picture(host)

    done = host.run(["avahi-gpu", "undo"])

    assert done.returncode == 2
    assert "avahi-gpu undo --yes" in done.stderr
    assert changed(before, take_picture(host)) == []


# of the moments around writes: recorded and not written; written; the same for the second file; the daemon
# started and nothing proven yet
@pytest.mark.parametrize("moments", [(3, 4), pytest.param((7, 8, 12), marks=pytest.mark.faults)])
def test_killed_at_any_moment_setup_can_be_finished_and_undone(host: Host, moments: tuple[int, ...]) -> None:
    before = take_picture(host)
    for moment in moments:
        host.stop_avahi()
        dead = host.run([sys.executable, "-c", DIES, str(moment), "setup", "--yes"])
        assert dead.returncode == -signal.SIGKILL, (moment, dead.stdout, dead.stderr)

        host.run(SETUP, check=True)
        assert "mdns4_minimal" in host.read(NSSWITCH)
        host.run(UNDO, check=True)

        assert changed(before, take_picture(host)) == [], moment


def test_an_undo_that_was_killed_can_be_finished(host: Host) -> None:
    before = take_picture(host)
    host.run(SETUP, check=True)
    dead = host.run([sys.executable, "-c", DIES, "2", "undo", "--yes"])
    assert dead.returncode == -signal.SIGKILL, (dead.stdout, dead.stderr)
    assert changed(before, take_picture(host)) != []

    host.run(UNDO, check=True)

    assert changed(before, take_picture(host)) == []


def test_a_second_setup_waits_until_the_first_has_ended(host: Host) -> None:
    holder = host.follow(
        [
            sys.executable,
            "-c",
            "import time\nfrom avahi_gpu.changes.lock import locked\n"
            "from avahi_gpu.host.system import System\n"
            "with locked(System()):\n    print('held', flush=True)\n    time.sleep(60)",
        ]
    )
    holder.wait_for("held")

    second = host.follow(SETUP)
    second.wait_for("another avahi-gpu is changing this machine")
    assert "mdns" not in host.read(NSSWITCH)
    holder.kill()  # the lock of a killed process is free
    holder.end()

    assert second.wait() == 0, second.output
    assert "is a node" in second.output
    second.end()


def test_a_link_that_leads_nowhere_stays_and_is_told(host: Host) -> None:
    """Whoever made it knows what is to be there."""
    host.run(["ln", "-sf", "/etc/nowhere.conf", NSSWITCH], check=True)
    etc = take_picture(host)

    done = host.run([*SETUP, "--only", "names"])

    assert done.returncode == 1
    assert "/etc/nowhere.conf, which is not there" in done.stderr
    assert changed(etc, take_picture(host)) == []


def test_a_journal_that_others_may_write_is_not_obeyed(host: Host) -> None:
    """Whoever writes there says what root runs at the next undo."""
    host.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=60)
    journal = "/var/lib/avahi-gpu/journal"
    for words in (["chown", "nobody"], ["chmod", "go+w"]):
        host.run(["chown", "root", journal], check=True)
        host.run([*words, journal], check=True)

        done = host.run(["avahi-gpu", "undo", "--yes"])

        assert done.returncode == 1
        assert f"{journal} is not root's alone" in done.stderr
    host.run(["chmod", "600", journal], check=True)
    host.run(["avahi-gpu", "undo", "--yes"], check=True)
