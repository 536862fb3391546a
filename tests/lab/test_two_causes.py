"""Two things are broken at once: the doctor names both, and nothing that merely follows from either."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.checks.registry import all_checks
from avahi_gpu.model import SERVICE_FILE
from tests.lab.cluster import Cluster
from tests.lab.doctoring import doctor
from tests.lab.scenarios import ALL
from tests.lab.scenarios.scenario import Scenario
from tests.lab.test_scenarios import Ward, make_well_again, state_of, ward

__all__ = ["ward"]  # the fixture, for this module too

SEED = 4
MORE = 40  # pairs by chance, in the long list of faults


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Not asked here: hosts that are booted anew are new processes of ours."""


def break_the_service_file(lab: Cluster) -> None:
    lab[0].write(str(SERVICE_FILE), lab[0].read(str(SERVICE_FILE)).replace("</port>", "</prt>"))


BY_NAME = {
    **{s.name: s for s in ALL},
    "service-file-malformed": Scenario(
        "A-24", "service-file-malformed", "</prt>", "AG502", break_the_service_file
    ),
}
PAIRS = (
    ("no-mdns-on-the-hosts-line", "firewall-drops-mdns"),
    ("service-file-malformed", "dead-name-server"),
    ("deny-the-lan", "module-cannot-be-loaded"),
    ("the-bus-is-dead", "dns-ends-the-search-before-mdns"),
    ("firewall-opens-29500-alone", "own-local-name-pinned"),
    ("same-machine-id", "dns-claims-local"),
)


def together(one: Scenario, other: Scenario) -> Scenario:
    """Return both faults as one, on one cluster."""

    def break_both(lab: Cluster) -> None:
        one.breaks(lab)
        other.breaks(lab)

    def heal_both(lab: Cluster) -> None:
        one.heals(lab)
        other.heals(lab)

    return replace(
        one,
        name=f"{one.name}+{other.name}",
        breaks=break_both,
        heals=heal_both,
        also=(*one.also, other.finding, *other.also),
        ask=(*one.ask, *other.ask),
        env={**one.env, **other.env},
        mends=one.mends and other.mends,
        touches=tuple(sorted({*one.touches, *other.touches})),
    )


def name_both(ward: Ward, both: Scenario) -> None:
    """Break both and ask; where both can be mended, mend both at once and take it back."""
    host = ward.lab[0]
    ward.prove_healthy(host)  # and it remembers whom it has seen
    try:
        both.breaks(ward.lab)
        found = doctor(host, *both.ask, env=both.env)

        assert sorted(found.errors) == sorted({both.finding, *both.also}), found.tell()
        if both.mends:
            broken = state_of(host)
            mended = doctor(host, *both.ask, "--fix", "--yes", env=both.env)
            assert (mended.exit_code, mended.errors) == (0, []), mended.tell()
            host.run(["avahi-gpu", "undo", "--last", "--yes"], check=True, timeout=90)
            assert state_of(host) == broken
    finally:
        make_well_again(ward, both)


@pytest.mark.parametrize(
    "names",
    [pytest.param(names, marks=[pytest.mark.faults] if n % 2 else []) for n, names in enumerate(PAIRS)],
    ids="+".join,
)
def test_both_causes_are_named_and_nothing_that_follows(names: tuple[str, str], ward: Ward) -> None:
    name_both(ward, together(BY_NAME[names[0]], BY_NAME[names[1]]))


# --- the long list: any two that can be at once ---------------------------------------------------------

# what a fault does to the machine that another one would undo or do as well
SERVICE = tuple(c.id for c in all_checks() if c.area == "service")
SHARED = {
    "starts the daemon anew": ("AG303", "AG304", "AG305", "AG308", "AG309", "AG609", *SERVICE),
    "makes Avahi forget whom it has seen": ("AG207", "AG208", "AG212", *SERVICE),
    "what others say of themselves": ("AG204", "AG205", "AG207", "AG208", "AG301", "AG304", "AG323"),
    "another machine": ("AG602", "AG604", "AG605", "AG607", "AG608", "AG609", "AG612", "AG616", "AG618"),
    "name servers": ("AG108", "AG109"),
    "the hosts file": ("AG320", "AG321", "AG322", "AG323"),
    "the hosts line": ("AG101", "AG104", "AG111", "AG112", "AG114", "AG115"),
    "the firewall": ("AG204", "AG205", "AG206"),
    "torch's environment": ("AG320", "AG321", "AG322", "AG325", "AG326", "AG327", "AG328"),
    "Avahi's words": ("AG301", "AG304", "AG305", "AG308", "AG309", "AG325", "AG326"),
}


@cache
def needs_of(id: str) -> set[str]:
    """Return every check whose failure makes this one a skip."""
    direct = {c.id: (*c.needs, *c.follows) for c in all_checks()}
    found: set[str] = set()
    ahead = [id]
    while ahead:
        ahead += [need for need in direct[ahead.pop()] if need not in found]
        found.update(ahead)
    return found


def can_be_told_apart(one: Scenario, other: Scenario) -> bool:
    """Whether both can be broken at once and neither hides the other."""
    ids = {one.finding, other.finding}
    shared = any(ids <= set(those) for those in SHARED.values())
    hidden = one.finding in needs_of(other.finding) or other.finding in needs_of(one.finding)
    return len(ids) == 2 and not shared and not hidden and one.on == other.on == 0 and not one.ask + other.ask


def draw_pairs(number: int) -> list[tuple[Scenario, Scenario]]:
    """Return that many pairs, the same ones at every run."""
    apart = [(a, b) for n, a in enumerate(ALL) for b in ALL[n + 1 :] if can_be_told_apart(a, b)]
    return random.Random(SEED).sample(apart, min(number, len(apart)))


@pytest.mark.faults
@pytest.mark.parametrize("pair", draw_pairs(MORE), ids=lambda p: f"{p[0].name}+{p[1].name}")
def test_any_two_causes_are_named(pair: tuple[Scenario, Scenario], ward: Ward) -> None:
    name_both(ward, together(*pair))
