"""The doctor where it cannot see everything: it runs, and says what it could not see, in the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import Diagnosis, doctor, set_up
from tests.lab.host import Host

AVAHI = "/usr/sbin/avahi-daemon"
WITHIN_S = 15.0  # the most that any fault may cost
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(1) as lab:
        set_up(lab)
        yield lab


@pytest.fixture
def host(lab: Cluster) -> Host:
    return lab[0]


def inside(host: Host, *argv: str, **options: Any) -> Diagnosis:
    """Run the doctor behind a program that changes what it stands in, and hold it to its time."""
    started = time.monotonic()
    found = doctor(host, before=argv, **options)
    assert time.monotonic() - started < WITHIN_S
    return found


def after(script: str) -> list[str]:
    """Return what runs a script in a mount namespace of its own, and then what follows."""
    return ["unshare", "-m", "bash", "-ec", f'{script}\nexec "$@"', "-"]


def test_in_a_container_without_the_hosts_sockets_it_says_what_to_hand_in(host: Host) -> None:
    hide = f"mount -t tmpfs none /run\ntouch /run/.containerenv\nmount --bind /dev/null {AVAHI}"

    found = inside(host, *after(hide))

    assert (found.exit_code, found.errors) == (1, ["AG301"])
    assert "container" in found.says("AG301") and "system_bus_socket" in found.says("AG301")
    assert found.findings["AG302"]["verdict"] == "skip"
    assert found.findings["AG333"]["verdict"] == "info"


def test_without_run_at_all_the_bus_is_the_one_error(host: Host) -> None:
    found = inside(host, *after("mount -t tmpfs none /run"))

    assert (found.exit_code, found.errors) == (1, ["AG301"])


def test_a_rootless_user_namespace_is_named_as_the_reason(host: Host) -> None:
    found = inside(host, "unshare", "-U", "--map-user=1000")

    assert (found.exit_code, found.errors) == (1, ["AG301"])
    assert "user namespace" in found.says("AG301")


def test_without_root_it_says_what_it_could_not_see(host: Host) -> None:
    found = inside(host, *NOBODY, env={"HOME": "/nonexistent"})

    assert (found.exit_code, found.errors) == (0, []), found.tell()
    assert all(len(found.says(id)) > len("could not be read") for id in found.of("unknown"))
    assert "root" in found.says("AG204") and found.findings["AG204"]["verdict"] == "unknown"


def test_a_machine_that_is_not_set_up_is_told_what_lacks() -> None:
    with cluster(1, bare=True) as lab:
        started = time.monotonic()
        found = doctor(lab[0])

        assert time.monotonic() - started < WITHIN_S
        assert found.exit_code == 1
        assert {"AG104", "AG304"} <= set(found.errors)


def test_a_disabled_daemon_that_the_bus_would_start_costs_no_time(host: Host) -> None:
    """The bus waits 25 s for a program that never takes the name; the doctor must not ask it to start one."""
    service = "/etc/dbus-1/system-services/org.freedesktop.Avahi.service"
    host.write(service, "[D-BUS Service]\nName=org.freedesktop.Avahi\nExec=/bin/sleep 60\nUser=root\n")
    host.write(
        "/etc/dbus-1/system.d/zz.conf",
        "<busconfig><servicedir>/etc/dbus-1/system-services</servicedir></busconfig>",
    )
    (bus,) = host.run(["pgrep", "-x", "dbus-daemon"], check=True).stdout.split()
    host.run(["kill", "-HUP", bus], check=True)
    host.stop_avahi()
    started = time.monotonic()
    try:
        found = doctor(host, "--ignore", "cluster")
        took = time.monotonic() - started
    finally:
        for path in (service, "/etc/dbus-1/system.d/zz.conf"):
            Path(host.path(path)).unlink()
        host.run(["kill", "-HUP", bus], check=True)
        host.start_avahi()

    assert "AG304" in found.errors and took < WITHIN_S
    assert host.run(["pgrep", "-x", "sleep"]).returncode != 0  # nobody started it
