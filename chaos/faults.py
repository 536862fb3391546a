"""Each kind of fault on the lab's hosts: how it is struck, and how it is mended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chaos.plan import Fault
from chaos.stage import GONE_S, Stage
from tests.lab.host import BASE, Host

ROUTE = ["ip", "route", "replace", "default", "dev", "eth0"]  # what ifupdown or NetworkManager put back

ELSEWHERE = 100  # the last number of the other address of host 3 is 103


def strike(stage: Stage, fault: Fault) -> None:
    """Do it. A brief one is over on return."""
    if fault.kind == "partition":
        side = [host for host in stage.lab if host.number in fault.hosts]
        stage.lab.partition(side, [host for host in stage.lab if host not in side])
    else:
        STRIKES[fault.kind](stage, stage.host(fault.hosts[0]), fault)


def mend(stage: Stage, fault: Fault) -> None:
    """Undo a lasting one; nothing is left of a brief one."""
    if fault.kind == "partition":
        stage.lab.reunite()
    elif fault.kind in MENDS:
        MENDS[fault.kind](stage, stage.host(fault.hosts[0]))


def start(stage: Stage, host: Host, _fault: Fault | None = None) -> None:
    stage.start(host)


def kill_launch(stage: Stage, host: Host, _fault: Fault) -> None:
    stage.expect_end(host, -signal.SIGKILL)
    stage.followers[host.name].kill()
    stage.bury(host)
    stage.wait(f"{host.name}: the workers of a killed launch are gone", GONE_S, lambda: not host.strangers())


def kill_all(stage: Stage, host: Host, _fault: Fault) -> None:
    stage.expect_end(host, -signal.SIGKILL)
    for pid in host.outer_pids():
        with suppress(OSError):  # it has died with its parent
            if pid != host.pid and Path(f"/proc/{pid}/comm").read_text().strip() not in BASE:
                os.kill(pid, signal.SIGKILL)
    stage.bury(host)


def power_off(stage: Stage, host: Host, _fault: Fault) -> None:
    stage.expect_end(host, -signal.SIGKILL)
    host.kill()
    stage.bury(host)


def power_on(stage: Stage, host: Host) -> None:
    stage.lab.power_on(host)
    stage.start(host)


def ctrl_c(stage: Stage, host: Host, _fault: Fault) -> None:
    stage.expect_end(host, *stage.interrupted)
    stage.followers[host.name].ctrl_c()
    stage.bury(host)


def kill_worker(stage: Stage, host: Host, _fault: Fault) -> None:
    for pid in host.outer_pids():
        with suppress(OSError):
            if b"\0LOCAL_RANK=" in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)


def plant_bug(stage: Stage, host: Host, _fault: Fault) -> None:
    (stage.folder / f"bug-{host.name}").touch()


def blip(_stage: Stage, host: Host, fault: Fault) -> None:
    host.cut()
    time.sleep(fault.for_s)
    host.heal()


def nap(_stage: Stage, host: Host, fault: Fault) -> None:
    host.freeze()
    time.sleep(fault.for_s)
    host.thaw()


def link_down(_stage: Stage, host: Host, fault: Fault) -> None:
    host.run(["ip", "link", "set", "eth0", "down"], check=True)
    time.sleep(fault.for_s)
    host.run(["ip", "link", "set", "eth0", "up"], check=True)
    host.run(ROUTE, check=True)


def change_address(host: Host, old: int, new: int) -> None:
    """Do what a DHCP client does that gets another address."""
    lan = host.address.rpartition(".")[0]
    host.run(["ip", "addr", "del", f"{lan}.{old}/24", "dev", "eth0"], check=True)
    host.run(["ip", "addr", "add", f"{lan}.{new}/24", "dev", "eth0"], check=True)
    host.run(ROUTE, check=True)


def restart_bus(_stage: Stage, host: Host, _fault: Fault) -> None:
    host.stop_bus()
    host.start_bus()


STRIKES: dict[str, Callable[[Stage, Host, Fault], None]] = {
    "late": start,
    "kill-launch": kill_launch,
    "kill-all": kill_all,
    "power-off": power_off,
    "ctrl-c": ctrl_c,
    "kill-worker": kill_worker,
    "bug": plant_bug,
    "blip": blip,
    "nap": nap,
    "link-down": link_down,
    "cut": lambda _stage, host, _fault: host.cut(),
    "mute-in": lambda _stage, host, _fault: host.mute("in"),
    "mute-out": lambda _stage, host, _fault: host.mute("out"),
    "freeze": lambda _stage, host, _fault: host.freeze(),
    "loss": lambda stage, host, fault: host.impair(loss=fault.amount, seed=stage.job.number),
    "delay": lambda stage, host, fault: host.impair(delay_ms=fault.amount, seed=stage.job.number),
    "avahi-stop": lambda _stage, host, _fault: host.stop_avahi(),
    "avahi-restart": lambda _stage, host, _fault: host.restart_avahi(settle=False),
    "bus-stop": lambda _stage, host, _fault: host.stop_bus(),
    "bus-restart": restart_bus,
    "readdress": lambda _stage, host, _fault: change_address(host, host.number, host.number + ELSEWHERE),
    "twice": lambda stage, host, _fault: stage.start_again(host),
}
MENDS: dict[str, Callable[[Stage, Host], None]] = {
    "kill-launch": start,
    "kill-all": start,
    "power-off": power_on,
    "ctrl-c": start,
    "cut": lambda _stage, host: host.heal(),
    "mute-in": lambda _stage, host: host.heal(),
    "mute-out": lambda _stage, host: host.heal(),
    "freeze": lambda _stage, host: host.thaw(),
    "loss": lambda _stage, host: host.heal(),
    "delay": lambda _stage, host: host.heal(),
    "avahi-stop": lambda _stage, host: host.start_avahi(settle=False),
    "bus-stop": lambda _stage, host: host.start_bus(),
    "readdress": lambda _stage, host: change_address(host, host.number + ELSEWHERE, host.number),
}
