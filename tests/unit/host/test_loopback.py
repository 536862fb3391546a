"""Whether this machine can talk to itself."""

from __future__ import annotations

from avahi_gpu.host.loopback import reaches_itself


def test_a_machine_with_loopback_reaches_itself() -> None:
    assert reaches_itself()
