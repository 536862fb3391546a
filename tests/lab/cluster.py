"""A LAN of virtual hosts on one machine, up in about a second. Root only.

    with cluster(3) as lab:
        lab.hosts[0].run(["getent", "hosts", "gpu-node-2.local"], check=True)
        lab.hosts[1].cut()

Each host has its own network, mount, UTS, IPC and PID namespace, its own /etc, /var and /run, its own
dbus-daemon and avahi-daemon. Nothing has a name in the outer machine and nothing is written there: all of it
hangs on processes that end when the maker's end of a pipe closes, whatever way the maker ends.

``python -m tests.lab.cluster 3`` boots one to look around in.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.lab import network
from tests.lab.host import BOOT, SCRIPT, Host
from tests.lab.process import END_WITHIN_S

HOSTS_AT_MOST = 200  # of a /24, with room for addresses that tests take themselves

_numbers = itertools.count(1)


class Cluster:
    """Virtual hosts on one LAN, ``hosts[0]`` being gpu-node-1. Made by ``cluster``."""

    def __init__(self, size: int, *, bare: bool, subnet: str | None) -> None:
        if not 1 <= size <= HOSTS_AT_MOST:
            raise ValueError(f"a cluster has 1 to {HOSTS_AT_MOST} hosts, not {size}")
        number = next(_numbers)
        self.token = f"{os.getpid()}-{number}"
        # LANs are isolated, so equal subnets do no harm; different ones keep output of two clusters apart
        self.subnet = subnet or f"10.77.{(os.getpid() * 7 + number) % 254 + 1}"
        self.hosts = [
            Host(
                i,
                f"{self.subnet}{'::' if ':' in self.subnet else '.'}{i}",
                self._machine_id(i),
                bare=bare,
                token=self.token,
            )
            for i in range(1, size + 1)
        ]
        self._switch: subprocess.Popen[str] | None = None
        self._lifeline = -1
        self._theirs = -1  # the end of the lifeline that hosts hold as their stdin

    def __getitem__(self, index: int) -> Host:
        return self.hosts[index]

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)

    def _machine_id(self, number: int) -> str:
        return hashlib.sha256(f"{self.token}/{number}".encode()).hexdigest()[:32]

    def boot(self, *, avahi: bool, settle: bool) -> None:
        """Start the switch and all hosts side by side."""
        # neither end is inherited, except as the stdin of what we start
        self._theirs, self._lifeline = os.pipe()
        self._switch = subprocess.Popen(
            [*SCRIPT, str(BOOT), "switch"],
            stdin=self._theirs,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for host in self.hosts:
            host.power_on(self._theirs)
        assert self._switch.stdout is not None
        switch = int(self._switch.stdout.readline())
        network.build_switch(switch)
        for host in self.hosts:
            host.wait_until_up(switch)
        if avahi:
            with ThreadPoolExecutor(len(self.hosts)) as together:
                list(together.map(lambda host: host.start_avahi(settle=settle), self.hosts))

    def power_on(
        self, host: Host, *, settle: bool = True, files: Mapping[str | Path, str] | None = None
    ) -> None:
        """Boot a host again that was killed, with avahi-daemon; what it had written to its /etc is gone.

        ``files``: path -> text of those that are to be there when the daemon starts.
        """
        host.power_on(self._theirs)
        host.wait_until_up(host.switch)
        for path, text in (files or {}).items():
            host.write(path, text)
        host.start_avahi(settle=settle)

    def power_on_bare(self, host: Host) -> None:
        """Boot a host again as it is before ``setup``: no file is written, and no avahi-daemon runs."""
        host.bare = True
        host.power_on(self._theirs)
        host.wait_until_up(host.switch)

    def partition(self, *groups: Sequence[Host]) -> None:
        """Part the LAN: the hosts of each group see each other alone, and all keep their carrier."""
        network.part(self.hosts[0].switch, [[host.number for host in group] for group in groups])

    def reunite(self) -> None:
        """Make one LAN of the parts again."""
        network.reunite(self.hosts[0].switch, [host.number for host in self.hosts if host.pid])

    def strangers(self) -> list[str]:
        """Return the command lines of processes that freshly booted hosts would not have."""
        return [line for host in self.hosts for line in host.strangers()]

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        if self._lifeline >= 0:
            os.close(self._lifeline)  # from here on all hosts end by themselves, even if we are interrupted
            os.close(self._theirs)
            self._lifeline = self._theirs = -1
        for host in self.hosts:
            host.end()
        if self._switch is not None:
            self._switch.kill()
            self._switch.wait(END_WITHIN_S)
            if self._switch.stdout is not None:
                self._switch.stdout.close()
            self._switch = None


@contextmanager
def cluster(
    n: int, *, avahi: bool = True, bare: bool = False, settle: bool = True, subnet: str | None = None
) -> Iterator[Cluster]:
    """Boot ``n`` hosts gpu-node-1, gpu-node-2, … and take them down again.

    ``avahi=False``: avahi-daemon does not run yet. ``bare=True``: as before ``setup``, which means so, and
    that the hosts line of nsswitch.conf is ``files dns``. ``settle=False``: return before the daemons have
    registered their names. ``subnet``: three numbers of an IPv4 address, chosen anew for each if None; or the
    first of an IPv6 address (``fd77:1``), for a LAN without IPv4.
    """
    lab = Cluster(n, bare=bare, subnet=subnet)
    try:
        lab.boot(avahi=avahi and not bare, settle=settle)
        yield lab
    finally:
        lab.close()


def processes_of(token: str) -> list[str]:
    """Return the command lines of all living processes of clusters whose token begins with ``token``.

    A token is ``<pid of the maker>-<number>``, so ``f"{pid}-"`` finds all that one process has booted.
    """
    mark = b"\0AVAHI_GPU_LAB=" + token.encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark in b"\0" + (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # it has ended meanwhile
                continue
    return found


def look_around(size: int) -> None:
    """Boot a cluster, say how to get in, wait for Ctrl-C."""
    with cluster(size) as lab:
        enter = Path(__file__).with_name("enter.py")
        for host in lab:
            print(f"{host.name}  {host.address}  {sys.executable} {enter} {host.pid} . bash")
        print("Ctrl-C takes them down.", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    look_around(int(sys.argv[1]) if sys.argv[1:] else 3)
