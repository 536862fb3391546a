"""The main job on three virtual hosts on this machine: set up, see who is there, run a job, mend a host.

``make demo`` runs it. Root only; nothing outside the virtual hosts is changed. Exit code 0 means: all worked.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import BootFailed, Host
from tests.lab.process import Follower

HOSTS = 3
SETUP_WITHIN_S = (
    90.0  # ten seconds at most on an idle machine: packages are there, the rest is Avahi's probing
)
PEERS_WITHIN_S = 30.0
LAUNCH_WITHIN_S = 180.0  # importing torch three times side by side on a small machine takes the most of it

SETUP = ["avahi-gpu", "setup", "--yes"]
PEERS = ["avahi-gpu", "peers"]
LAUNCH = ["avahi-gpu", "launch", "--nnodes", str(HOSTS), "examples/allreduce.py"]
DOCTOR = ["avahi-gpu", "doctor"]
DOCTOR_WITHIN_S = 60.0  # two seconds on an idle machine
POLL_S = 0.05
PROOF = "sum 6 is right"  # what each of three processes prints: 1 + 2 + 3
FAULT = "AG104"  # the id of what is broken on purpose
FIX = ["avahi-gpu", "doctor", "--only", FAULT, "--fix", "--yes"]
BROKEN, WHOLE = "files dns", "files mdns4_minimal [NOTFOUND=return] dns"

COLOURS = (36, 35, 33)  # ANSI foregrounds: cyan, magenta, yellow; one for each host
BOLD, GREEN, RED = 1, 32, 31


class DemoFailed(Exception):
    """Something of the demo did not work; its words say what."""


def paint(text: str, style: int) -> str:
    """Return ``text`` in an ANSI style, on a terminal only."""
    return f"\033[{style}m{text}\033[0m" if sys.stdout.isatty() else text


def say(text: str = "") -> None:
    """Print a line at once."""
    print(text, flush=True)


def tell(host: Host, mark: str, text: str) -> None:
    """Print one line of a host, behind its name."""
    say(f"{paint(f'{host.name} {mark}', COLOURS[(host.number - 1) % len(COLOURS)])} {text}".rstrip())


def type_in(host: Host, command: Sequence[str]) -> Follower:
    """Start ``command`` on ``host``."""
    prefix = len(f"{host.name} | ")
    return host.follow(command, env={"COLUMNS": str(shutil.get_terminal_size().columns - prefix)})


def watch(running: dict[Host, Follower], command: Sequence[str], within_s: float, *, code: int = 0) -> None:
    """Print what ``command`` prints on each host, as it comes, until it has ended everywhere.

    Raises DemoFailed where it takes longer than ``within_s`` or ends with another exit code than ``code``.
    """
    typed = " ".join(command)
    for host in running:
        tell(host, "$", paint(typed, BOLD))
    shown = dict.fromkeys(running, 0)
    deadline = time.monotonic() + within_s
    busy = list(running)
    while busy:
        busy = [host for host in busy if running[host].process.poll() is None]
        if not busy:
            for follower in running.values():
                follower.wait()  # the last lines are in
        for host, follower in running.items():
            for line in follower.lines[shown[host] :]:
                tell(host, "|", line)
                shown[host] += 1
        if busy and time.monotonic() > deadline:
            names = ", ".join(host.name for host in busy)
            raise DemoFailed(f"`{typed}` still runs on {names} after {within_s:g} s")
        time.sleep(POLL_S)
    for host, follower in running.items():
        if follower.process.returncode != code:
            raise DemoFailed(f"`{typed}` ended with exit code {follower.process.returncode} on {host.name}")


def headline(text: str) -> None:
    """Begin a part of the demo."""
    say()
    say(paint(f"== {text}", BOLD))


def show(lab: Cluster) -> None:
    """Play the demo on a booted cluster."""
    addresses = ", ".join(f"{host.name} ({host.address})" for host in lab)
    say(f"{HOSTS} virtual hosts on one LAN: {addresses}.")
    say("Each is as Debian leaves it: 127.0.1.1 for its own name in /etc/hosts, no .local names.")

    headline("Once on each host: set it up")
    setups = {host: type_in(host, SETUP) for host in lab}  # all at once, shown one after the other
    for host, setup in setups.items():
        watch({host: setup}, SETUP, SETUP_WITHIN_S)

    headline("Who is there?")
    peers = type_in(lab[0], PEERS)
    watch({lab[0]: peers}, PEERS, PEERS_WITHIN_S)
    missing = [host.name for host in lab if host.name not in peers.output]
    if missing:
        raise DemoFailed(f"{', '.join(missing)} is not in the table")

    headline("The same line on each host: one job on all of them, and no address typed anywhere")
    jobs = {host: type_in(host, LAUNCH) for host in lab}
    watch(jobs, LAUNCH, LAUNCH_WITHIN_S)
    proofs = sum(job.output.count(PROOF) for job in jobs.values())
    if proofs != HOSTS:
        raise DemoFailed(f"{proofs} of {HOSTS} processes have printed the right sum")

    show_the_doctor(lab[1])


def show_the_doctor(host: Host) -> None:
    """Break the hosts line of a host, let the doctor say so, and let it mend that."""
    headline(f"Somebody takes mDNS out of /etc/nsswitch.conf on {host.name}: what is wrong?")
    host.write("/etc/nsswitch.conf", host.read("/etc/nsswitch.conf").replace(WHOLE, BROKEN))
    doctor = type_in(host, DOCTOR)
    watch({host: doctor}, DOCTOR, DOCTOR_WITHIN_S, code=1)
    if f"error   {FAULT}" not in doctor.output:
        raise DemoFailed(f"the doctor does not name {FAULT}")
    fix = type_in(host, FIX)
    watch({host: fix}, FIX, DOCTOR_WITHIN_S)


def main() -> int:
    """Boot, play, take down; return the exit code."""
    start = time.monotonic()
    try:
        with cluster(HOSTS, bare=True) as lab:
            show(lab)
    except KeyboardInterrupt:
        say()
        say("Interrupted. The virtual hosts are gone.")
        return 130
    except BrokenPipeError:  # the reader has gone (`make demo | head`): nothing to tell anybody
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DemoFailed, BootFailed) as failure:
        say()
        say(paint(f"The demo failed: {failure}.", RED))
        return 1
    say()
    say(paint(f"It works: {HOSTS} hosts, one job, {time.monotonic() - start:.0f} s in all.", GREEN))
    say("The virtual hosts are gone; only the packages named at the start stay.")
    say("On real ones: docs/tutorial/first-cluster.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
