"""A virtual host: run commands in it, change its files, cut its cable, take its power away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.lab import network
from tests.lab.process import END_WITHIN_S, ENTER, Follower, Process, finish

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = [sys.executable, "-S", "-E", "-s"]  # a bare interpreter: it starts in a hundredth of a second
BOOT = Path(__file__).with_name("boot.py")
POOR_CABLE = Path(__file__).with_name("poor_cable.py")
REGISTER_WITHIN_S = 10.0  # avahi-daemon needs 0.8 to 1.0 s for its probes; the rest is for a busy machine
POLL_S = 0.05
RUNNING = "int32 2"  # org.freedesktop.Avahi.Server.GetState: AVAHI_SERVER_RUNNING
BASE = {"dbus-daemon", "avahi-daemon"}  # what belongs to a host beside its process 1

Command = Sequence[str | Path]
OWN = ("/etc/", "/var/", "/run/", "/proc/", "/sys/", "/dev/shm/")  # folders of the host's alone


def _is_own(path: str | Path) -> bool:
    return str(path).startswith(OWN)


class BootFailed(Exception):
    """A virtual host did not come up."""


class Host:
    """One virtual host of a ``Cluster``.

    ``name`` is its host name, ``address`` its address on eth0, ``pid`` that of its process 1 seen from
    outside. Paths and the working folder are the outer machine's, except /etc, /var, /run, /proc, /sys and
    /dev/shm, which are the host's own.
    """

    def __init__(self, number: int, address: str, machine_id: str, *, bare: bool, token: str) -> None:
        self.number = number
        self.name = f"gpu-node-{number}"
        self.address = address
        self.machine_id = machine_id
        self.bare = bare
        self.pid = 0
        self.switch = 0
        self._handle = -1
        self._token = token
        self._holder: subprocess.Popen[str] | None = None
        self._processes: list[Process] = []
        self._poor_cable: subprocess.Popen[str] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    # --- power and cable ---------------------------------------------------------------------------------

    def power_on(self, lifeline: IO[bytes] | int) -> None:
        """Begin to boot; ``wait_until_up`` ends it."""
        look = "bare" if self.bare else "ready"
        self._holder = subprocess.Popen(
            [*SCRIPT, str(BOOT), "host", self.name, self.machine_id, look],
            stdin=lifeline,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(None),
            start_new_session=True,  # Ctrl-C is for the test, not for the hosts
        )

    def wait_until_up(self, switch: int) -> None:
        """Wait for process 1 and the system bus, then lay the cable to ``switch``."""
        assert (
            self._holder is not None and self._holder.stdout is not None and self._holder.stderr is not None
        )
        line = self._holder.stdout.readline()
        if not line:
            raise BootFailed(f"{self.name} did not boot: {self._holder.stderr.read().strip()}")
        self.pid = int(line)
        self._handle = os.pidfd_open(self.pid)  # a number may be given to another process, this may not
        self.switch = switch
        network.plug_in(switch, self.number, self.pid, self.address)

    def kill(self) -> None:
        """Take the power away: the cable goes dead first, so that no process says goodbye, then all end."""
        if self._handle >= 0:
            network.unplug(self.switch, self.number, carrier=False)
        self.end()
        network.remove_port(self.switch, self.number)  # so that the host can be powered on again

    def end(self) -> None:
        """Kill process 1, and with it everything in the host; return when all of it has ended."""
        self._take_poor_cable_away()
        if self._holder is None:
            return
        if self._handle < 0:
            self._holder.kill()  # it never got up: the kernel ends process 1 with its parent
        else:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            os.close(self._handle)
            self._handle = -1
        self._holder.wait(END_WITHIN_S)  # process 1 ends after all others of its host, the holder after it
        for process in self._processes:
            process.end()
        for stream in (self._holder.stdout, self._holder.stderr):
            if stream is not None:
                stream.close()
        self._holder = None
        self.pid = 0

    def cut(self, *, carrier: bool = False) -> None:
        """Pull the network cable. With ``carrier`` the host sees no fault, its frames just go nowhere."""
        network.unplug(self.switch, self.number, carrier=carrier)

    def heal(self) -> None:
        """Put a good cable back, whatever was done to it by ``cut``, ``mute`` or ``impair``."""
        self._take_poor_cable_away()
        network.unmute(self.switch, self.number, self.pid)
        network.plug_back(self.switch, self.number)

    def mute(self, way: network.Way) -> None:
        """Let every frame from this host (``out``) or to it (``in``) vanish; ``heal`` ends it."""
        network.mute(self.switch, self.number, self.pid, way)

    def impair(self, *, loss: float = 0.0, delay_ms: float = 0.0, seed: int = 0) -> None:
        """Lose this share of the frames (0 to 1) and delay the others, each way; ``heal`` ends it."""
        self._take_poor_cable_away()
        network.unplug(self.switch, self.number, carrier=True)
        tap = f"poor{self.number}"
        pids = (self.switch, self.pid)
        words = [*pids, network.port_of(self.number), tap, loss, delay_ms / 1000, seed]
        self._poor_cable = subprocess.Popen(
            [*SCRIPT, str(POOR_CABLE), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._poor_cable.stdout is not None
        if not self._poor_cable.stdout.readline():
            raise RuntimeError(f"{self.name}: the poor cable does not work; its words are above")
        network.connect(self.switch, tap)

    def shape(self, mbit: float | None) -> None:
        """Let the cable carry so many Mbit/s each way; None: as many as it can. Raises RuntimeError."""
        network.shape(self.switch, self.number, self.pid, mbit)

    def _take_poor_cable_away(self) -> None:
        if self._poor_cable is not None:
            assert self._poor_cable.stdin is not None and self._poor_cable.stdout is not None
            self._poor_cable.stdin.close()
            self._poor_cable.wait(END_WITHIN_S)
            self._poor_cable.stdout.close()
            self._poor_cable = None

    def freeze(self) -> None:
        """Stop every process but process 1, as a host that swaps hard does; its kernel still answers."""
        for pid in self.outer_pids():
            if pid != self.pid:
                with suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all processes go on."""
        for pid in self.outer_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    # --- commands ----------------------------------------------------------------------------------------

    def popen(
        self,
        argv: Command,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str = REPOSITORY,
        **options: Any,
    ) -> Process:
        """Start ``argv`` and return at once; ``env`` is added to a small fixed environment.

        Both outputs are pipes and stdin is empty, unless ``options`` (those of ``subprocess.Popen``) say
        otherwise. It is ended with the host.
        """
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        process = Process(
            [*SCRIPT, str(ENTER), str(self.pid), str(cwd), *map(str, argv)],
            **{**streams, **options},
            text=True,
            encoding="utf-8",
            errors="replace",
            env=self._environment(env),
            start_new_session=True,
        )
        self._processes = [p for p in self._processes if p.returncode is None] + [process]
        return process

    def run(
        self,
        argv: Command,
        *,
        check: bool = False,
        timeout: float = 30.0,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | str = REPOSITORY,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``argv`` to its end. Raises CommandFailed where ``check`` asks for exit code 0 and it is not.

        After ``timeout`` seconds the command's process group is killed and subprocess.TimeoutExpired raised.
        """
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        process = self.popen(argv, env=env, cwd=cwd, stdin=stdin)
        return finish(process, input, timeout, check=check)

    def follow(
        self, argv: Command, *, env: Mapping[str, str] | None = None, cwd: Path | str = REPOSITORY
    ) -> Follower:
        """Start ``argv`` and read its output, both streams merged, as it comes."""
        return Follower(self.popen(argv, env=env, cwd=cwd, stderr=subprocess.STDOUT))

    # --- files -------------------------------------------------------------------------------------------

    def path(self, path: str | Path) -> Path:
        """Return the host's ``path`` as one that the outer machine can open. Absolute links lead astray."""
        return Path(f"/proc/{self.pid}/root") / str(path).lstrip("/")

    def read(self, path: str | Path) -> str:
        """Return the text of a file."""
        return self.path(path).read_text(encoding="utf-8")

    def write(self, path: str | Path, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file in place, making the folders above it.

        Raises ValueError where a link leads out of the host's own folders: the file is the outer machine's.
        """
        file = self.path(path)
        if file.is_symlink() and _is_own(path):
            target = os.path.normpath(Path(path).parent / file.readlink())
            if not _is_own(target):
                raise ValueError(f"{path} is a link to {target}, which is not this host's: remove it first")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)

    def send_signal(self, program: str, number: signal.Signals) -> None:
        """Send a signal to every process of that name on the host."""
        for pid in self.outer_pids():
            with suppress(OSError):  # it has ended meanwhile
                if Path(f"/proc/{pid}/comm").read_text().strip() == program:
                    os.kill(pid, number)

    # --- the bus -----------------------------------------------------------------------------------------

    def stop_bus(self) -> None:
        """Kill dbus-daemon. avahi-daemon gives up with it, or looks for it again, as it was built."""
        self.send_signal("dbus-daemon", signal.SIGKILL)

    def start_bus(self) -> None:
        """Start dbus-daemon, and avahi-daemon where it has given up, as systemd would."""
        self.run(["rm", "-f", "/run/dbus/pid"])
        self.run(["dbus-daemon", "--system", "--fork", "--nopidfile"], check=True)
        if self.run(["avahi-daemon", "--check"]).returncode != 0:
            self.start_avahi(settle=False)

    # --- avahi-daemon ------------------------------------------------------------------------------------

    def start_avahi(self, *, settle: bool = True) -> None:
        """Start avahi-daemon; with ``settle`` wait until its host name is registered (a second)."""
        self.run(["avahi-daemon", "--daemonize"], check=True)
        if settle:
            self.wait_for_avahi()

    def stop_avahi(self) -> None:
        """End avahi-daemon, which says goodbye on the LAN. Nothing happens where it does not run."""
        if self.run(["avahi-daemon", "--check"]).returncode == 0:
            self.run(["avahi-daemon", "--kill"], check=True)

    def restart_avahi(self, *, settle: bool = True) -> None:
        """Stop and start avahi-daemon."""
        self.stop_avahi()
        self.start_avahi(settle=settle)

    def wait_for_avahi(self, within_s: float = REGISTER_WITHIN_S) -> None:
        """Wait until avahi-daemon has registered its host name, and so is seen by others."""
        ask = ["dbus-send", "--system", "--print-reply=literal", "--dest=org.freedesktop.Avahi", "/"]
        deadline = time.monotonic() + within_s
        while True:
            answer = self.run([*ask, "org.freedesktop.Avahi.Server.GetState"])
            if answer.stdout.strip() == RUNNING:
                return
            if time.monotonic() > deadline:
                raise BootFailed(f"{self.name}: avahi-daemon is not running: {answer.stdout}{answer.stderr}")
            time.sleep(POLL_S)

    # --- what runs there ---------------------------------------------------------------------------------

    def outer_pids(self) -> list[int]:
        """Return the pids, as seen from outside, of all processes in the host's pid namespace."""
        if not self.pid:
            return []
        wanted = Path(f"/proc/{self.pid}/ns/pid").readlink()
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if (folder / "ns/pid").readlink() == wanted:
                        found.append(int(folder.name))
                except OSError:  # it has ended meanwhile
                    continue
        return found

    def strangers(self) -> list[str]:
        """Return the command lines of all processes that a freshly booted host would not have."""
        found = []
        for pid in self.outer_pids():
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if pid != self.pid and name not in BASE and line:  # an empty line: a zombie, about to be buried
                found.append(f"{self.name}: {line.strip()}")
        return found

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        """Return a small environment, the same everywhere: no variable of the tester leaks in."""
        folders = [
            str(Path(sys.executable).parent),
            "/usr/local/sbin",
            "/usr/local/bin",
            "/usr/sbin",
            "/usr/bin",
        ]
        return {
            "PATH": ":".join([*folders, "/sbin", "/bin"]),
            "HOME": "/root",
            "USER": "root",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",  # all hosts share the cores of one machine: torch's threads would spin
            "AVAHI_GPU_LAB": self._token,
            **(more or {}),
        }
