"""What ends or hinders setup in the middle: Ctrl-C, a lost connection, a full or read-only file system."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.process import Follower
from tests.lab.tree import changed, take_picture

SETUP = ["avahi-gpu", "setup", "--yes"]
UNDO = ["avahi-gpu", "undo", "--yes"]
NSSWITCH = "/etc/nsswitch.conf"
SERVICE = "/etc/avahi/services/torch.service"
TRIES = 4  # setups; one on an idle machine, seen to take two beside seven other tests
JOURNAL = "/var/lib/avahi-gpu/journal"

# mounts a folder anew as a small file system, with what was in it, and fills that to its last page
SMALL = """
import errno, shutil, subprocess, sys
from pathlib import Path
folder, copy = sys.argv[1], "/run/copy"
shutil.copytree(folder, copy, symlinks=True)
taken = subprocess.run(["du", "-sB1", copy], capture_output=True, text=True, check=True).stdout.split()[0]
options = f"size={2 * int(taken) + 65536},mode=0755"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)
with Path(folder, "filler").open("wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError as fault:
        assert fault.errno == errno.ENOSPC, fault
"""


@pytest.fixture
def host(make_cluster: Callable[..., Cluster]) -> Host:
    """One host before setup."""
    return make_cluster(1, bare=True).hosts[0]


def wait_in_setup(host: Host) -> Follower:
    """Return a setup that has written all and proven nothing: it waits for Avahi.

    On a busy machine Avahi may have announced all before it is asked; then there is another try.
    """
    for _ in range(TRIES):
        running = host.follow(SETUP)
        with suppress(AssertionError):
            running.wait_for("wait until Avahi has announced")
            return running
        running.end()
        host.run(UNDO, check=True)
    raise AssertionError(f"setup never waited for Avahi; it printed last:\n{running.output}")


def test_a_signal_in_the_middle_is_a_sentence_and_setup_goes_on(host: Host) -> None:
    """What has begun is finished, and told with the way on and the way back."""
    before = take_picture(host)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running = wait_in_setup(host)
        running.process.send_signal(number)

        assert running.wait() == 130, running.output
        running.end()
        said = " ".join(running.output.split())
        assert "interrupted; done until then: correct the hosts line" in said
        assert "avahi-gpu setup goes on from here, avahi-gpu undo --last takes back what was done" in said
        assert "Traceback" not in said
        if number == signal.SIGINT:
            host.run(SETUP, check=True)
        host.run(UNDO, check=True)
        assert changed(before, take_picture(host)) == []


def test_under_json_an_interruption_is_the_object(host: Host) -> None:
    running = host.popen([*SETUP, "--json"])
    deadline = time.monotonic() + 30
    while not host.path(SERVICE).exists():
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    output, complaint = running.communicate(timeout=30)

    answer = json.loads(output)
    assert (answer["exit_code"], running.returncode) == (130, 130), (output, complaint)
    assert answer["errors"][0]["code"] == "interrupted"
    assert answer["data"]["changed"] is True
    assert NSSWITCH in [c.get("path") for c in answer["data"]["changes"]]


@pytest.mark.parametrize("folder", ["/etc", "/var/lib"])
def test_a_full_disk_is_a_sentence_and_nothing_is_half_done(host: Host, folder: str) -> None:
    host.run([sys.executable, "-c", SMALL, folder], check=True)
    before = take_picture(host)

    full = host.run(SETUP)

    assert full.returncode == 1, full.stdout
    assert "No space left on device" in full.stderr
    assert "free some space on the disk first" in full.stderr
    assert changed(before, take_picture(host)) == []
    host.run(["rm", f"{folder}/filler"], check=True)
    before.pop("/filler", None)
    host.run(SETUP, check=True)
    host.run(UNDO, check=True)
    assert changed(before, take_picture(host)) == []


@pytest.mark.parametrize("folder", ["/etc", "/var"])
def test_a_read_only_file_system_is_a_sentence(host: Host, folder: str) -> None:
    before = take_picture(host)
    host.run(["mount", "-o", "remount,ro", folder], check=True)

    done = host.run(SETUP)

    assert done.returncode == 1, done.stdout
    assert "read-only" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert changed(before, take_picture(host)) == []


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (f"mkdir -p {JOURNAL}", "not a regular file"),
        (f"mkdir -p /var/lib/avahi-gpu && ln -s /etc/hosts {JOURNAL}", JOURNAL),
    ],
    ids=["folder", "link"],
)
def test_a_journal_that_is_none_stops_it_before_anything_is_changed(host: Host, make: str, says: str) -> None:
    host.run(["sh", "-c", make], check=True)
    before = take_picture(host)

    for argv in (SETUP, UNDO):
        done = host.run(argv)
        assert done.returncode == 1, (argv, done.stdout)
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert changed(before, take_picture(host)) == []


def test_a_journal_of_a_later_version_is_not_undone_by_this_one(host: Host) -> None:
    host.run(SETUP, check=True)
    later = host.read(JOURNAL).replace('"version":1', '"version":2', 1)
    host.write(JOURNAL, later, 0o600)
    before = take_picture(host)

    done = host.run(UNDO)

    assert done.returncode == 1
    assert "a later version of avahi-gpu made" in done.stderr
    assert changed(before, take_picture(host)) == []
    assert host.read(JOURNAL) == later
