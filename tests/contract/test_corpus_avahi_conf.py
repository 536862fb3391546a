"""Real avahi-daemon.conf files: did the daemon start, and was the host found and did it find others."""

from __future__ import annotations

from typing import Any

import pytest

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.avahi_conf import parse
from avahi_gpu.files.avahi_harms import breaks_discovery, effects, starts
from tests.contract.corpus import load, name_case


@pytest.mark.parametrize("case", load("avahi_conf.jsonl"), ids=name_case)
def test_starts_and_breaks(case: dict[str, Any]) -> None:
    try:
        harms = effects(parse(case["text"]), ["eth0"])
    except MalformedInput:
        judged = (False, True)
    else:
        judged = (starts(harms), breaks_discovery(harms))

    assert judged == (case["daemon_starts"], case["breaks_discovery"]), case["advice"]
