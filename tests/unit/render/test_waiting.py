"""What people see while a job gathers."""

from __future__ import annotations

import io

import pytest

from avahi_gpu.render.waiting import PATIENCE_S, Waiting, at_most, describe_waiting, nodes_wanted, shorten


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("present", "nodes", "seen", "line"),
    [
        (["a"], (3, 3), [], "waiting for 2 more; a leads; 1 of 3 nodes here (a)"),
        (
            ["a", "B"],
            (3, 3),
            ["A", "b", "c"],
            "waiting for 1 more (not here yet: c); a leads; 2 of 3 nodes here (a, B)",
        ),
        (["a", "b"], (2, 3), [], "last call; a leads; 2 of 2-3 nodes here (a, b)"),
        (["a", "b", "c"], (2, 3), ["d"], "a leads; 3 of 2-3 nodes here (a, b, c)"),
    ],
)
def test_the_line_says_who_is_there_and_who_is_missed(
    present: list[str], nodes: tuple[int, int], seen: list[str], line: str
) -> None:
    assert describe_waiting("a leads", present, *nodes, seen) == line


def test_nodes_that_cannot_join_are_not_missed_as_if_they_had_not_started() -> None:
    line = describe_waiting("", ["a"], 3, 3, ["a", "b", "c", "d"], excluded=["b", "c"])
    assert line == "waiting for 2 more (not here yet: d; cannot join: b and c); 1 of 3 nodes here (a)"
    assert "cannot" not in describe_waiting("", ["a", "B"], 3, 3, ["a"], excluded=["b"])


def test_the_first_line_of_a_wait_says_when_it_ends() -> None:
    stream, clock = io.StringIO(), Clock()
    waiting = Waiting(stream, 3, 3, clock, limit_s=600.0)
    for present in (["a"], ["a", "b"]):
        waiting.state("a leads", present)
        clock.now += PATIENCE_S
        waiting.tick()
    waiting.exclude("c")
    waiting.close()

    first, second, third = stream.getvalue().splitlines()
    assert first == "avahi-gpu: waiting for 2 more, for 10 min at most; a leads; 1 of 3 nodes here (a)"
    assert second == "avahi-gpu: waiting for 1 more; a leads; 2 of 3 nodes here (a, b)"
    assert "waiting for 1 more (cannot join: c); " in third


def test_a_live_line_says_when_the_wait_ends_as_long_as_there_is_room() -> None:
    stream, clock = Terminal(), Clock()
    waiting = Waiting(stream, 3, 3, clock, limit_s=600.0)
    waiting.state("", ["a"])
    clock.now += 12
    waiting.tick()
    assert stream.getvalue().endswith("waiting for 2 more, for 10 min at most; 1 of 3 nodes here (a) [12 s]")
    waiting.see(["b"])
    assert stream.getvalue().endswith("waiting for 2 more (not here yet: b); 1 of 3 nodes here (a) [12 s]")
    waiting.close()


def test_limits_of_waits_in_words() -> None:
    assert [at_most(s) for s in (600.0, 20.0, 90.0, 0.5)] == [
        f", for {text} at most" for text in ("10 min", "20 s", "90 s", "0.5 s")
    ]


def test_numbers_of_nodes_in_words() -> None:
    assert [nodes_wanted(1, 1), nodes_wanted(3, 3), nodes_wanted(2, 3)] == ["1 node", "3 nodes", "2-3 nodes"]


def test_elsewhere_than_on_a_terminal_a_line_is_printed_when_it_changes() -> None:
    stream, clock = io.StringIO(), Clock()
    waiting = Waiting(stream, 2, 2, clock)
    waiting.state("a leads", ["a"])
    assert stream.getvalue() == ""  # nodes that start together need no such line
    clock.now += PATIENCE_S
    waiting.tick()
    waiting.tick()
    waiting.state("a leads", ["a"])
    assert stream.getvalue() == "avahi-gpu: waiting for 1 more; a leads; 1 of 2 nodes here (a)\n"
    waiting.see(["a", "b"])
    assert "waiting for 1 more (not here yet: b); " in stream.getvalue().splitlines()[1]
    waiting.over()
    waiting.tick()
    assert len(stream.getvalue().splitlines()) == 2
    waiting.close()


def test_on_a_terminal_one_line_is_drawn_over_and_events_stay() -> None:
    stream, clock = Terminal(), Clock()
    waiting = Waiting(stream, 2, 2, clock)
    waiting.state("a leads", ["a"])
    clock.now += 65
    waiting.tick()
    assert stream.getvalue().startswith("\r\x1b[Kavahi-gpu: waiting for 1 more; a leads; 1 of 2 nodes here")
    assert stream.getvalue().endswith("[65 s]")
    assert "\n" not in stream.getvalue()
    waiting.event("b is refused")
    assert "\r\x1b[Kavahi-gpu: b is refused\n\r\x1b[Kavahi-gpu: waiting for 1 more" in stream.getvalue()
    waiting.over()
    assert stream.getvalue().endswith("\r\x1b[K")
    waiting.close()


def test_where_space_is_short_the_missing_are_named_and_those_who_are_there_counted() -> None:
    stream, clock = Terminal(), Clock()
    waiting = Waiting(stream, 3, 3, clock)
    waiting.state("gpu-node-1 leads", ["gpu-node-1", "gpu-node-2"])
    waiting.see(["gpu-node-3"])
    clock.now += 12
    waiting.tick()
    line = "avahi-gpu: waiting for 1 more (not here yet: gpu-node-3); gpu-node-1 le… [12 s]"
    assert stream.getvalue() == f"\r\x1b[K{line}"
    assert len(line) == 79
    waiting.see([])
    assert stream.getvalue().endswith("waiting for 1 more; gpu-node-1 leads; 2 of 3 nodes here [12 s]")
    waiting.close()


def test_what_comes_from_the_network_cannot_steer_the_terminal() -> None:
    stream, clock = io.StringIO(), Clock()
    waiting = Waiting(stream, 2, 2, clock)
    waiting.event("\x1b[2Jgone\nforged: line")
    waiting.state("\x1b]0;x\x07 leads", ["a\rb"])
    clock.now += 2
    waiting.tick()
    waiting.close()
    assert "\x1b" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 2


def test_a_reader_that_has_gone_ends_nothing() -> None:
    stream = io.StringIO()
    waiting = Waiting(stream, 1, 1)
    stream.close()
    waiting.event("still here")
    waiting.close()


def test_a_live_line_never_wraps() -> None:
    assert shorten("x" * 100, 80) == "x" * 79 + "…"
    assert shorten("short", 80) == "short"
