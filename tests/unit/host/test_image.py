"""A root file system that does not run: no program of this machine is run for it, and nothing leaves it."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path

import pytest

from avahi_gpu.errors import Misuse
from avahi_gpu.host import image_units
from avahi_gpu.host.image import MACHINES, POLICY, POLICY_FILE, Image, open_system
from avahi_gpu.host.image_facts import parse_dpkg_status, read_image
from avahi_gpu.host.system import System

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00"


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """The frame of an image."""
    root = tmp_path / "root"
    for folder in ("etc/systemd/system", "usr/lib/systemd/system", "usr/bin", "usr/sbin", "var/lib"):
        (root / folder).mkdir(parents=True)
    return Image(root)


def write(image: Image, path: str, content: str | bytes, mode: int = 0o644) -> None:
    file = image.root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    file.chmod(mode)


def test_every_way_to_a_process_is_its_own() -> None:
    """Whatever System starts on the machine itself must not be started there for an image."""
    methods = inspect.getmembers(System, inspect.isfunction)
    starters = {name for name, method in methods if "run_process" in method.__code__.co_names}

    assert len(starters) >= 3
    assert starters <= set(vars(Image))


@pytest.mark.parametrize(
    "argv",
    [["sh", "-c", "exit 0"], ["mv", "/etc/a", "/etc/b"], ["systemctl", "restart", "x.service"], ["nft"]],
)
def test_no_program_of_this_machine_is_run_for_it(image: Image, argv: list[str], tmp_path: Path) -> None:
    for done in (
        image.run(argv, 5.0),
        image.start_daemon(argv),
        image.run_to_its_end(argv, 5.0, {}, lambda: None),
    ):
        assert not done.ok
        assert "image" in done.stderr


def test_its_apt_is_not_run_where_it_is_for_another_architecture(image: Image) -> None:
    number = next(n for n in MACHINES if MACHINES[n] not in ("x86_64", "aarch64"))
    write(image, "usr/bin/env", ELF + bytes([number, 0]) + bytes(44), 0o755)
    write(image, "usr/bin/apt-get", "", 0o755)

    done = image.run(["apt-get", "update"], 5.0)

    assert not done.ok
    assert f"for {MACHINES[number]}" in done.stderr
    assert not image.exists(POLICY_FILE)


def test_nothing_in_a_programs_place_is_waited_for(image: Image) -> None:
    os.mkfifo(image.root / "usr/bin/env")

    assert image.read_architecture() == ""


def test_its_journal_has_no_program_of_it_run(image: Image) -> None:
    """Whoever made the image may have written that, too."""
    write(image, "usr/bin/dpkg", Path(sys.executable).read_bytes()[:64], 0o755)
    write(image, "usr/bin/apt-get", "", 0o755)
    undoing = open_system(str(image.root), installs=False)

    done = undoing.run(["dpkg", "--configure", "-a"], 5.0)

    assert not done.ok
    assert "is an image" in done.stderr
    assert not image.exists(POLICY_FILE)


def test_what_a_cut_installation_left_goes_and_a_policy_of_others_stays(image: Image) -> None:
    write(image, POLICY_FILE, POLICY)
    image.sweep_policy()
    assert not image.exists(POLICY_FILE)
    write(image, POLICY_FILE, "#!/bin/sh\nexit 101\n")
    image.sweep_policy()
    assert image.exists(POLICY_FILE)


def test_links_lead_nowhere_outside(image: Image, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (image.root / "etc/systemd/system/multi-user.target.wants").symlink_to(outside)
    write(image, "usr/lib/systemd/system/a.service", "[Install]\nWantedBy=multi-user.target\n")

    done = image.run(["systemctl", "enable", "a.service"], 1.0)

    assert "in the way" in done.stderr and not done.ok
    assert list(outside.iterdir()) == []


def test_units_that_need_each_other_are_enabled_once(image: Image) -> None:
    write(image, "usr/lib/systemd/system/a.service", "[Install]\nWantedBy=x.target\nAlso=b.socket\n")
    write(image, "usr/lib/systemd/system/b.socket", "[Install]\nWantedBy=sockets.target\nAlso=a.service\n")

    assert image.run(["systemctl", "enable", "a.service"], 1.0).ok

    folder = image.root / "etc/systemd/system"
    assert (folder / "x.target.wants/a.service").readlink() == Path("/usr/lib/systemd/system/a.service")
    assert (folder / "sockets.target.wants/b.socket").is_symlink()
    assert image.run(["systemctl", "disable", "a.service"], 1.0).ok
    assert list(folder.iterdir()) == []


def test_what_is_masked_or_missing_is_not_enabled(image: Image) -> None:
    write(image, "usr/lib/systemd/system/a.service", "[Install]\nWantedBy=x.target\n")
    (image.root / "etc/systemd/system/a.service").symlink_to("/dev/null")

    assert "masked" in image.run(["systemctl", "enable", "a.service"], 1.0).stderr
    assert "no unit" in image.run(["systemctl", "enable", "b.service"], 1.0).stderr
    assert image.run(["systemctl", "unmask", "a.service"], 1.0).ok
    assert image.run(["systemctl", "enable", "a.service"], 1.0).ok


@pytest.mark.parametrize(
    ("init", "boots"), [("/lib/systemd/systemd", True), ("/bin/busybox", False), (None, True)]
)
def test_which_init_it_boots(image: Image, init: str | None, boots: bool) -> None:
    write(image, "usr/lib/systemd/systemd", "")
    if init is not None:
        (image.root / "sbin").mkdir()
        (image.root / "sbin/init").symlink_to(init)

    assert image_units.boots_systemd(image) is boots


def test_an_image_without_systemd_gets_no_unit(image: Image) -> None:
    assert not image_units.boots_systemd(image)
    assert read_image(image).host.boot_unit is None


def test_nothing_of_this_machine_is_taken_for_the_images(image: Image) -> None:
    write(image, "var/lib/dpkg/status", "Package: avahi-daemon\nStatus: deinstall ok config-files\n")
    write(image, "usr/bin/apt-get", "", 0o755)

    facts = read_image(image)

    assert (facts.machine_id, facts.node_id, facts.hostname) == ("", "", "localhost")
    assert facts.interfaces == () and facts.gpus is None and not facts.daemon.installed
    assert facts.packages["avahi-daemon"] is False
    assert facts.nss_modules["mdns4_minimal"] is False
    assert facts.wanted_service_file is not None and b"id=" not in facts.wanted_service_file


def test_the_data_base_of_dpkg_is_read() -> None:
    text = "Package: a\nStatus: install ok installed\n\nPackage: b\nStatus: deinstall ok config-files\n"

    assert parse_dpkg_status(text) == {"a"}


def test_a_link_in_a_loop_or_a_file_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    for name in ("loop", "file", "missing", "."):
        with pytest.raises(Misuse):
            open_system(str(tmp_path / name))
    assert open_system("/").is_whole and open_system(None).is_whole
    assert type(open_system("//")) is System
