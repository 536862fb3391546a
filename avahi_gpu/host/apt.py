"""apt-get: install what we need, whoever else is at it, whatever it has to say."""

from __future__ import annotations

import fcntl
import os
import shlex
import struct
import time
from collections.abc import Callable, Mapping, Sequence

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.files import complaints
from avahi_gpu.host.system import Completed, System

QUERY_S = 20.0  # a cold package database on a slow disk
INSTALL_S = 1800.0  # downloads over a slow line
LOCK_S = 300.0  # another package manager: unattended-upgrades at boot takes minutes
POLL_S = 0.5
ATTEMPTS = 3  # somebody may take the lock in the moment between our look and apt's

# what apt and dpkg lock, in their order; apt itself waits for the first two alone, and says nothing
LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
_OPTIONS = (
    f"--option=DPkg::Lock::Timeout={LOCK_S:.0f}",
    # a file of a package's configuration that somebody edited stays, instead of a question nobody answers
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
)
_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none"}
# what dpkg leaves to do where it was killed, as a run of ours may have been with it
INTERRUPTED = "dpkg was interrupted"
MEND = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
_FLOCK = "hhqqi4x"  # struct flock of fcntl(2)

Say = Callable[[str], None]


def install(system: System, argv: Sequence[str], say: Say) -> None:
    """Run ``apt-get install …`` without any question asked. Raises ChangeFailed.

    The lists are fetched first where a package is unknown, or once more where a download failed.
    """
    packages = [word for word in argv[2:] if not word.startswith("-")]
    fresh = not all(_is_known(system, package) for package in packages)
    missed = _update(system, say) if fresh else ""
    done = _run(system, argv[1:], say)
    if not done.ok and not fresh and "Failed to fetch" in done.stderr:
        missed = _update(system, say)
        done = _run(system, argv[1:], say)
    if not done.ok and _are_there(system, packages):
        why, advice = _explain(done)
        say(f"{', '.join(packages)} came, but another package is broken: {why}; {advice}")
        return
    if not done.ok and missed:
        raise ChangeFailed(f"{' '.join(argv)} failed: {missed}", complaints.UNREACHED)
    if not done.ok:
        raise failed(argv, done)


def run_to_its_end(system: System, argv: Sequence[str], say: Say, env: Mapping[str, str]) -> Completed:
    """Run a package manager, and never cut it off in the middle."""

    def tell() -> None:
        say(f"{argv[0]} is asked to end, and waited for; Ctrl-C once more leaves it to itself")

    return system.run_to_its_end(argv, INSTALL_S, env, tell)


def failed(argv: Sequence[str], done: Completed) -> ChangeFailed:
    """Return what a package manager's failure is told as."""
    why, advice = _explain(done)
    return ChangeFailed(f"{' '.join(argv)} failed: {why or done.reason}", advice)


def _explain(done: Completed) -> tuple[str, str]:
    # apt gives dpkg a terminal of its own and prints on stdout what comes from there
    return complaints.explain(f"{done.stderr}\n{done.stdout}")


def find_holder() -> tuple[str, int] | None:
    """Return a lock of apt's that somebody holds, and his process id (0: not seen from here); else None."""
    for path in LOCKS:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
        except (OSError, struct.error):
            continue
        finally:
            os.close(handle)
        if kind != fcntl.F_UNLCK:
            return path, max(0, pid)
    return None


def wait_for_locks(system: System, say: Say, within_s: float = LOCK_S) -> None:
    """Return when nobody holds a lock of apt's any more, and say once who does. Raises ChangeFailed."""
    ends_at = time.monotonic() + within_s
    told = ""
    while (found := find_holder()) is not None:
        path, pid = found
        who = _describe(system, pid)
        if who != told:
            say(f"wait for {who}, which holds {path}")
            told = who
        if time.monotonic() >= ends_at:
            raise ChangeFailed(
                f"{who} has held {path} for {within_s:.0f} s",
                "let it end, or end it, then try again; nothing was installed",
            )
        time.sleep(POLL_S)


def _describe(system: System, pid: int) -> str:
    name = (system.read(f"/proc/{pid}/comm").content or b"").decode("utf-8", "replace").strip()
    return f"{name or 'another program'} (process {pid})" if pid else "another program"


def _is_known(system: System, package: str) -> bool:
    policy = system.run(["apt-cache", "policy", package], QUERY_S)
    return "Candidate:" in policy.stdout and "Candidate: (none)" not in policy.stdout


def _are_there(system: System, packages: Sequence[str]) -> bool:
    """Whether all of them are installed and set up: apt fails by any other package that cannot be, too."""
    done = system.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}\n", *packages], QUERY_S)
    return done.ok and all(line[1:3] == "i " for line in done.stdout.splitlines())


def _update(system: System, say: Say) -> str:
    """Fetch the lists, as far as they can be had; return what could not be, '' where all of them came."""
    say("apt-get update")
    done = _run(system, ["update"], say)
    if not done.ok:
        why, advice = complaints.explain(done.stderr)
        advice = advice if advice != complaints.BY_HAND else complaints.UNREACHED
        raise ChangeFailed(f"apt-get update failed: {why or done.reason}", advice)
    missed = [line for line in done.stderr.splitlines() if "Failed to fetch" in line]
    return missed[0] if missed else ""


def _run(system: System, words: Sequence[str], say: Say) -> Completed:
    for _ in range(ATTEMPTS):
        if system.is_whole:  # the locks of an image are nobody else's, and these here are not the image's
            wait_for_locks(system, say)
        done = run_to_its_end(system, ["apt-get", *_OPTIONS, *words], say, _ENVIRONMENT)
        if INTERRUPTED in done.stderr:
            say(shlex.join(MEND))
            done = run_to_its_end(system, MEND, say, _ENVIRONMENT)
            if done.ok:
                continue
        if done.ok or "Could not get lock" not in done.stderr:
            break
    return done
