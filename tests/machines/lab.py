"""A LAN of booted Debian machines on one machine, each with systemd, apt and nothing of Avahi. Root only.

    with machines(2) as lab:
        lab[0].install_avahi_gpu()
        lab[0].run(["avahi-gpu", "setup", "--yes"], check=True)

Machines are machine-1, machine-2, …; each lab has a subnet of its own, so many of them live side by side.
Nothing has a name in the outer machine: all of it hangs on processes that end when the maker's end of a pipe
closes, whatever way the maker ends.

``python -m tests.machines.lab 3`` boots three to look around in.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.lab import network
from tests.lab.host import REPOSITORY, SCRIPT
from tests.lab.process import END_WITHIN_S, ENTER, Process, finish
from tests.machines import wheels
from tests.machines.cache import CACHE, locked
from tests.machines.image import root_of
from tests.machines.machine import BOOT, ENVIRONMENT, Machine

# a systemd takes about ten of the 128 inotify instances that the kernel gives root by default
MACHINES_AT_ONCE = 9
POLL_S = 0.1
HOME = "/run/home"  # in the control room

_numbers = itertools.count(1)


class Lab:
    """Machines on one LAN, ``lab[0]`` being machine-1. Made by ``machines``."""

    ssh_key = f"{HOME}/.ssh/id_ed25519"  # as ``control`` sees it; ``allow_ssh`` makes it

    def __init__(self, size: int, *, release: str, layer: Path | None = None) -> None:
        number = next(_numbers)
        self.token = f"{os.getpid()}-m{number}"
        self.release = release
        # LANs are isolated, so equal subnets do no harm; different ones keep output of two labs apart
        self.subnet = f"10.{78 + number % 100}.{os.getpid() % 254 + 1}"
        root = root_of(release)
        if layer is not None:
            root = Path(f"{layer}:{root}")  # as overlayfs names layers, the upper one first
        self.machines = [
            Machine(
                i,
                f"{self.subnet}.{i}",
                release=release,
                root=root,
                machine_id=hashlib.sha256(f"{self.token}/{i}".encode()).hexdigest()[:32],
                token=self.token,
            )
            for i in range(1, size + 1)
        ]
        self._wheels = wheels.all_wheels(release)
        self._room: subprocess.Popen[str] | None = None
        self._room_pid = 0
        self._lifeline = -1
        self._theirs = -1
        self._processes: list[Process] = []
        self._public_key = ""

    def __getitem__(self, index: int) -> Machine:
        return self.machines[index]

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def boot(self, binds: Sequence[str]) -> None:
        """Start the control room with the switch in it, and all machines side by side."""
        self._theirs, self._lifeline = (
            os.pipe()
        )  # neither end is inherited, but as the stdin of what we start
        self._room = subprocess.Popen(
            [*SCRIPT, str(BOOT), "control"],
            stdin=self._theirs,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "AVAHI_GPU_LAB": self.token},
            start_new_session=True,
        )
        for machine in self.machines:
            machine.begin(self._theirs, [f"{self._wheels}:/srv/wheels", *binds])
        assert self._room.stdout is not None
        self._room_pid = int(self._room.stdout.readline())
        network.build_switch(self._room_pid)
        network.configure(self._room_pid, [f"addr add {self.subnet}.254/24 dev {network.BRIDGE}"])
        for machine in self.machines:
            machine.plug_in(self._room_pid)
        with ThreadPoolExecutor(len(self.machines)) as together:
            list(together.map(lambda machine: machine.wait_until_up(), self.machines))

    def control(
        self,
        argv: Sequence[str | Path],
        *,
        input: str | None = None,
        timeout: float = 120.0,
        check: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: Path | str = REPOSITORY,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the outer machine, on the lab's LAN as ``<subnet>.254``, to its end.

        It sees the outer machine's files, but a /run and a home folder that vanish with the lab, and so do
        all processes that it leaves. Commands of the project's .venv come first on its PATH.
        """
        own = {
            **ENVIRONMENT,
            "PATH": f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}",
            "HOME": HOME,
        }
        process = Process(
            [*SCRIPT, str(ENTER), str(self._room_pid), str(cwd), *map(str, argv)],
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**own, **(env or {})},
            start_new_session=True,
        )
        self._processes.append(process)
        try:
            return finish(process, input, timeout, check=check)
        finally:
            self._processes.remove(process)

    @property
    def ssh_options(self) -> list[str]:
        """Options with which ``control``'s ssh comes into machines that ``allow_ssh`` has opened."""
        settings = [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "BatchMode=yes",
        ]
        return ["-F", "/dev/null", "-i", self.ssh_key, *(word for s in settings for word in ("-o", s))]

    def allow_ssh(self, *which: Machine) -> None:
        """Install an ssh server on these machines, or on all, and let root of the control room in."""
        if not self._public_key:
            self.control(["mkdir", "-p", "-m", "700", f"{HOME}/.ssh"], check=True)
            self.control(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.ssh_key], check=True)
            self._public_key = self.control(["cat", f"{self.ssh_key}.pub"], check=True).stdout

        def allow(machine: Machine) -> None:
            machine.apt_install("openssh-server")
            machine.write("/root/.ssh/authorized_keys", self._public_key, mode=0o600)

        chosen = which or tuple(self.machines)
        with ThreadPoolExecutor(len(chosen)) as together:
            list(together.map(allow, chosen))

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        if self._lifeline >= 0:
            os.close(
                self._lifeline
            )  # from here on all machines end by themselves, even if we are interrupted
            os.close(self._theirs)
            self._lifeline = self._theirs = -1
        for process in self._processes:
            process.end()
        for machine in self.machines:
            machine.end()
        if self._room is not None:
            self._room.wait(END_WITHIN_S)
            if self._room.stdout is not None:
                self._room.stdout.close()
            self._room = None


@contextmanager
def machines(
    n: int, release: str = "bookworm", *, binds: Sequence[str] = (), layer: Path | None = None
) -> Iterator[Lab]:
    """Boot ``n`` bare machines of a Debian release, and take them down again.

    /srv/wheels in them holds the project's wheel and those of what it needs. ``binds``: more folders of the
    outer machine that they see, read-only, each as ``OUTER:INNER``. ``layer``: an upper layer of overlayfs,
    over the root file system that all of them boot. Raises NotMade where that cannot be made here.
    """
    lab = Lab(n, release=release, layer=layer)
    with _places(n):
        try:
            lab.boot(binds)
            yield lab
        finally:
            lab.close()


@contextmanager
def _places(n: int) -> Iterator[None]:
    """Take ``n`` of the places for machines that this computer has, all at once; wait until they are free."""
    if not 1 <= n <= MACHINES_AT_ONCE:
        raise ValueError(f"a lab has 1 to {MACHINES_AT_ONCE} machines, not {n}")
    with ExitStack() as held:
        with locked("queue"):
            taken = 0
            while taken < n:
                free = any(_take(place, held) for place in range(MACHINES_AT_ONCE))
                taken += free
                if not free:
                    time.sleep(POLL_S)
        yield


def _take(place: int, held: ExitStack) -> bool:
    file = (CACHE / f".place-{place}.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    held.enter_context(file)
    return True


def look_around(size: int) -> None:
    """Boot machines, say how to get in, wait for Ctrl-C."""
    with machines(size) as lab:
        for machine in lab:
            print(f"{machine.name}  {machine.address}  nsenter -t {machine.pid} -a bash")
        print("Ctrl-C takes them down.", flush=True)
        with suppress(KeyboardInterrupt):
            signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    look_around(int(sys.argv[1]) if sys.argv[1:] else 3)
