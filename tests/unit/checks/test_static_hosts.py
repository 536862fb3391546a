"""/etc/avahi/hosts: names that avahi-daemon publishes for others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, FileState, Finding

PATH = "/etc/avahi/hosts"


def found(facts: Facts, text: str) -> Finding:
    file = FileState(PATH, text.encode(), mode=0o644, uid=0, gid=0)
    facts = replace(facts, avahi=replace(facts.avahi, static_hosts=file))
    return next(f for f in run_checks(facts) if f.id == "AG313")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# 10.9.9.9 gpu-node-1.local\n",
        "192.168.0.1 router.local\n",
        "10.77.0.1 gpu-node-1.local\n",
        "10.77.0.2 gpu-node-2.local\n",
        "garbage\n",
        "10.9.9.9 gpu-node-1.lan\n",
    ],
)
def test_printers_and_right_addresses_are_fine(text: str, healthy: Facts) -> None:
    assert found(healthy, text).verdict == "ok"


def test_the_own_name_under_another_address_is_an_error_and_its_line_goes(healthy: Facts) -> None:
    finding = found(healthy, "192.168.0.1 router.local\n10.9.9.9 GPU-node-1.local\n")

    assert finding.verdict == "error"
    assert finding.evidence == (f"{PATH}:2: 10.9.9.9 GPU-node-1.local: no address of this machine",)
    assert finding.fix is not None
    change, restart = finding.fix.changes
    assert change.content == b"192.168.0.1 router.local\n" and restart.argv[-1] == "avahi-daemon.service"


def test_a_peers_name_under_another_address_is_a_warning(healthy: Facts) -> None:
    finding = found(healthy, "10.9.9.9 gpu-node-2.local\n")

    assert finding.verdict == "warn" and "that node has 10.77.0.2" in finding.evidence[0]


def test_what_could_not_be_read_is_unknown(healthy: Facts) -> None:
    facts = replace(healthy, avahi=replace(healthy.avahi, static_hosts=None))

    assert next(f for f in run_checks(facts) if f.id == "AG313").verdict == "unknown"
