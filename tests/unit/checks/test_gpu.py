"""The checks of GPUs and torch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.gpu import gpus, torch
from avahi_gpu.model import Facts


def test_a_machine_without_gpu_or_torch_is_normal(healthy: Facts) -> None:
    bare = replace(healthy, gpus=(), versions=replace(healthy.versions, torch="", cuda=""))

    assert gpus(bare).verdict == "info"
    assert torch(bare).verdict == "info"


def test_gpus_are_listed_with_their_memory(healthy: Facts) -> None:
    assert gpus(healthy).evidence == ("NVIDIA H200, 143771 MiB", "driver 570.1")


def test_a_driver_in_trouble_is_a_warning_with_its_words(healthy: Facts) -> None:
    found = gpus(replace(healthy, gpus=None, gpu_error="Unknown Error"))

    assert found.verdict == "warn" and found.evidence == ("Unknown Error",)


def test_unasked_gpus_are_unknown(healthy: Facts) -> None:
    assert gpus(replace(healthy, gpus=None)).verdict == "unknown"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2.5.1", "warn"),
        ("1.13", "warn"),
        ("2.6.0", "ok"),
        ("2.13.0+cu128", "ok"),
        ("3.0", "ok"),
        ("odd", "ok"),
    ],
)
def test_torch_must_know_plugin_backends(version: str, verdict: str, healthy: Facts) -> None:
    facts = replace(healthy, versions=replace(healthy.versions, torch=version))

    assert torch(facts).verdict == verdict


def test_a_cpu_torch_beside_a_gpu_is_a_warning(healthy: Facts) -> None:
    facts = replace(healthy, versions=replace(healthy.versions, torch="2.13.0+cpu", cuda=""))

    assert torch(facts).verdict == "warn"
    assert torch(replace(facts, gpus=())).verdict == "ok"
