"""What setup takes for proven at its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.cli.provisioning import Order, _prove
from avahi_gpu.model import NOT_A_FILE, Facts, FileState
from tests.unit.checks.conftest import healthy

__all__ = ["healthy"]


def order(*areas: str) -> Order:
    return Order(
        check=False, diff=False, yes=True, as_json=True, python=None, cluster=None, areas=frozenset(areas)
    )


def wrong(facts: Facts, *areas: str) -> list[str]:
    return [f.id for f in _prove(lambda facts: facts or facts, facts, order(*areas), patience_s=0.0)[1]]


def test_a_healthy_machine_is_proven_to_be_a_node(healthy: Facts) -> None:
    assert wrong(healthy) == []


@pytest.mark.parametrize(
    ("unread", "cause"), [("avahi_conf", "AG303"), ("service_file", "AG501")], ids=["daemon", "service"]
)
def test_what_could_not_be_asked_for_is_not_proven(healthy: Facts, unread: str, cause: str) -> None:
    """A folder in place of avahi-daemon.conf is no error, yet nothing is asked that proves a node."""
    state: FileState = getattr(healthy, unread)
    facts = replace(healthy, **{unread: replace(state, content=None, error=NOT_A_FILE)})

    assert wrong(facts) == [cause]


def test_a_cause_of_another_area_is_told_and_not_held_against_what_was_asked_for(healthy: Facts) -> None:
    state = replace(healthy.avahi_conf, content=None, error=NOT_A_FILE)

    assert wrong(replace(healthy, avahi_conf=state), "service") == []
