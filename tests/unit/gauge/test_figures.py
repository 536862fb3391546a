"""Figures as nccl-tests defines them, and what they mean for the gradients of a model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import Misuse
from avahi_gpu.gauge import figures
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Measurement, Reduction

MIB = 1 << 20
numbers = st.floats(min_value=1e-9, max_value=1e9)


def test_bandwidths_are_those_of_nccl_tests() -> None:
    """An all-reduce of 1 GB in 2 s: 0.5 GB/s for the program, and 2(n-1)/n of it on each link."""
    assert figures.algorithm_bandwidth(10**9, 2.0) == 0.5e9
    assert [figures.bus_bandwidth(10**9, 2.0, n) for n in (2, 4)] == [0.5e9, 0.75e9]
    assert figures.traffic(1) == 0.0


@given(st.integers(2, 1000), numbers)
def test_bus_bandwidth_lies_between_once_and_twice_the_algorithm_bandwidth(
    ranks: int, seconds: float
) -> None:
    ratio = figures.bus_bandwidth(1000, seconds, ranks) / figures.algorithm_bandwidth(1000, seconds)

    assert 1.0 <= ratio < 2.0


def test_sizes_go_from_eight_bytes_to_256_mib_in_steps_of_four() -> None:
    found = figures.sizes()

    assert (found[0], found[1], found[-2], found[-1]) == (8, 32, 128 * MIB, 256 * MIB)
    assert all(later <= 4 * sooner for sooner, later in pairwise(found))
    assert all(size % 4 == 0 for size in found)  # whole numbers of fp32


@given(st.lists(numbers, min_size=1, max_size=50), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values_and_is_not_exceeded_by_that_share(
    values: list[float], share: float
) -> None:
    found = figures.percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_a_median_of_nothing_is_refused() -> None:
    assert figures.median([3.0, 1.0, 2.0]) == 2.0
    with pytest.raises(ValueError):
        figures.median([])


CURVE = [Reduction(8, 0.001), Reduction(MIB, 0.011), Reduction(16 * MIB, 0.151)]


def test_an_all_reduce_takes_what_the_curve_says_and_beyond_it_as_long_for_each_byte() -> None:
    assert figures.reduction_seconds(4, CURVE) == 0.001
    assert figures.reduction_seconds(MIB, CURVE) == pytest.approx(0.011)
    assert figures.reduction_seconds(17 * MIB // 2, CURVE) == pytest.approx(0.081)
    assert figures.reduction_seconds(160 * MIB, CURVE) == pytest.approx(1.51)


@given(st.lists(st.tuples(st.integers(8, 2**28), numbers), min_size=1, max_size=20), st.integers(1, 2**40))
def test_a_time_is_found_for_every_size(points: list[tuple[int, float]], size: int) -> None:
    curve = [Reduction(*point) for point in points]

    assert figures.reduction_seconds(size, curve) > 0


def measured(*reductions: Reduction, bits: float | None = 1e9, nodes: int = 4) -> Measurement:
    links = (GaugedLink(0, 1, 4e9), GaugedLink(1, 0, bits))
    hosts = tuple(GaugedNode(f"n{i}", f"10.0.0.{i}") for i in range(nodes))
    return Measurement(hosts, links, reductions, "gloo", nodes)


def test_gradients_take_what_the_measured_all_reduce_says() -> None:
    found = figures.estimate(measured(Reduction(MIB, 0.01)), 7_000_000_000, "bf16")

    assert (found.size, found.measured) == (14_000_000_000, True)
    assert found.seconds == pytest.approx(14e9 / MIB * 0.01)


def test_without_all_reduce_a_ring_over_the_slowest_link_is_told() -> None:
    found = figures.estimate(measured(), 1_000_000_000, "fp32")

    assert (found.seconds, found.measured) == (pytest.approx(1.5 * 4e9 * 8 / 1e9), False)
    broken = replace(measured(Reduction(8, 0.001)), failed=True)
    assert figures.estimate(broken, 1_000_000_000, "fp32") == found
    assert figures.estimate(measured(bits=None), 1000, "fp32").seconds is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("7B", 7e9), ("1.5b", 1.5e9), ("350M", 350e6), ("125k", 125e3), ("42", 42), (" 1T ", 1e12)],
)
def test_models_are_named_by_their_parameters(text: str, number: float) -> None:
    assert figures.parse_model(text) == number


@pytest.mark.parametrize("text", ["", "B", "seven", "0", "-1B", "7BB", "9999999T", "1e9", "0.1"])
def test_what_is_no_number_of_parameters_is_a_misuse(text: str) -> None:
    with pytest.raises(Misuse):
        figures.parse_model(text)


def test_types_of_gradients() -> None:
    assert [figures.BYTES_OF[figures.parse_dtype(word)] for word in ("bf16", "FP32")] == [2, 4]
    with pytest.raises(Misuse):
        figures.parse_dtype("int3")
