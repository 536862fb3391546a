"""Whatever hangs, the doctor ends: with the cause where it can be told, with "unknown" where it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.cluster import cluster
from tests.lab.doctoring import Diagnosis, doctor, set_up
from tests.lab.host import Host
from tests.lab.process import Process

pytestmark = pytest.mark.lab

# on an idle machine no fault takes longer than 13.5 s; a busy one starts Python late and ends it late
ENDS_WITHIN_S = 30.0
MANY_LINKS = 1000  # pairs; four thousand interfaces take four seconds to read
MANY_NODES = 600
HANG = Path(__file__).with_name("hang_mount.py")
SILENT_SERVER = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    time.sleep(3600)
"""
SERVICE = (
    "<service-group><name>{name}</name><service><type>_torch._tcp</type><port>9</port></service>"
    "</service-group>"
)


@dataclass(frozen=True)
class Fault:
    """What hangs, and what the doctor must say then: its errors, and what it does not know."""

    breaks: Callable[[Host], Process | None]
    errors: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


def stop(program: str) -> Callable[[Host], None]:
    return lambda host: host.send_signal(program, signal.SIGSTOP)


def hold_back(path: str) -> Callable[[Host], Process]:
    """Return what lets a file system hang there."""

    def mount(host: Host) -> Process:
        process = host.popen([sys.executable, HANG, path], stdin=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline(), process.stderr
        return process

    return mount


def silence_names(host: Host) -> Process:
    process = host.popen([sys.executable, "-c", SILENT_SERVER])
    assert process.stdout is not None
    process.stdout.readline()
    host.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    return process


def lay_pipe(path: str) -> Callable[[Host], None]:
    def lay(host: Host) -> None:
        draft = host.path(f"{path}.draft")
        os.mkfifo(draft)
        draft.rename(host.path(path))  # avahi-daemon looks at what is renamed, not at what is made

    return lay


def write_slow_python(host: Host) -> None:
    host.write("/var/slow-python", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n", 0o755)


FAULTS = {
    "bus": Fault(stop("dbus-daemon"), errors=("AG301",)),
    "daemon": Fault(stop("avahi-daemon"), errors=("AG304",)),
    "name server": Fault(silence_names, errors=("AG108",)),
    "a pipe for /etc/hosts": Fault(lay_pipe("/etc/hosts"), errors=("AG100",)),
    "a pipe for a service file": Fault(lay_pipe("/etc/avahi/services/torch.service"), errors=("AG510",)),
    "python": Fault(write_slow_python, unknown=("AG402",), ask=("--python", "/var/slow-python")),
    "disk of /etc/avahi/services": Fault(hold_back("/etc/avahi/services"), unknown=("AG501",)),
    "disk of /etc/nsswitch.conf": Fault(hold_back("/etc/nsswitch.conf"), errors=("AG100",)),
}


@pytest.fixture(scope="module")
def ends() -> Iterator[dict[str, tuple[float, Diagnosis]]]:
    """Break one thing on each host, and run all doctors at once: nearly all of their time they wait."""
    with cluster(len(FAULTS)) as lab, ThreadPoolExecutor(len(FAULTS)) as together:
        set_up(lab)
        hosts = dict(zip(FAULTS, lab, strict=True))
        helpers = [fault.breaks(hosts[name]) for name, fault in FAULTS.items()]

        def ask(name: str) -> tuple[float, Diagnosis]:
            began = time.monotonic()
            found = doctor(hosts[name], "--ignore", "cluster", *FAULTS[name].ask)
            return time.monotonic() - began, found

        yield dict(zip(FAULTS, together.map(ask, FAULTS), strict=True))
        for helper in helpers:
            if helper is not None:
                helper.end()


@pytest.mark.parametrize("name", FAULTS)
def test_what_hangs_is_named_or_unknown_and_the_doctor_ends(
    name: str, ends: dict[str, tuple[float, Diagnosis]]
) -> None:
    took, found = ends[name]
    fault = FAULTS[name]

    assert found.errors == list(fault.errors), found.tell()
    assert found.exit_code == (1 if fault.errors else 0)
    assert set(fault.unknown) <= set(found.of("unknown")), found.tell()
    assert took < ENDS_WITHIN_S


@pytest.mark.faults
def test_thousands_of_interfaces_and_hundreds_of_nodes_are_borne() -> None:
    with cluster(2) as lab:
        set_up(lab)
        pairs = "".join(f"link add d{n} type veth peer name p{n}\n" for n in range(MANY_LINKS))
        lab[0].run(["ip", "-batch", "-"], input=pairs, check=True)
        for number in range(MANY_NODES):
            lab[1].write(f"/etc/avahi/services/{number}.service", SERVICE.format(name=f"node {number}"))
        time.sleep(3.0)  # until the other daemon has announced some of them
        began = time.monotonic()

        found = doctor(lab[0])

        assert "AG201" in found.of("ok"), found.tell()
        assert not set(found.errors) & {"AG201", "AG203", "AG301", "AG304", "AG501"}, found.tell()
        assert time.monotonic() - began < ENDS_WITHIN_S
