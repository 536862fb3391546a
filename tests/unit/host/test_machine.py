"""Packages, daemons, look-ups and who this machine is."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import ChangeFailed, MalformedInput
from avahi_gpu.files import service_file, txt
from avahi_gpu.host import daemons, machine, node, nss, packages
from avahi_gpu.host.machine import library_folders
from avahi_gpu.host.system import System
from avahi_gpu.model import DaemonFacts, DaemonProcess, FileState, NodeFacts, UnitState

MACHINE_ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def system(tmp_path: Path) -> System:
    (tmp_path / "etc").mkdir()
    return System(tmp_path)


def put(system: System, path: str, content: bytes) -> None:
    system.make_folder(Path(path).parent)
    system.write(path, content)


# --- packages --------------------------------------------------------------------------------------------


def test_dpkg_states_are_read() -> None:
    """rc: removed with its configuration left; iU: unpacked, not yet set up; hi: held and installed."""
    text = "avahi-daemon ii \nlibnss-mdns rc \ndbus hi \navahi-utils un \nother iU \n"

    assert packages.parse_dpkg(text) == {"avahi-daemon", "dbus"}


@pytest.mark.skipif(packages.find_manager(System()) != "apt", reason="a machine with apt is asked")
def test_installed_and_missing_packages_are_told_apart() -> None:
    found = packages.read_installed(System(), "apt", ("libc6", "avahi-gpu-no-such-package"))

    assert found == {"libc6": True, "avahi-gpu-no-such-package": False}


def test_without_a_package_manager_nothing_is_known(system: System) -> None:
    assert packages.read_installed(system, None, ("dbus",)) == {"dbus": None}


@pytest.mark.parametrize(
    ("files", "manager"),
    [
        (["/usr/bin/apt-get", "/usr/bin/snap"], "apt"),
        (["/usr/bin/dnf"], "dnf"),
        (["/usr/bin/rpm-ostree", "/usr/bin/dnf", "/run/ostree-booted"], "rpm-ostree"),
        (["/usr/bin/dnf", "/run/ostree-booted"], "image"),
        (["/etc/NIXOS", "/usr/bin/apt-get"], "nix"),
        (["/sbin/apk"], "apk"),
        ([], None),
    ],
)
def test_the_package_manager_is_told_by_what_is_there(
    system: System, files: list[str], manager: str | None
) -> None:
    for file in files:
        put(system, file, b"")
        (system.root / file.lstrip("/")).chmod(0o755)

    assert packages.find_manager(system) == manager


@pytest.mark.parametrize(
    ("os_release", "manager"),
    [
        ("ID=fedora\n", "dnf"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt"),
        ("ID=nobody-knows\n", "apt"),
    ],
)
def test_a_foreign_package_manager_is_not_taken_for_the_systems_own(
    system: System, os_release: str, manager: str
) -> None:
    for program in ("apt-get", "dnf"):
        put(system, f"/usr/bin/{program}", b"")
        (system.root / "usr/bin" / program).chmod(0o755)
    put(system, "/etc/os-release", os_release.encode())

    assert packages.find_manager(system) == manager


def test_a_failed_installation_is_one_sentence() -> None:
    with pytest.raises(ChangeFailed, match=r"sh -c .* failed: no such package"):
        packages.install(System(), ["sh", "-c", "echo no such package >&2; exit 1"])


# --- the C library and its nsswitch.conf ------------------------------------------------------------------

LIBRARIES = library_folders(platform.machine())
VENDOR = b"hosts: files dns\n"


def test_musl_is_told_from_glibc_by_what_is_there(system: System) -> None:
    assert machine.has_glibc(system)  # nothing is known of an empty tree
    put(system, "/lib/ld-musl-x86_64.so.1", b"")
    assert not machine.has_glibc(system)
    put(system, f"{LIBRARIES[0]}/libc.so.6", b"")  # both: Debian's package musl, or Alpine's with glibc
    assert machine.has_glibc(system)


@pytest.mark.parametrize("library", [b"\x7fELF\0/usr/etc/nsswitch.conf\0", b"\x7fELF\0/etc/nsswitch.conf\0"])
def test_a_vendors_file_counts_where_the_library_looks_for_it(system: System, library: bytes) -> None:
    """openSUSE's glibc does; an ostree system has such a file too, and nothing reads it."""
    put(system, "/usr/etc/nsswitch.conf", VENDOR)
    put(system, f"{LIBRARIES[1]}/libc.so.6", library)

    state = machine.read_hosts_line(system)

    if b"/usr/etc" in library:
        assert (state.path, state.content, state.writable) == ("/usr/etc/nsswitch.conf", VENDOR, True)
    else:
        assert (state.path, state.content) == ("/etc/nsswitch.conf", None)
    put(system, "/etc/nsswitch.conf", b"hosts: dns\n")
    assert machine.read_hosts_line(system).content == b"hosts: dns\n"


# --- daemons ---------------------------------------------------------------------------------------------


def test_systemd_is_told_by_its_folder(system: System) -> None:
    assert daemons.read_init(system) == "other"

    system.make_folder("/run/systemd/system")

    assert daemons.read_init(system) == "systemd"


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("enabled", True),
        ("static", True),
        ("linked", True),
        ("disabled", False),
        ("masked", False),
        ("", None),
    ],
)
def test_what_systemd_says_of_the_next_boot(text: str, enabled: bool | None) -> None:
    assert daemons.is_enabled(UnitState(enabled=text)) is enabled


def test_without_systemd_nobody_knows_of_the_next_boot() -> None:
    assert daemons.is_enabled(None) is None


def test_the_configuration_is_the_one_that_the_process_or_its_unit_names() -> None:
    unit = UnitState(argv=("/usr/sbin/avahi-daemon", "-s", "-f", "/etc/unit.conf"))
    titled = DaemonProcess(7, "S", 102, 0.0)
    told = DaemonProcess(7, "S", 102, 0.0, argv=("avahi-daemon", "--file=/etc/own.conf", "--no-proc-title"))

    assert daemons.find_config(None, DaemonFacts()) == daemons.DEFAULT_CONFIG
    assert daemons.find_config(7, DaemonFacts(unit=unit, processes=(titled,))) == "/etc/unit.conf"
    assert daemons.find_config(7, DaemonFacts(unit=unit, processes=(told,))) == "/etc/own.conf"


def test_a_stale_pid_file_names_nobody(system: System) -> None:
    put(system, "/run/avahi-daemon/pid", b"4711\n")
    put(system, "/proc/4711/comm", b"bash\n")
    assert daemons.find_avahi(system) is None

    put(system, "/proc/4711/comm", b"avahi-daemon\n")
    assert daemons.find_avahi(system) == 4711

    put(system, "/run/avahi-daemon/pid", b"../../etc/passwd\n")
    assert daemons.find_avahi(system) is None


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (["avahi-daemon: running [h.local]"], daemons.DEFAULT_CONFIG),
        (["avahi-daemon", "-D"], daemons.DEFAULT_CONFIG),
        (["avahi-daemon", "-f", "/nix/x.conf"], "/nix/x.conf"),
        (["avahi-daemon", "-f/nix/x.conf", "-D"], "/nix/x.conf"),
        (["avahi-daemon", "--file=/nix/x.conf"], "/nix/x.conf"),
        (["avahi-daemon", "--file", "/nix/x.conf"], "/nix/x.conf"),
        (["avahi-daemon", "-f"], daemons.DEFAULT_CONFIG),
    ],
)
def test_the_configuration_is_the_one_of_the_command_line(argv: list[str], path: str) -> None:
    assert daemons.parse_config_path(argv) == path


# --- look-ups --------------------------------------------------------------------------------------------


def test_localhost_resolves_and_nonsense_does_not() -> None:
    found = nss.lookup(System(), "localhost")
    lost = nss.lookup(System(), "avahi-gpu.invalid")

    assert {"127.0.0.1", "::1"} & set(found.addresses)
    assert found.error == ""
    assert (lost.addresses, bool(lost.error)) == ((), True)
    assert found.elapsed_s > 0


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\nb", "$(id)", "a" * 255, "ä.local", ".."])
def test_what_is_no_host_name_is_not_asked(name: str) -> None:
    assert nss.lookup(System(), name).error == "not a host name"


def test_a_hanging_lookup_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "getent").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "getent").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    found = nss.lookup(System(), "localhost", within_s=0.3)

    assert found.error == "timeout"
    assert 0.3 <= found.elapsed_s < 10


def test_without_getent_python_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert nss.lookup(System(), "localhost").addresses


def test_each_address_is_told_once() -> None:
    text = "10.0.0.1  STREAM h.local\n10.0.0.1  DGRAM\n10.0.0.1  RAW\nfe80::1%eth0  STREAM\n\n"

    assert nss.parse_ahosts(text) == ("10.0.0.1", "fe80::1%eth0")


# --- the node --------------------------------------------------------------------------------------------


def test_the_node_id_is_stable_and_tells_nothing(system: System) -> None:
    put(system, "/etc/machine-id", MACHINE_ID.encode() + b"\n")

    first = node.make_node_id(node.read_machine_id(system), "h")

    assert first == node.make_node_id(MACHINE_ID, "other")
    assert len(first) == 12
    assert set(first) <= set("0123456789abcdef")
    assert first not in MACHINE_ID
    assert first != node.make_node_id(MACHINE_ID[::-1], "h")


@pytest.mark.parametrize("content", [b"", b"uninitialized\n", b"0" * 32, b"abc\n", b"\xff" * 32])
def test_what_is_no_machine_id_is_none(system: System, content: bytes) -> None:
    put(system, "/etc/machine-id", content)

    assert node.read_machine_id(system) == ""


def test_without_a_machine_id_the_host_name_stands_in() -> None:
    assert node.make_node_id("", "One") == node.make_node_id("", "one") != node.make_node_id("", "two")


def test_the_shipped_template_makes_a_file_that_peers_can_read(system: System) -> None:
    content = node.render_service_file(system, NodeFacts("0123456789ab", cluster="a & <b>"), 29501)

    (service,) = service_file.parse(content).services
    assert (service.type, service.port) == ("_torch._tcp", 29501)
    assert txt.decode(service.txt).cluster == "a & <b>"


def test_an_unreadable_template_is_named(system: System) -> None:
    put(system, "/etc/avahi-gpu/templates/torch.service.j2", b"<ok/>\n\xff\n")
    with pytest.raises(MalformedInput, match=r"/etc/avahi-gpu/templates/torch\.service\.j2:2: not UTF-8"):
        node.read_template(system)

    system.remove("/etc/avahi-gpu/templates/torch.service.j2")
    system.make_folder("/etc/avahi-gpu/templates/torch.service.j2")
    with pytest.raises(MalformedInput, match="not a regular file"):
        node.read_template(system)


# --- facts -----------------------------------------------------------------------------------------------


def test_os_release_is_read_with_and_without_quotes() -> None:
    text = 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n# ID=no\nODD=\'x\'\n'

    found = machine.parse_os_release(text)

    assert (found["NAME"], found["ID"], found["VERSION_ID"], found["ODD"]) == (
        "Debian GNU/Linux",
        "debian",
        "12",
        "x",
    )


@given(st.text(max_size=200))
def test_any_os_release_is_read(text: str) -> None:
    machine.parse_os_release(text)


def test_modules_are_looked_for_where_glibc_looks(system: System) -> None:
    state = FileState("/etc/nsswitch.conf", b"hosts: files ../../etc/passwd mymodule dns\n")
    for folder in library_folders("x86_64")[:1]:
        put(system, f"{folder}/libnss_mdns4_minimal.so.2", b"")

    found = machine.find_modules(system, state)

    assert found["files"]
    assert found["dns"]
    assert found["mymodule"] is False
    assert not [name for name in found if "/" in name]


def test_the_folders_of_debian_and_of_others() -> None:
    assert "/usr/lib/x86_64-linux-gnu" in library_folders("x86_64")
    assert "/usr/lib/aarch64-linux-gnu" in library_folders("aarch64")
    assert "/lib64" in library_folders("x86_64")
