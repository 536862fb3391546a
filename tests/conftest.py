"""What holds for all tests: those that need the lab are skipped where it cannot run, and fail under CI."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says more of the machine than of the code: with eight tests at a time a tenth of a
# millisecond becomes half a second now and then
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

LAB_TOOLS = ("avahi-daemon", "avahi-browse", "dbus-daemon", "dbus-send", "ip", "nsenter", "nft", "ping")
MACHINE_TOOLS = ("debootstrap", "systemd-nspawn", "chroot", "unshare", "setpriv", "dpkg-deb")
# the first test to come may have to wait until the root file system is made, and for its turn
MACHINES_TIMEOUT_S = 900
NSS_MODULES = "lib*/**/libnss_mdns4_minimal.so.2"


if not os.environ.get("CI"):  # hypothesis has a profile of its own for it, without a deadline too
    # on a busy machine any call takes longer than any limit, and says nothing about ours
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")


def missing_for_lab() -> str:
    """Say why virtual hosts cannot run here, '' where they can."""
    if os.geteuid() != 0:
        return "virtual hosts need root: sudo make test"
    missing = [tool for tool in LAB_TOOLS if shutil.which(tool) is None]
    if not any(any(Path(root).glob(NSS_MODULES)) for root in ("/usr", "/")):
        missing.append("libnss-mdns")
    return f"virtual hosts need {', '.join(missing)}: make test installs them" if missing else ""


def missing_for_machines() -> str:
    """Say why Debian machines cannot be booted here, '' where they can, as far as their tools go."""
    missing = [tool for tool in MACHINE_TOOLS if shutil.which(tool) is None]
    return f"booted machines need {', '.join(missing)}: make test installs them" if missing else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the lab and of machines; leave out the long list of faults unless -m asks for it.

    Machines come last: what they boot from is made meanwhile.
    """
    virtual, booted = Path(__file__).with_name("lab"), Path(__file__).with_name("machines")
    for item in items:
        if booted in item.path.parents:
            item.add_marker("machines")
            item.add_marker(pytest.mark.timeout(MACHINES_TIMEOUT_S))
        if {virtual, booted} & set(item.path.parents):
            item.add_marker("lab")
    items.sort(key=lambda item: item.get_closest_marker("machines") is not None)
    if "faults" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("faults")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests of the lab where it cannot run, which CI takes for a failure, and of torch without torch."""
    if item.get_closest_marker("torch") is not None and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if item.get_closest_marker("lab") is None:
        return
    reason = missing_for_lab()
    if not reason and item.get_closest_marker("machines") is not None:
        reason = missing_for_machines()
    if reason and os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    if reason:
        pytest.skip(reason)
