"""Rates, sizes and times as people read them."""

from __future__ import annotations

from avahi_gpu.model import units


def test_rates_have_three_digits_that_mean_something() -> None:
    assert [units.show_rate(x) for x in (9.41e6, 94.1e6, 941e6, 2.354e9, 99.96e9, 0.0)] == [
        "9.41 Mbit/s",
        "94.1 Mbit/s",
        "0.941 Gbit/s",
        "2.35 Gbit/s",
        "100 Gbit/s",
        "0.000 Mbit/s",
    ]
    assert [units.show_bandwidth(x) for x in (640, 117.6e6, 11.8e9)] == [
        "0.640 kB/s",
        "118 MB/s",
        "11.8 GB/s",
    ]


def test_sizes_are_binary_as_nccl_tests_counts_them() -> None:
    assert [units.show_bytes(x) for x in (8, 2048, 32 << 10, 256 << 20, 4 << 30)] == [
        "8 B",
        "2 KiB",
        "32 KiB",
        "256 MiB",
        "4 GiB",
    ]


def test_times_are_told_from_microseconds_to_hours() -> None:
    assert [units.show_seconds(x) for x in (26.7e-6, 0.0042, 1.324, 119.0, 162.0, 9986.0, 1e6)] == [
        "26.7 µs",
        "4.20 ms",
        "1.32 s",
        "119 s",
        "2 min 42 s",
        "2 h 46 min",
        "11.6 d",
    ]


def test_models_are_named_by_their_parameters() -> None:
    assert [units.show_parameters(x) for x in (42, 125_000, 20_000_000, 1_500_000_000, 7 * 10**12)] == [
        "42",
        "125K",
        "20M",
        "1.5B",
        "7T",
    ]
