"""A booted Debian: run commands in it, change its files, reboot it, install in it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.lab import network
from tests.lab.host import SCRIPT
from tests.lab.process import END_WITHIN_S, ENTER, Follower, Process, finish
from tests.machines import wheels

BOOT = Path(__file__).with_name("boot.py")
BOOT_WITHIN_S = 120.0  # a second on a quiet machine; others boot beside it on a busy one
POLL_S = 0.05
UP = {"running", "degraded"}  # systemctl(1): all jobs are done, with or without a unit that failed
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "DEBIAN_FRONTEND": "noninteractive",
    "OMP_NUM_THREADS": "1",  # all machines share the cores of one
}

Command = Sequence[str | Path]


class BootFailed(Exception):
    """A machine did not come up."""


class Machine:
    """One machine of a ``Lab``: ``name`` is its host name, ``address`` its IPv4 address on eth0."""

    def __init__(
        self, number: int, address: str, *, release: str, root: Path, machine_id: str, token: str
    ) -> None:
        self.number = number
        self.name = f"machine-{number}"
        self.address = address
        self.release = release
        self.machine_id = machine_id
        self.pid = 0  # of its process 1, seen from outside; another one after each boot
        self._root = root
        self._token = token
        self._holder: subprocess.Popen[str] | None = None
        self._outer = 0  # process 1 of what holds the machine
        self._processes: list[Process] = []

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    # --- power --------------------------------------------------------------------------------------------

    def begin(self, lifeline: int, binds: Sequence[str]) -> None:
        """Begin to boot; ``plug_in`` and ``wait_until_up`` go on with it."""
        self._holder = subprocess.Popen(
            [*SCRIPT, str(BOOT), "machine", self.name, self.machine_id, str(self._root), *binds],
            stdin=lifeline,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "AVAHI_GPU_LAB": self._token},
            start_new_session=True,  # Ctrl-C is for the test, not for machines
        )

    def plug_in(self, switch: int) -> None:
        """Lay the cable to the switch in the network of process ``switch``."""
        holder = self._holder
        assert holder is not None and holder.stdout is not None and holder.stderr is not None
        line = holder.stdout.readline()
        if not line:
            raise BootFailed(f"{self.name} did not boot: {holder.stderr.read().strip()}")
        self._outer = int(line)
        network.plug_in(switch, self.number, self._outer, self.address)

    def wait_until_up(self, other_than: int = 0) -> None:
        """Wait until systemd has started everything; ``other_than`` is the process 1 of before a reboot."""
        deadline = time.monotonic() + BOOT_WITHIN_S
        state = "no process 1"
        while time.monotonic() < deadline:
            self.pid = self._process_1()
            if self.pid and self.pid != other_than:
                with suppress(OSError, subprocess.TimeoutExpired):
                    asked = self.run(["systemctl", "is-system-running", "--wait"], timeout=BOOT_WITHIN_S)
                    state = asked.stdout.strip() or asked.stderr.strip()
                    if state in UP:
                        return
            time.sleep(POLL_S)
        raise BootFailed(f"{self.name} is not up: {state}\n{self.console()[-2000:]}")

    def _process_1(self) -> int:
        """Return the pid of the machine's systemd, 0 while there is none."""
        for nspawn in _children(self._outer):
            for pid in _children(nspawn):
                with suppress(OSError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    inner = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
                    if inner[-1] == "1" and status.startswith("Name:\tsystemd\n"):
                        return pid
        return 0

    def console(self) -> str:
        """Return what the machine has printed on its console."""
        try:
            return Path(f"/proc/{self._outer}/root/mnt/console.log").read_text(errors="replace")
        except OSError:
            return ""

    def reboot(self) -> None:
        """Reboot as an administrator would, and wait until it is up again. What is on its disk stays."""
        before = self.pid
        with suppress(subprocess.TimeoutExpired):
            self.run(["systemctl", "reboot"])
        self.wait_until_up(other_than=before)

    def kill(self) -> None:
        """Take the power away: everything in it ends at once; its disk stays as it is."""
        before, self.pid = self.pid, 0
        with suppress(ProcessLookupError):
            os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + BOOT_WITHIN_S
        while _children(self._outer):
            if time.monotonic() > deadline:
                raise BootFailed(f"{self.name} does not end")
            time.sleep(POLL_S)

    def power_on(self) -> None:
        """Boot a machine that was killed or has powered itself off."""
        os.kill(self._outer, signal.SIGUSR1)
        self.wait_until_up()

    def end(self) -> None:
        """Bury what was started for it; the lifeline has ended it."""
        for process in self._processes:
            process.end()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        if self._holder is not None:
            try:
                self._holder.wait(END_WITHIN_S * 4)
            except subprocess.TimeoutExpired:
                self._holder.kill()  # the kernel ends process 1 with it
                self._holder.wait(END_WITHIN_S)
            for stream in (self._holder.stdout, self._holder.stderr):
                if stream is not None:
                    stream.close()

    # --- commands and files -------------------------------------------------------------------------------

    def popen(
        self, argv: Command, *, env: Mapping[str, str] | None = None, cwd: str = "/root", **options: Any
    ) -> Process:
        """Start ``argv`` and return at once; ``env`` is added to a small fixed environment.

        Both outputs are pipes and stdin is empty, unless ``options`` (those of ``subprocess.Popen``) say
        otherwise. It is ended with the machine.
        """
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        process = Process(
            [*SCRIPT, str(ENTER), str(self.pid), cwd, *map(str, argv)],
            **{**streams, **options},
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**ENVIRONMENT, **(env or {})},
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def run(
        self,
        argv: Command,
        *,
        input: str | None = None,
        timeout: float = 60.0,
        check: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: str = "/root",
    ) -> subprocess.CompletedProcess[str]:
        """Run ``argv`` to its end. Raises CommandFailed where ``check`` asks for exit code 0 and it is not.

        After ``timeout`` seconds the command is killed and subprocess.TimeoutExpired raised.
        """
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        process = self.popen(argv, env=env, cwd=cwd, stdin=stdin)
        try:
            return finish(process, input, timeout, check=check)
        finally:
            self._processes.remove(process)

    def follow(self, argv: Command, *, env: Mapping[str, str] | None = None) -> Follower:
        """Start ``argv`` and read its output, both streams merged, as it comes."""
        return Follower(self.popen(argv, env=env, stderr=subprocess.STDOUT))

    def path(self, path: str | Path) -> Path:
        """Return the machine's ``path`` as one that can be opened out here. Absolute links lead astray."""
        return Path(f"/proc/{self.pid}/root") / str(path).lstrip("/")

    def read(self, path: str | Path) -> bytes | None:
        """Return the content of a file, None where there is none."""
        try:
            return self.path(path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str | Path, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file in place, making the folders above it."""
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)

    # --- installing ---------------------------------------------------------------------------------------

    def apt_install(self, *packages: str) -> None:
        """Install packages from the archive that the machine has of its own."""
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        self.run(command, timeout=300, check=True)

    def install_avahi_gpu(self, *, honestly: bool = False) -> None:
        """Put the project into /opt/avahi-gpu, and its command on PATH.

        ``honestly``: by apt and pip in the machine, ten seconds; else as a copy of what they make, in one.
        """
        if honestly:
            self.apt_install("python3-venv")
            self.run(["python3", "-m", "venv", "/opt/avahi-gpu"], check=True)
            pip = ["/opt/avahi-gpu/bin/pip", "install", "-q", "--no-index", "--find-links", "/srv/wheels"]
            self.run([*pip, "avahi-gpu"], timeout=300, check=True)
        else:
            self.copy_in(wheels.environment(self.release), "/opt/avahi-gpu")
        self.run(["ln", "-sf", "/opt/avahi-gpu/bin/avahi-gpu", "/usr/local/bin/avahi-gpu"], check=True)

    def copy_in(self, source: Path, target: str) -> None:
        """Copy a folder of the outer machine to ``target``, which must not be there yet."""
        where = self.path(target)
        where.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "-T", source, where], timeout=120, check=True)


def groups_left(token: str) -> list[str]:
    """Return the control groups that labs whose token begins with ``token`` have left."""
    roots = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
    return [str(path) for root in roots for path in root.glob(f"avahi-gpu-{token}*")]


def _children(pid: int) -> list[int]:
    try:
        return [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:  # it has ended meanwhile
        return []
