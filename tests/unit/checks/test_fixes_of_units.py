"""How systemd is told to run avahi-daemon, by what became of its units."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.changes.plan import plan, starts_avahi
from avahi_gpu.checks import fixes
from avahi_gpu.model import Facts, Finding, UnitState

UNIT, SOCKET = "avahi-daemon.service", "avahi-daemon.socket"
DISABLE = ("systemctl", "disable", UNIT)


def lines(
    unit: UnitState, facts: Facts, *, enabled: bool | None
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    avahi = replace(facts.avahi, unit=unit)
    daemon = replace(facts.daemon, enabled=enabled)
    fix = fixes.start_avahi(replace(facts, init="systemd", avahi=avahi, daemon=daemon))
    return [(c.argv, c.undo) for c in fix.changes]


@pytest.mark.parametrize(
    ("unit", "enabled", "wanted"),
    [
        (UnitState("loaded", "inactive", "enabled"), True, [(("systemctl", "start", UNIT), ())]),
        (
            UnitState("loaded", "inactive", "disabled"),
            False,
            [(("systemctl", "enable", "--now", UNIT), DISABLE)],
        ),
        (UnitState("loaded", "active", "disabled"), False, [(("systemctl", "enable", UNIT), DISABLE)]),
        (
            UnitState("loaded", "failed", "enabled", "start-limit-hit"),
            True,
            [(("systemctl", "reset-failed", UNIT), ()), (("systemctl", "start", UNIT), ())],
        ),
        (
            UnitState("masked", "inactive", "masked", socket_load="masked"),
            False,
            [
                (("systemctl", "unmask", UNIT, SOCKET), ("systemctl", "mask", UNIT, SOCKET)),
                (("systemctl", "start", UNIT), ()),
            ],
        ),
        (
            UnitState("masked", "inactive", "masked-runtime", socket_load="masked", socket_enabled="masked"),
            False,
            [
                (("systemctl", "unmask", SOCKET), ("systemctl", "mask", SOCKET)),
                (("systemctl", "unmask", "--runtime", UNIT), ("systemctl", "mask", "--runtime", UNIT)),
                (("systemctl", "start", UNIT), ()),
            ],
        ),
        (
            UnitState("loaded", "inactive", "enabled", socket_load="masked"),
            True,
            [
                (("systemctl", "unmask", SOCKET), ("systemctl", "mask", SOCKET)),
                (("systemctl", "start", UNIT), ()),
            ],
        ),
    ],
)
def test_what_is_run(
    unit: UnitState,
    enabled: bool,
    wanted: list[tuple[tuple[str, ...], tuple[str, ...]]],
    healthy: Facts,
) -> None:
    assert lines(unit, healthy, enabled=enabled) == wanted


def test_both_halves_of_unmasking_hang_on_one_question(healthy: Facts) -> None:
    avahi = replace(healthy.avahi, unit=UnitState("masked", socket_load="loaded"))

    changes = fixes.start_avahi(replace(healthy, init="systemd", avahi=avahi)).changes

    assert len({c.question for c in changes}) == 1 and changes[0].question


def test_enabling_a_running_unit_does_not_swallow_its_restart(healthy: Facts) -> None:
    avahi = replace(healthy.avahi, unit=UnitState("loaded", "active", "disabled"))
    facts = replace(healthy, init="systemd", avahi=avahi, daemon=replace(healthy.daemon, enabled=False))
    both = [
        Finding("AG305", "a", "host", "error", "x", fix=fixes.restart_avahi(facts, back=True)),
        Finding("AG307", "b", "host", "warn", "x", fix=fixes.start_avahi(facts)),
    ]

    made = plan(both)

    assert [c.argv[1] for c in made] == ["restart", "enable"]
    assert [starts_avahi(c) for c in made] == [True, False]
