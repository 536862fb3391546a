"""How many processes a node runs, over which backend, and with whom it can reduce."""

from __future__ import annotations

import pytest

from avahi_gpu.gauge.conductor import why_no_reduction
from avahi_gpu.gauge.messages import Enlist
from avahi_gpu.gauge.player import NOT_ASKED
from avahi_gpu.gauge.workers import choose_backend, count_processes, shorten_complaint


@pytest.mark.parametrize(
    ("word", "gpus", "processes", "backend"),
    [
        ("auto", 0, 1, "gloo"),
        ("auto", 4, 4, "nccl"),
        ("gpu", 2, 2, "nccl"),
        ("gpu", 0, 0, "gloo"),
        ("cpu", 4, 16, "gloo"),
        ("2", 4, 2, "nccl"),
        ("3", 2, 3, "gloo"),  # NCCL wants a GPU for each
    ],
)
def test_processes_are_counted_as_launch_counts_them(
    word: str, gpus: int, processes: int, backend: str
) -> None:
    assert count_processes(word, gpus, 16) == processes
    assert choose_backend(word, processes, gpus) == backend


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "[rank0]: RuntimeError: [/w/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error "
            "[10.77.178.2]:30877: Connection reset by peer. This is typically caused by a remote worker.",
            "RuntimeError: Read error [10.77.178.2]:30877: Connection reset by peer",
        ),
        ("ValueError: [rank1]: x", "ValueError: [rank1]: x"),
        ("", ""),
    ],
)
def test_what_torch_complains_of_is_told_without_its_source(line: str, told: str) -> None:
    assert shorten_complaint(line) == told


def node(**more: object) -> Enlist:
    told = {"processes": 1, "backend": "gloo", "torch": "2.13.0+cpu", **more}
    return Enlist("0123456789abcdef", 4711, **told)  # type: ignore[arg-type]


def test_nodes_that_are_alike_reduce() -> None:
    assert why_no_reduction([node(), node(torch="2.13.1"), node(processes=4)], "abc") == ""


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (node(processes=0, lacks="torch is not installed there"), "b: torch is not installed there"),
        (node(processes=0, lacks=NOT_ASKED), "--tcp leaves it out"),
        (node(torch="2.12.0"), "the nodes have different versions of torch: a 2.13.0+cpu, b 2.12.0"),
        (node(backend="nccl"), "the nodes would use different backends: a gloo, b nccl; "),
    ],
)
def test_nodes_that_cannot_reduce_together_are_named(other: Enlist, why: str) -> None:
    assert why_no_reduction([node(), other], "ab").startswith(why)
