"""The way of a look-up through the hosts line; tests/lab/test_trace.py lets glibc itself judge it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.nss_walk import Status, actions_text, effective_line, walk
from avahi_gpu.files.nsswitch_grammar import Actions, Service, parse_line

STATUSES = st.sampled_from(["success", "notfound", "unavail", "tryagain"])
ACTIONS = st.sampled_from(["return", "continue", "merge"])
SERVICES = st.builds(Actions, ACTIONS, ACTIONS, ACTIONS, ACTIONS).map(lambda a: Service("x", 0, 1, 1, a))


@pytest.mark.parametrize(
    ("services", "statuses", "outcome"),
    [
        ("files dns", ("notfound", "success"), (2, "success")),
        ("files dns", ("success", "success"), (1, "success")),
        ("mdns4_minimal [NOTFOUND=return] dns", ("notfound", "success"), (1, "notfound")),
        ("mdns4_minimal [NOTFOUND=return] dns", ("unavail", "success"), (2, "success")),
        ("dns [!UNAVAIL=return] mdns4", ("tryagain", "success"), (1, "tryagain")),
        ("files [SUCCESS=continue] dns", ("success", "notfound"), (2, "notfound")),
        ("", (), (0, "unavail")),
    ],
)
def test_who_is_asked_and_who_decides(
    services: str, statuses: tuple[Status, ...], outcome: tuple[int, Status]
) -> None:
    assert walk(parse_line(f"hosts: {services}").services, statuses) == outcome


@given(st.lists(st.tuples(SERVICES, STATUSES), max_size=6))
def test_the_last_one_asked_decides_and_only_a_return_ends_early(steps: list[tuple[Service, Status]]) -> None:
    asked, outcome = walk([s for s, _ in steps], [status for _, status in steps])

    if steps:
        assert outcome == steps[asked - 1][1]
        returns = [getattr(service.actions, status) == "return" for service, status in steps]
        assert not any(returns[: asked - 1])
        assert asked == len(steps) or returns[asked - 1]
    else:
        assert asked == 0


def test_the_line_that_counts() -> None:
    last, _ = effective_line(b"hosts: nis\nhosts: files  dns [ NOTFOUND = return ]\n")
    default, _ = effective_line(None)
    _, defect = effective_line(b"hosts: files [NOT FOUND=return] dns\n")

    assert (last.number, [s.name for s in last.services]) == (2, ["files", "dns"])
    assert actions_text(last, last.services[1]) == "[ NOTFOUND = return ]"
    assert (default.number, [s.name for s in default.services]) == (0, ["files", "dns"])
    assert defect.startswith("line 1: ")
