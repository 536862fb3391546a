"""Run inside a virtual host: kill setup or undo at every call that changes something, and see what is left.

``python -m tests.lab.kill_driver PEER STEP ERRNO SCENARIO…`` tries every STEP-th point of each scenario and
prints one JSON object: {scenario: {"points": how many there are, "tried": [numbers], "wrong": [sentences]}}.
With an ERRNO that is not 0 nobody is killed: that call fails with it, as on a full disk.
"""

from __future__ import annotations

import gc
import json
import os
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.changes import journal
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.provision import provision
from avahi_gpu.checks.registry import run_checks, setup_findings
from avahi_gpu.cli import program
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host import daemons
from avahi_gpu.host.facts import read_facts
from avahi_gpu.host.system import System
from avahi_gpu.model import SERVICE_FILE, Facts, Finding
from tests.lab import syscalls
from tests.lab.kill_point import run_until

SYSTEM = System()
NSSWITCH = Path("/etc/nsswitch.conf")
CONF = Path("/etc/avahi/avahi-daemon.conf")
SERVICE = Path(str(SERVICE_FILE))
HAND_WRITTEN = b"""<?xml version="1.0" standalone='no'?>
<service-group><name>by hand</name><service><type>_torch._tcp</type><port>1</port></service></service-group>
"""
NO_SENTENCE = 98  # exit code of an error that does not say what to do
SETUP = ("setup", "--yes")
WALL = b"""table inet filter {
    chain input {
        type filter hook input priority filter; policy drop;
        ct state established,related accept
        iif lo accept
        icmp type echo-request accept
    }
}
"""
RESOLVED_WITHIN_S = 10.0
ENOUGH = 20  # mistakes, to see what is the matter
MS_BIND = 4096  # sys/mount.h
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
    own.chmod(0o644)
    syscalls.mount(str(own), str(NSSWITCH), "none", MS_BIND)


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


def shut_in() -> None:
    """A firewall keeps mDNS and jobs out: names do not resolve before it is opened."""
    hosts_line("files mdns4_minimal [NOTFOUND=return] dns")
    subprocess.run(["nft", "-f", "-"], input=WALL, check=True)


@dataclass(frozen=True)
class Scenario:
    """``prepare`` makes the machine of before; ``undoes``: undo is killed, else setup."""

    prepare: Callable[[], None]
    undoes: bool = False
    resolved: bool = True  # whether names resolve before setup already
    more: tuple[str, ...] = ()  # checks beside those of setup
    restarts: bool = False
    program: tuple[str, ...] = ()  # of setup: the command itself runs, with all that it reads and proves
    in_place: bool = False


SCENARIOS = {
    "mend": Scenario(mend_names, resolved=False),
    "improve": Scenario(improve_names),
    "folder": Scenario(remove_services),
    "mount": Scenario(mount_over, in_place=True),
    "restart": Scenario(hide_services, more=("AG305",), restarts=True),
    "program": Scenario(improve_names, program=SETUP),
    "undo-program": Scenario(improve_names, undoes=True, program=SETUP),
    "firewall": Scenario(shut_in, resolved=False, program=(*SETUP, "--firewall")),
    "undo-firewall": Scenario(shut_in, resolved=False, undoes=True, program=(*SETUP, "--firewall")),
    "undo-mend": Scenario(mend_names, undoes=True, resolved=False),
    "undo-improve": Scenario(improve_names, undoes=True),
    "undo-folder": Scenario(remove_services, undoes=True),
    "undo-mount": Scenario(mount_over, undoes=True, in_place=True),
    "undo-restart": Scenario(hide_services, undoes=True, more=("AG305",)),
}


class Clean:
    """The machine before any scenario, and the way back to it."""

    def __init__(self) -> None:
        self.files = {path: path.read_bytes() for path in (NSSWITCH, CONF)}
        self.facts = read_facts(SYSTEM, with_peers=False, deep=False)

    def restore(self) -> None:
        subprocess.run(["nft", "flush", "ruleset"], check=True)
        with suppress(OSError):
            syscalls.unmount(str(NSSWITCH))
        for path, content in self.files.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
        SERVICE.parent.mkdir(exist_ok=True)
        SERVICE.unlink(missing_ok=True)


class Driver:
    """One scenario on this host."""

    def __init__(self, scenario: Scenario, peer: str, facts: Facts) -> None:
        self.scenario = scenario
        self.peer = peer
        self.facts = facts
        scenario.prepare()
        if scenario.more:
            self.restart()
        assert not scenario.resolved or self.resolves(), "names do not resolve before setup"
        self.base = picture()
        # once in this process: what it loads and prepares, its forks need not
        assert self.provision() == 0
        self.done = picture()
        assert self.resolves(), "setup does not make names resolve"
        assert self.take_back() == 0
        differ = differences(picture(), self.base)
        assert not differ, differ
        gc.freeze()

    # --- what is killed ----------------------------------------------------------------------------------

    def provision(self) -> int:
        """What ``setup --yes`` does, without what only reads; return its exit code."""
        if self.scenario.program:
            return run_program(self.scenario.program)
        try:
            provision(
                self.read(self.facts),
                judge=self.judge,
                read=self.read,
                approve=lambda step: step,
                system=SYSTEM,
                made=[],
                command="setup",
            )
        except ChangeFailed as fault:
            return 1 if fault.message and fault.hint else NO_SENTENCE
        return 0

    def take_back(self) -> int:
        """What ``undo --yes`` does."""
        if self.scenario.program:
            return run_program(["undo", "--yes"])
        try:
            with locked(SYSTEM):
                journal.tidy(SYSTEM)
                done = journal.undo(journal.plan_undo(SYSTEM), SYSTEM)
        except ChangeFailed as fault:
            return 1 if fault.message and fault.hint else NO_SENTENCE
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
        subprocess.run(["avahi-daemon", "--kill"], check=False, capture_output=True)
        subprocess.run(["avahi-daemon", "--daemonize"], check=True, capture_output=True)

    def resolves(self) -> bool:
        """Whether glibc finds the peer; a question that got lost on the way is asked again."""
        deadline = time.monotonic() + RESOLVED_WITHIN_S
        argv = ["getent", "hosts", self.peer]
        while subprocess.run(argv, check=False, stdout=subprocess.DEVNULL).returncode != 0:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.2)
        return True

    def try_point(self, point: int, fails_with: int) -> list[str]:
        """Kill at the point, or let the call fail; look, go on; return what is wrong."""
        if self.scenario.restarts:
            self.restart()
        if self.scenario.undoes:
            assert self.set_up() == 0
        run = run_until(self.take_back if self.scenario.undoes else self.provision, point, fails_with)
        call = run.calls[point - 1] if len(run.calls) >= point else "-"
        at = f"{'a failure of' if fails_with else 'killed before'} call {point}, {call}"
        if fails_with and run.code not in (0, 1):
            return [f"{at}: it ended with {run.code}"]
        if not fails_with and run.code is not None:
            return [f"{at}: it was not killed, but ended with {run.code}"]
        wrong = [f"{at}: {what}" for what in self.look()]
        finish = [self.undo] if self.scenario.undoes and point % 2 else [self.set_up, self.undo]
        for step in finish:
            name = step.__name__
            if (code := step()) != 0:
                wrong.append(f"{at}: then {name} ended with {code}")
            now, wanted = picture(), self.done if name == "set_up" else self.base
            differ = differences(now, wanted)
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
        if self.scenario.resolved and not self.resolves():
            wrong.append(f"{self.peer} resolved before, and does not now")
        for path in (NSSWITCH, SERVICE, CONF):
            content = path.read_bytes() if path.exists() else None
            allowed = {before(self.base, path), before(self.done, path)}
            if self.scenario.in_place and path == NSSWITCH and content is not None:
                content = content.rstrip(b"\n") + b"\n"
            if content not in allowed:
                wrong.append(f"{path} is neither the old nor the new one")
        return wrong


def run_program(words: Sequence[str]) -> int:
    """Run avahi-gpu in this process, as its entry point does; return the exit code."""
    silent = os.open(os.devnull, os.O_RDWR)
    spoken = os.dup(1)
    os.dup2(silent, 1)
    try:
        return program.run(list(words))
    finally:
        sys.stdout.flush()
        os.dup2(spoken, 1)
        os.close(silent)
        os.close(spoken)


def differences(one: Picture, other: Picture) -> list[str]:
    """Return the paths that differ."""
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))


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
    """Return kind and mode, owner, and content of all that setup may touch, temporary files included."""
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
    rules = subprocess.run(["nft", "--stateless", "list", "ruleset"], check=True, stdout=subprocess.PIPE)
    found["the firewall"] = (0, 0, 0, rules.stdout)
    return found


def try_scenario(
    scenario: Scenario, peer: str, facts: Facts, first: int, step: int, fails_with: int
) -> dict[str, object]:
    """Try its points from ``first`` on and return what came of it."""
    began = time.monotonic()
    driver = Driver(scenario, peer, facts)
    if scenario.undoes:
        assert driver.set_up() == 0
    whole = run_until(driver.take_back if scenario.undoes else driver.provision)
    assert whole.code == 0, whole
    if not scenario.undoes:
        assert driver.undo() == 0
    tried = list(range(first, len(whole.calls) + 1, step))
    wrong: list[str] = []
    for point in tried:
        wrong += driver.try_point(point, fails_with)
        if len(wrong) > ENOUGH:
            break
    return {
        "points": len(whole.calls),
        "calls": whole.calls,
        "tried": tried,
        "wrong": wrong,
        "took_s": time.monotonic() - began,
    }


def main(peer: str, step: int, fails_with: int, names: Sequence[str]) -> None:
    """Try the scenarios and print what came of them."""
    clean = Clean()
    found = {}
    for number, name in enumerate(names):
        first = number % step + 1
        found[name] = try_scenario(SCENARIOS[name], peer, clean.facts, first, step, fails_with)
        clean.restore()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
