"""What is read of avahi-daemon beside its D-Bus: processes, unit, log, folder, as real machines say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host import avahi_log, avahi_process, avahi_unit, bus_policy, own_records, service_folder
from avahi_gpu.host.system import System
from avahi_gpu.model import ServiceFile, UnitState

STAT = "25 (avahi-daemon) S 1 24 24 0 -1 4194624 137 0 0 0 0 0 0 0 20 0 1 0 2914839 7196672 753 184 1 1\n"
STATUS = "Name:\tavahi-daemon\nState:\tS (sleeping)\nUid:\t102\t102\t102\t102\nNSpid:\t25\n"


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def put(system: System, path: str, text: str | bytes) -> Path:
    file = system.root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def process(system: System, pid: int, line: str, *, status: str = STATUS, stat: str = STAT) -> None:
    for name, text in (("comm", "avahi-daemon\n"), ("cmdline", line), ("status", status), ("stat", stat)):
        put(system, f"/proc/{pid}/{name}", text)
    os.symlink("/etc/avahi", system.root / f"proc/{pid}/root")


# --- processes -------------------------------------------------------------------------------------------


def test_the_daemon_is_found_and_not_its_helper(system: System) -> None:
    process(system, 25, "avahi-daemon: running [gpu-node-1.local]\0")
    process(system, 26, "avahi-daemon: chroot helper\0\0\0")
    put(system, "/proc/27/comm", "bash\n")
    started = put(system, "/run/avahi-daemon/pid", "25\n").stat().st_mtime

    (found,) = avahi_process.read_processes(system)

    assert (found.pid, found.state, found.uid, found.argv) == (25, "S", 102, ())
    assert found.root == "/etc/avahi" and found.started == pytest.approx(started)


def test_a_helper_without_a_title_is_known_by_its_parent(system: System) -> None:
    process(system, 25, "avahi-daemon\0--no-proc-title\0")
    process(system, 26, "avahi-daemon\0--no-proc-title\0", status=f"{STATUS}PPid:\t25\n")

    assert [p.pid for p in avahi_process.read_processes(system)] == [25]


def test_arguments_are_told_where_no_title_covers_them(system: System) -> None:
    process(system, 25, "avahi-daemon\0-f\0/etc/other.conf\0--no-proc-title\0")

    assert avahi_process.read_processes(system)[0].argv[1:3] == ("-f", "/etc/other.conf")


def test_a_containers_daemon_is_not_ours_and_its_processes_count(system: System) -> None:
    process(system, 25, "avahi-daemon: running [x.local]\0", status=STATUS.replace("25\n", "25\t6\n"))
    put(system, "/etc/passwd", "root:x:0:0::/:/bin/sh\navahi:x:102:105::/run/avahi-daemon:/bin/false\n")

    assert avahi_process.read_processes(system) == ()
    assert avahi_process.count_users_processes(system) == 1


def test_without_a_pid_file_the_start_is_counted_from_the_boot(system: System) -> None:
    process(system, 25, "avahi-daemon: running [x.local]\0")
    put(system, "/proc/stat", "cpu 1 2\nbtime 1000\n")

    (found,) = avahi_process.read_processes(system)

    assert found.started == 1000 + 2914839 / os.sysconf("SC_CLK_TCK") + 2.0


def test_a_name_with_blanks_and_brackets_is_no_trap() -> None:
    assert avahi_process.parse_stat(STAT.replace("avahi-daemon", "a) R 1 (b")) == ("S", 2914839)
    assert avahi_process.parse_stat("") is None


@given(st.text())
def test_any_text_is_read_without_a_fault(text: str) -> None:
    avahi_process.parse_stat(text)
    avahi_process.parse_status(text)
    avahi_unit.parse_show(text)
    avahi_log.parse_log(text, 7)


# --- systemd ---------------------------------------------------------------------------------------------


def test_what_systemctl_shows_of_a_running_unit() -> None:
    text = (
        "ExecStart={ path=/usr/sbin/avahi-daemon ; argv[]=/usr/sbin/avahi-daemon -s ; ignore_errors=no ; "
        "start_time=[Mon 2026-11-30 08:00:00 UTC] ; stop_time=[n/a] ; pid=612 ; code=(null) ; status=0/0 }\n"
        "ExecMainStatus=0\nResult=success\nLoadState=loaded\nActiveState=active\n"
        "FragmentPath=/lib/systemd/system/avahi-daemon.service\nUnitFileState=enabled\n"
    )

    assert avahi_unit.parse_show(text) == UnitState(
        "loaded",
        "active",
        "enabled",
        "success",
        0,
        ("/usr/sbin/avahi-daemon", "-s"),
        "/lib/systemd/system/avahi-daemon.service",
    )


def test_what_systemctl_shows_of_a_masked_and_a_failed_one() -> None:
    masked = avahi_unit.parse_show("LoadState=masked\nActiveState=inactive\nUnitFileState=masked\n")
    failed = avahi_unit.parse_show("ActiveState=failed\nResult=exit-code\nExecMainStatus=255\n")
    two = avahi_unit.parse_show("Result=success\nLoadState=loaded\n\nResult=success\nLoadState=masked\n")

    assert (masked.load, masked.enabled, masked.argv) == ("masked", "masked", ())
    assert (failed.active, failed.result, failed.exit_status) == ("failed", "exit-code", 255)
    assert (two.load, two.socket_load, masked.socket_load) == ("loaded", "masked", "")


def test_without_systemd_there_is_no_unit(system: System) -> None:
    assert avahi_unit.read_unit(system) is None


# --- the log ---------------------------------------------------------------------------------------------

LOG = (
    "Nov 30 07:00:00 gpu-node-1 avahi-daemon[11]: Host name conflict, retrying with gpu-node-1-2\n"
    "Nov 30 08:00:00 gpu-node-1 avahi-daemon[25]: Found user 'avahi' (UID 102) and group 'avahi' (GID 105).\n"
    "Nov 30 08:00:00 gpu-node-1 kernel: eth0: link up\n"
    "2026-11-30T08:00:01.1+01:00 gpu-node-1 avahi-daemon[25]: Server startup complete.\n"
)


def test_the_log_of_the_daemon_that_runs(system: System) -> None:
    put(system, "/var/log/syslog", LOG)

    found = avahi_log.read_log(system, 25)

    assert found is not None and len(found) == 2 and found[-1] == "Server startup complete."
    assert avahi_log.read_log(system, 99) == ()
    assert avahi_log.read_log(system, None) == found


def test_no_log_is_no_answer(system: System) -> None:
    assert avahi_log.read_log(system, 25) is None


def test_the_end_of_a_huge_log_is_read(system: System) -> None:
    put(system, "/var/log/syslog", "x" * 79 + "\n" + ("y" * 79 + "\n") * 100_000 + LOG)

    assert avahi_log.read_log(system, 11) == ("Host name conflict, retrying with gpu-node-1-2",)


# --- the folder and the bus ------------------------------------------------------------------------------


def test_every_file_is_there_but_the_hidden_ones(system: System) -> None:
    for name in ("a.service", "b.xml", ".c.service"):
        put(system, f"/etc/avahi/services/{name}", name)

    assert [f.name for f in service_folder.read_folder(system)] == ["a.service", "b.xml"]


def test_what_the_files_would_publish(system: System) -> None:
    group = '<service-group><name replace-wildcards="yes">x on %h</name>{}</service-group>'
    service = "<service><type>_xy._tcp.</type></service>"
    put(system, "/etc/avahi/services/a.service", group.format(service))
    put(system, "/etc/avahi/services/b.service", group.format("<nonsense/>"))
    put(system, "/etc/avahi/services/c.xml", group.format(service))
    files: tuple[ServiceFile, ...] = service_folder.read_folder(system)

    assert own_records.expect(files, "box") == [("x on box", "_xy._tcp")]


def test_the_file_that_refuses_the_name_is_named(system: System) -> None:
    deny = '<busconfig><policy context="default"><deny own="*"/></policy></busconfig>'
    allow = '<busconfig><policy user="avahi"><allow own="org.freedesktop.Avahi"/></policy></busconfig>'
    assert bus_policy.read_refusal(system) == ""  # nothing to read, nothing to say
    put(system, "/usr/share/dbus-1/system.conf", deny)
    assert "no file in" in bus_policy.read_refusal(system)
    put(system, "/usr/share/dbus-1/system.d/avahi-dbus.conf", allow)
    assert bus_policy.read_refusal(system) == ""
    put(system, "/etc/dbus-1/system.d/x.conf", allow.replace("allow own", "deny own"))
    assert bus_policy.read_refusal(system) == "/etc/dbus-1/system.d/x.conf:1"
