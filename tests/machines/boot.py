"""Holds a booted machine, or the room from which a lab is controlled. Run as a script, by ``lab.py``.

``boot.py control``: network, process and mount namespaces with a /run and a home of their own; the switch of
the LAN lives in its network. ``boot.py machine NAME ID ROOT [BIND…]``: a Debian which systemd-nspawn
boots from ROOT, which stays as it is: what the machine writes is kept in memory.

Prints the pid of its process 1 as the outside sees it. Ends, and everything in it too, as soon as stdin is
closed: the maker of the lab holds the other end of that pipe, so that nothing outlives it, whatever way it
ends. Nothing is written outside of own mounts, except for a control group that is removed again.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

import syscalls  # the lab's; this is a script, not part of a package

LIFELINE = 0  # stdin
ROOM = Path("/mnt")  # a tmpfs of our own: the machine's disk, and the log of its console
GROUPS = Path("/sys/fs/cgroup")
REBOOT = (
    133  # systemd-nspawn's exit code where the machine asks for a reboot, see systemd-nspawn(1), --keep-unit
)
CABLE_WITHIN_S = 30.0  # it is laid at once
REMOVE_WITHIN_S = 5.0  # a control group can be removed a moment after its last process has ended


def make_room() -> None:
    """Give us mounts of our own, and a /run."""
    syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_SLAVE)
    syscalls.mount("tmpfs", "/run", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=0755")


def mount_proc() -> None:
    """Show the processes of our own pid namespace."""
    syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)


def make_disk(name: str, machine_id: str, root: str) -> None:
    """Lay a disk in memory over the root file system, and write what each machine has of its own."""
    syscalls.mount("tmpfs", str(ROOM), "tmpfs", 0, "mode=0755,size=100%")
    for folder in ("upper", "work", "root"):
        (ROOM / folder).mkdir()
    options = f"lowerdir={root},upperdir={ROOM}/upper,workdir={ROOM}/work"
    syscalls.mount("overlay", str(ROOM / "root"), "overlay", 0, options)
    files = {
        "hostname": f"{name}\n",
        "machine-id": f"{machine_id}\n",
        "hosts": f"127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n",
    }
    for file, text in files.items():
        (ROOM / "root/etc" / file).write_text(text)


def start(name: str, binds: list[str]) -> subprocess.Popen[bytes]:
    """Switch the machine on."""
    command = [
        "systemd-nspawn",
        "--quiet",
        f"--directory={ROOM}/root",
        f"--machine={name}",
        f"--hostname={name}",
        "--boot",
        "--settings=no",
        "--register=no",
        "--keep-unit",
        "--network-namespace-path=/proc/1/ns/net",
        "--capability=CAP_NET_ADMIN",  # its own network: services of the firewall load their rules
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=pipe",
        *(f"--bind-ro={bind}" for bind in binds),
    ]
    with (ROOM / "console.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            start_new_session=True,
        )


def wait_for_cable() -> None:
    """Wait until there is an eth0."""
    deadline = time.monotonic() + CABLE_WITHIN_S
    while "eth0:" not in Path("/proc/self/net/dev").read_text():
        if time.monotonic() > deadline:
            sys.exit("no cable was laid to this machine")
        time.sleep(0.01)


def idle(name: str = "", binds: list[str] | None = None) -> None:
    """Wait for the end of the lifeline, as process 1 must: burying orphans, and starting a machine again.

    Without a ``name`` there is no machine. SIGUSR1 switches one on that is off.
    """
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    machine = start(name, binds or []) if name else None
    while True:
        readable, _, _ = select.select([LIFELINE, wake_read], [], [])
        if LIFELINE in readable:
            return
        wanted = signal.SIGUSR1 in os.read(wake_read, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if machine is not None and ended[0] == machine.pid:
                    machine.returncode = os.waitstatus_to_exitcode(ended[1])
                    wanted |= machine.returncode == REBOOT
        if name and wanted and (machine is None or machine.returncode is not None):
            machine = start(name, binds or [])


def remove_group(group: Path) -> None:
    """Remove the control group of a machine that has ended, with what it had made in it."""
    deadline = time.monotonic() + REMOVE_WITHIN_S
    while group.exists() and time.monotonic() < deadline:
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
        time.sleep(0.02)


def hold(arguments: list[str]) -> None:
    """Make the namespaces, be process 1 in them by a child, and clean up after it."""
    syscalls.unshare(["mnt", "net", "pid", "ipc"])
    make_room()
    group = None
    if arguments:
        # one hierarchy, whatever the outer machine has, and a group of our own in it: two systemd-nspawn that
        # are started in the same group boot their machines in the same one
        syscalls.mount("cgroup2", str(GROUPS), "cgroup2")
        name, machine_id, root, *binds = arguments
        group = GROUPS / f"avahi-gpu-{os.environ.get('AVAHI_GPU_LAB', os.getpid())}-{name}"
        group.mkdir()
        make_disk(name, machine_id, root)
    else:
        Path("/run/home").mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        syscalls.die_with_parent(signal.SIGKILL)
        os.close(1)  # only the outer process speaks
        os.open("/dev/null", os.O_WRONLY)
        if group is not None:
            (group / "cgroup.procs").write_text("0")
        mount_proc()
        Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0\n")  # as in the lab
        if group is None:
            idle()
        else:
            wait_for_cable()
            idle(name, binds)
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    if group is not None:
        remove_group(group)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["control"]:
            hold([])
        case ["machine", _, _, _, *_]:
            hold(sys.argv[2:])
        case _:
            sys.exit("usage: boot.py control | boot.py machine NAME MACHINE-ID ROOT [BIND…]")
