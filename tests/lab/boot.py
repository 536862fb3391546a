"""Process 1 of a virtual host, or the holder of the LAN's switch. Run as a script: ``boot.py host NAME ID``.

Prints the pid of process 1 as the outside sees it once the host is ready. Ends, and with it everything in
the host, as soon as stdin is closed: the machine that made the lab holds the other end of that pipe, so that
nothing of the lab outlives it, whatever way it ends. Nothing is written outside the host's own mounts.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import syscalls

LIFELINE = 0  # stdin

# What a fresh Debian 12 or Ubuntu 24.04 has, comments aside; the developer's own files stay out of the lab.
FILES = {
    "/etc/hosts": "127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n",
    "/etc/hostname": "{name}\n",
    "/etc/machine-id": "{machine_id}\n",
    # mostly a link into /usr, which the hosts share with the outer machine: nobody may write through it
    "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
    "/etc/resolv.conf": "nameserver 127.0.0.53\n",  # nobody listens there: refused at once
    "/etc/nsswitch.conf": (
        "passwd:         files\ngroup:          files\nshadow:         files\ngshadow:        files\n\n"
        "hosts:          {hosts_line}\nnetworks:       files\n\n"
        "protocols:      db files\nservices:       db files\nethers:         db files\n"
        "rpc:            db files\n\nnetgroup:       nis\n"
    ),
    "/etc/avahi/avahi-daemon.conf": (
        "[server]\nuse-ipv4=yes\nuse-ipv6=yes\nratelimit-interval-usec=1000000\nratelimit-burst=1000\n\n"
        "[wide-area]\nenable-wide-area=yes\n\n[publish]\npublish-hinfo=no\npublish-workstation=no\n\n"
        "[reflector]\n\n[rlimits]\n"
    ),
}
HOSTS_LINES = {"ready": "files mdns4_minimal [NOTFOUND=return] dns", "bare": "files dns"}


def make_room(name: str) -> None:
    """Give this host its own /proc, /sys, /run, /dev/shm, /etc and /var; the rest is the outer machine's."""
    # our mounts stay ours; what the outer machine unmounts goes here too, so that we keep nothing of it alive
    syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_SLAVE)
    syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    syscalls.mount("sysfs", "/sys", "sysfs", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    # the overlays keep their upper layer alive, so its mount point is free again at once
    syscalls.mount("tmpfs", "/mnt", "tmpfs", 0, "mode=0755")
    for folder in ("etc", "var"):
        upper, work = f"/mnt/{folder}", f"/mnt/{folder}.work"
        Path(upper).mkdir()
        Path(work).mkdir()
        options = f"lowerdir=/{folder},upperdir={upper},workdir={work}"
        syscalls.mount("overlay", f"/{folder}", "overlay", 0, options)
    syscalls.unmount("/mnt")
    syscalls.mount("tmpfs", "/run", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=0755")
    syscalls.mount("tmpfs", "/dev/shm", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=1777")
    syscalls.set_host_name(name)


def furnish(name: str, machine_id: str, look: str) -> None:
    """Write the host's own files over those of the outer machine."""
    for folder in ("/run/dbus", "/run/avahi-daemon", "/run/lock"):
        Path(folder).mkdir()
    values = {"name": name, "machine_id": machine_id, "hosts_line": HOSTS_LINES[look]}
    for path, text in FILES.items():
        file = Path(path)
        file.unlink(missing_ok=True)  # it may be a link to somewhere outside
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.format(**values))
    bus_id = Path("/var/lib/dbus/machine-id")
    if bus_id.parent.is_dir():
        bus_id.unlink(missing_ok=True)
        bus_id.symlink_to("/etc/machine-id")
    foreign = [*Path("/etc/avahi/services").glob("*.service"), *Path("/var/lib/avahi-gpu").glob("*")]
    foreign += [*Path("/etc/avahi-gpu").glob("*"), Path("/etc/mdns.allow")]
    for file in foreign:
        if file.is_file():
            file.unlink(missing_ok=True)
    # without this an IPv6 address turns up a second late and avahi-daemon registers everything anew
    Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0\n")


def start_bus() -> None:
    """Start the host's system bus and wait until it listens."""
    code = os.spawnvp(os.P_WAIT, "dbus-daemon", ["dbus-daemon", "--system", "--fork", "--nopidfile"])
    if code != 0:
        raise OSError(f"dbus-daemon did not start: exit code {code}")


def idle() -> None:
    """Wait for the end of the lifeline, burying orphans meanwhile as process 1 must."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        bury_orphans()
        readable, _, _ = select.select([LIFELINE, wake_read], [], [])
        if LIFELINE in readable:
            return
        os.read(wake_read, 4096)


def bury_orphans() -> None:
    """Take the exit codes of all children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return


def hold_switch() -> None:
    """Hold a network namespace for the LAN's switch until the lifeline ends."""
    syscalls.unshare(["net"])
    print(os.getpid(), flush=True)
    select.select([LIFELINE], [], [])


def hold_host(name: str, machine_id: str, look: str) -> int:
    """Make the host in new namespaces and wait for its end; return process 1's exit code."""
    syscalls.unshare(["mnt", "uts", "ipc", "net", "pid"])
    ready_read, ready_write = os.pipe()
    child = os.fork()
    if child == 0:
        syscalls.die_with_parent(signal.SIGKILL)
        os.close(ready_read)
        make_room(name)
        furnish(name, machine_id, look)
        start_bus()
        os.write(ready_write, b"ready")
        os.close(ready_write)
        os.close(1)  # only the outer process speaks
        idle()
        os._exit(0)
    os.close(ready_write)
    if os.read(ready_read, 16) == b"ready":
        print(child, flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["switch"]:
            hold_switch()
        case ["host", host_name, host_id, host_look]:
            sys.exit(hold_host(host_name, host_id, host_look) and 1)
        case _:
            sys.exit("usage: boot.py switch | boot.py host NAME MACHINE-ID ready|bare")
