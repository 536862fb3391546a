"""Run inside a virtual host: kill setup or undo at every call that changes something, and see what is left.

``python -m tests.lab.kill_driver SCENARIO PEER FIRST STEP`` tries the points FIRST, FIRST + STEP, … and prints
one JSON object: {"points": those there are, "tried": [numbers], "wrong": [sentences]}.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.changes import journal
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.provision import provision
from avahi_gpu.checks.registry import run_checks, setup_findings
from avahi_gpu.host import daemons
from avahi_gpu.host.facts import read_facts
from avahi_gpu.host.system import System
from avahi_gpu.model import SERVICE_FILE, Change, Facts, Finding
from tests.lab import syscalls
from tests.lab.kill_point import run_until

SYSTEM = System()
NSSWITCH = Path("/etc/nsswitch.conf")
CONF = Path("/etc/avahi/avahi-daemon.conf")
SERVICE = Path(str(SERVICE_FILE))
HAND_WRITTEN = b"""<?xml version="1.0" standalone='no'?>
<service-group><name>by hand</name><service><type>_torch._tcp</type><port>1</port></service></service-group>
"""
RESOLVED_WITHIN_S = 10.0
Picture = dict[str, tuple[int, int, int, bytes | str]]


def hosts_line(text: str) -> None:
    """Give nsswitch.conf this hosts line."""
    lines = NSSWITCH.read_text().splitlines(keepends=True)
    NSSWITCH.write_text("".join(f"hosts: {text}\n" if line.startswith("hosts:") else line for line in lines))


def mend_names() -> None:
    """Names do not resolve yet, and no file of ours is there."""
    hosts_line("files dns")


def improve_names() -> None:
    """Names resolve, by a line that setup mends nevertheless; somebody's own service file is there."""
    hosts_line("files dns mdns4_minimal [NOTFOUND=return]")
    SERVICE.parent.mkdir(exist_ok=True)
    SERVICE.write_bytes(HAND_WRITTEN)
    SERVICE.chmod(0o640)


def mount_over() -> None:
    """As ``improve_names``, with an nsswitch.conf that is a mount of its own."""
    improve_names()
    own = Path("/run/nsswitch.conf")
    own.write_bytes(NSSWITCH.read_bytes())
    syscalls.mount(str(own), str(NSSWITCH), "none", 4096)  # MS_BIND


def hide_services() -> None:
    """avahi-daemon runs, and its configuration keeps it from publishing: it is to be restarted."""
    hosts_line("files mdns4_minimal [NOTFOUND=return] dns")
    CONF.write_text(CONF.read_text().replace("[publish]\n", "[publish]\n# ours\ndisable-publishing=yes\n"))


def remove_services() -> None:
    """Names resolve, and a folder has to be made."""
    improve_names()
    SERVICE.unlink()
    with suppress(OSError):
        SERVICE.parent.rmdir()


@dataclass(frozen=True)
class Scenario:
    """``prepare`` makes the machine of before; ``undoes``: undo is killed, else setup."""

    prepare: Callable[[], None]
    undoes: bool = False
    more: tuple[str, ...] = ()  # checks beside those of setup
    restarts: bool = False
    in_place: bool = False


SCENARIOS = {
    "mend": Scenario(mend_names),
    "improve": Scenario(improve_names),
    "folder": Scenario(remove_services),
    "mount": Scenario(mount_over, in_place=True),
    "restart": Scenario(hide_services, more=("AG305",), restarts=True),
    "undo-mend": Scenario(mend_names, undoes=True),
    "undo-improve": Scenario(improve_names, undoes=True),
    "undo-folder": Scenario(remove_services, undoes=True),
    "undo-mount": Scenario(mount_over, undoes=True, in_place=True),
    "undo-restart": Scenario(hide_services, undoes=True, more=("AG305",)),
}


class Driver:
    """One scenario on this host."""

    def __init__(self, scenario: Scenario, peer: str) -> None:
        self.scenario = scenario
        self.peer = peer
        scenario.prepare()
        self.restart()
        self.resolved_before = self.resolves()
        self.base = picture()
        self.facts = read_facts(SYSTEM, with_peers=False, deep=False)
        assert self.set_up() == 0
        self.done = picture()
        assert self.resolves(), "setup does not make names resolve"
        assert self.undo() == 0
        assert picture() == self.base

    # --- what is killed ----------------------------------------------------------------------------------

    def provision(self) -> int:
        """What ``setup --yes`` does, without what only reads; return its exit code."""
        made: list[Change] = []
        provision(
            self.read(self.facts),
            judge=self.judge,
            read=self.read,
            approve=lambda step: step,
            system=SYSTEM,
            made=made,
            command="setup",
        )
        return 0

    def take_back(self) -> int:
        """What ``undo --yes`` does."""
        with locked(SYSTEM):
            journal.tidy(SYSTEM)
            done = journal.undo(journal.plan_undo(SYSTEM), SYSTEM)
        return 1 if done.failed or done.kept else 0

    def judge(self, facts: Facts) -> list[Finding]:
        more = run_checks(facts, self.scenario.more) if self.scenario.more else []
        return [*setup_findings(facts, frozenset()), *more]

    def read(self, known: Facts) -> Facts:
        """Read again what setup changes: files, and which daemon runs since when."""
        pid = daemons.find_avahi(SYSTEM)
        avahi = known.avahi
        if avahi.processes is not None and pid is not None:
            started = SYSTEM.read(daemons.PID_FILE).changed
            processes = tuple(replace(p, pid=pid, started=started) for p in avahi.processes[:1])
            avahi = replace(avahi, processes=processes)
        return replace(
            known,
            nsswitch=SYSTEM.read(NSSWITCH),
            service_file=SYSTEM.read(SERVICE),
            avahi_conf=SYSTEM.read(CONF),
            daemon=replace(known.daemon, pid=pid),
            avahi=avahi,
        )

    def set_up(self) -> int | None:
        """Run setup to its end, in a process of its own."""
        return in_a_fork(self.provision)

    def undo(self) -> int | None:
        """Run undo to its end, in a process of its own."""
        return in_a_fork(self.take_back)

    # --- what is looked at -------------------------------------------------------------------------------

    def restart(self) -> None:
        """Have the daemon run with the configuration of before."""
        subprocess.run(["avahi-daemon", "--kill"], capture_output=True)
        subprocess.run(["avahi-daemon", "--daemonize"], check=True, capture_output=True)

    def resolves(self) -> bool:
        """Whether glibc finds the peer now."""
        return subprocess.run(["getent", "hosts", self.peer], capture_output=True).returncode == 0

    def try_point(self, point: int) -> list[str]:
        """Kill at the point, look, go on; return what is wrong."""
        if self.scenario.restarts:
            self.restart()
        if self.scenario.undoes:
            assert self.set_up() == 0
        run = run_until(self.take_back if self.scenario.undoes else self.provision, point)
        at = f"killed before call {point}, {run.calls[-1] if run.calls else '-'}"
        if run.code is not None:
            return [f"{at}: it was not killed, but ended with {run.code}"]
        wrong = [f"{at}: {what}" for what in self.look()]
        finish = [self.undo] if self.scenario.undoes and point % 2 else [self.set_up, self.undo]
        for step in finish:
            name = step.__name__
            if (code := step()) != 0:
                wrong.append(f"{at}: then {name} ended with {code}")
            now, wanted = picture(), self.done if name == "set_up" else self.base
            differ = sorted(p for p in {*now, *wanted} if now.get(p) != wanted.get(p))
            if name == "set_up":  # a journal of two runs is longer
                differ = [p for p in differ if not p.startswith("/var/lib/avahi-gpu")]
            wrong += [f"{at}: after {name} {path} is not as it should be" for path in differ]
            if name == "set_up" and not self.resolves():
                wrong.append(f"{at}: {self.peer} does not resolve after setup")
            if name == "set_up" and self.scenario.restarts and not has_read_it():
                wrong.append(f"{at}: the daemon runs with the configuration of before")
        return wrong

    def look(self) -> list[str]:
        """Return what is wrong with the machine just after the kill."""
        wrong = []
        if self.resolved_before and not self.resolves():
            wrong.append(f"{self.peer} resolved before, and does not now")
        for path in (NSSWITCH, SERVICE, CONF):
            content = path.read_bytes() if path.exists() else None
            allowed = {before(self.base, path), before(self.done, path)}
            if self.scenario.in_place and path == NSSWITCH and content is not None:
                content = content.rstrip(b"\n") + b"\n"
            if content not in allowed:
                wrong.append(f"{path} is neither the old nor the new one")
        return wrong


def before(image: Picture, path: Path) -> bytes | None:
    """Return a file's content in a picture, None where there is none."""
    content = image.get(str(path), (0, 0, 0, None))[3]
    return content if isinstance(content, bytes) else None


def has_read_it() -> bool:
    """Whether the daemon that runs has started after its configuration was written."""
    pid = Path(daemons.PID_FILE)
    return daemons.find_avahi(SYSTEM) is not None and pid.stat().st_mtime_ns >= CONF.stat().st_ctime_ns


def in_a_fork(work: Callable[[], int]) -> int | None:
    """Run ``work`` in a process of its own and return its exit code, None where it died."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else None


def picture() -> Picture:
    """Return kind and mode, owner, and content of everything that setup may touch, temporary files included."""
    found: Picture = {}
    folders = (NSSWITCH.parent, CONF.parent, SERVICE.parent, Path("/var/lib/avahi-gpu"))
    single = [Path("/etc"), Path("/etc/avahi"), Path("/var/lib/avahi-gpu")]
    for path in {*single, *(p for folder in folders if folder.is_dir() for p in folder.iterdir())}:
        with suppress(FileNotFoundError):
            status = path.lstat()
            if path.parent == NSSWITCH.parent and path != NSSWITCH and "avahi" not in path.name:
                continue  # the rest of /etc
            content: bytes | str = path.read_bytes() if stat.S_ISREG(status.st_mode) else ""
            found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, content)
    return found


def main(name: str, peer: str, first: int, step: int) -> None:
    """Try the points and print what came of it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    began = time.monotonic()
    driver = Driver(SCENARIOS[name], peer)
    ready = time.monotonic()
    if SCENARIOS[name].undoes:
        assert driver.set_up() == 0
    whole = run_until(driver.take_back if SCENARIOS[name].undoes else driver.provision)
    assert whole.code == 0, whole
    if not SCENARIOS[name].undoes:
        assert driver.undo() == 0
    tried = list(range(first, len(whole.calls) + 1, step))
    wrong: list[str] = []
    for point in tried:
        wrong += driver.try_point(point)
        if len(wrong) > 20:
            break
    spent = {"prepare_s": ready - began, "points_s": time.monotonic() - ready}
    print(json.dumps({"points": len(whole.calls), "calls": whole.calls, "tried": tried, "wrong": wrong, **spent}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
