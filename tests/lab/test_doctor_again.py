"""The doctor asked again and again: what was found broken before it was mended is not found afterwards."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.doctoring import doctor, set_up
from tests.lab.scenarios.network import pass_multicast, stop_multicast

RUNS = 3  # by then Avahi asks the same question every eight seconds only


def test_a_network_that_is_mended_is_healthy_at_once(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(3)
    set_up(lab)
    stop_multicast(lab)
    for _ in range(RUNS):
        assert doctor(lab[0]).errors == ["AG207"]
    pass_multicast(lab)

    found = [doctor(lab[0]) for _ in range(RUNS)]

    assert [f.errors for f in found] == [[]] * RUNS, found[-1].tell()
