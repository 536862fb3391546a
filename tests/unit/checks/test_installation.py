"""What is to be installed, on each distribution by its own command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.changes.plan import plan_all
from avahi_gpu.checks.host import avahi_installed, system_bus
from avahi_gpu.checks.hosts_line import mdns_module
from avahi_gpu.checks.installation import BY_HAND, lacks_bus
from avahi_gpu.checks.registry import setup_findings
from avahi_gpu.cli.provisioning import BLOCKING
from avahi_gpu.model import Facts
from tests.unit.changes.facts import bare_facts


def on(manager: str | None, **packages: bool | None) -> Facts:
    """Return a bare machine without a bus, on which ``packages`` are installed or not."""
    facts = bare_facts()
    daemon = replace(facts.daemon, bus_reachable=False)
    names = {name.replace("_", "-"): there for name, there in packages.items()}
    return replace(facts, package_manager=manager, packages=names, daemon=daemon)


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt", "apt-get install --yes --no-install-recommends dbus avahi-daemon libnss-mdns"),
        ("dnf", "dnf install --assumeyes dbus avahi nss-mdns"),
        ("pacman", "pacman -S --needed --noconfirm dbus avahi nss-mdns"),
        ("zypper", "zypper --non-interactive install --no-recommends dbus-1 avahi nss-mdns"),
    ],
)
def test_one_command_installs_all_three_by_their_names_there(manager: str, command: str) -> None:
    facts = on(manager, dbus=False, dbus_1=False, dbus_broker=False, avahi=False, nss_mdns=False)

    changes, _ = plan_all(facts, setup_findings)

    (package,) = [c for c in changes if c.kind == "package"]
    assert sorted(package.argv) == sorted(command.split())
    assert package.argv[: len(command.split()) - 3] == tuple(command.split()[:-3])


@pytest.mark.parametrize("bus", ["dbus", "dbus_daemon", "dbus_broker", "dbus_1"])
def test_any_bus_is_a_bus(bus: str) -> None:
    facts = on(
        "dnf", **{"dbus": False, "dbus_daemon": False, "dbus_broker": False, "dbus_1": False, bus: True}
    )

    assert not lacks_bus(facts)
    found = system_bus(facts)
    assert found.fix is not None and found.fix.changes[0].kind == "daemon"  # it is started, not installed


def test_what_is_not_known_is_not_missing() -> None:
    assert not lacks_bus(on(None, dbus=None))


@pytest.mark.parametrize("manager", [*BY_HAND, "image", "nix", None])
def test_elsewhere_nothing_is_changed_and_what_to_do_is_said(manager: str | None) -> None:
    facts = on(manager, dbus=False)

    for outcome in (avahi_installed(facts), mdns_module(facts), system_bus(facts)):
        assert outcome.verdict == "error"
        assert outcome.fix is None or not outcome.fix.changes
        told = [outcome.hint, *(outcome.fix.commands if outcome.fix else ())]
        assert any("avahi" in line for line in told), outcome


@pytest.mark.parametrize("thing", ["bus", "daemon", "module"])
def test_whatever_of_the_three_cannot_be_installed_ends_setup_before_its_first_change(thing: str) -> None:
    facts = bare_facts()
    daemon = replace(facts.daemon, bus_reachable=thing != "bus", installed=thing != "daemon")
    modules = {"mdns4_minimal": thing != "module"}
    packages = {"dbus": thing != "bus"}
    facts = replace(facts, package_manager=None, daemon=daemon, nss_modules=modules, packages=packages)

    stops = [
        f.id
        for f in setup_findings(facts)
        if f.id in BLOCKING and f.verdict == "error" and not (f.fix and f.fix.changes)
    ]

    assert stops == [{"bus": "AG301", "daemon": "AG302", "module": "AG102"}[thing]]
