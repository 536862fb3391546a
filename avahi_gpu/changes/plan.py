"""From findings to the list of changes: ordered, each once, one restart at most. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from avahi_gpu.changes.change import same
from avahi_gpu.files.nsswitch import PATH as NSSWITCH
from avahi_gpu.model import (
    Change,
    ChangeKind,
    DaemonState,
    Facts,
    FileState,
    Finding,
    Fix,
    StartGround,
)

Judge = Callable[[Facts], Sequence[Finding]]

# packages bring files along, commands may load files (netplan apply), and a daemon reads its files and looks
# at the network when it starts
ORDER: tuple[ChangeKind, ...] = ("package", "file", "command", "daemon")
MAX_ROUNDS = 8  # of foresight: as deep as one cause can hide another
RUNNING = 2  # Avahi's state of a server that has its name (avahi-common/defs.h)

_RESTARTS = (("systemctl", "restart"), ("systemctl", "reload"), ("sh", "-c"))
# what makes a start possible, or lasting, and starts nothing
_ENABLING = (("systemctl", "unmask"), ("systemctl", "reset-failed"), ("systemctl", "enable"))
AVAHI = "avahi-daemon"


def plan(findings: Iterable[Finding]) -> list[Change]:
    """Return the changes that the findings' fixes hold: packages, then files, then commands, then daemons.

    Packages of one manager become one installation, a file is changed once (the first fix wins), a command is
    run once, and a daemon that is to be started is not restarted as well: it reads its files when it starts.
    """
    fixes = [f.fix for f in findings if f.fix is not None and f.verdict in ("warn", "error")]
    changes = [change for fix in fixes for change in fix.changes]
    packages = [c for c in changes if c.kind == "package"]
    files = [c for c in changes if c.kind == "file"]
    commands = [c for c in changes if c.kind == "command"]
    return [*_merge_packages(packages), *_each_once(files), *without(commands, ()), *_daemons(fixes)]


def next_step(changes: Sequence[Change]) -> list[Change]:
    """Return what goes first, else the first kind's changes alone: then the machine is read again."""
    first = [c for c in changes if c.first]
    if first:
        return first
    for kind in ORDER:
        step = [c for c in changes if c.kind == kind]
        if step:
            return step
    return []


def plan_all(facts: Facts, judge: Judge) -> tuple[list[Change], Facts]:
    """Return every change that will be wanted, those included that show only when earlier ones are made.

    On a bare machine the check of the daemon is skipped while the package is missing; so the facts are taken
    on as if each change had worked, and judged again. They are returned too, as they end.
    """
    wanted: list[Change] = []
    for _ in range(MAX_ROUNDS):
        new = without(_without_restarts(plan(judge(facts)), wanted), wanted)
        if not new:
            break
        wanted += new
        facts = foresee(facts, new)
    packages = _merge_packages([c for c in wanted if c.kind == "package"])
    rest = [*packages, *(c for kind in ORDER[1:] for c in wanted if c.kind == kind)]
    return sorted(rest, key=lambda change: not change.first), facts


def without(changes: Iterable[Change], known: Sequence[Change]) -> list[Change]:
    """Return the changes that are not among ``known``, each once."""
    new: list[Change] = []
    for change in changes:
        if not any(same(change, other) for other in (*known, *new)):
            new.append(change)
    return new


def foresee(facts: Facts, changes: Iterable[Change]) -> Facts:
    """Return the facts as they will be when the changes have worked, as far as checks of setup ask."""
    for change in changes:
        if change.kind == "file":
            facts = _foresee_file(facts, change)
        elif change.kind == "package":
            facts = _foresee_packages(facts, change.argv)
        elif change.kind == "daemon":
            facts = replace(facts, daemon=_foresee_daemon(facts.daemon, change.argv))
        # what a command leads to nobody foresees: what it brings to light is asked for on its own
    return facts


def _foresee_file(facts: Facts, change: Change) -> Facts:
    def after(state: FileState) -> FileState:
        if state.path != change.path:
            return state
        if change.content is None:
            return FileState(state.path, None)
        return replace(
            state, content=change.content, mode=change.mode, uid=state.uid or 0, gid=state.gid or 0, error=""
        )

    unit = facts.host.boot_unit
    return replace(
        facts,
        host=replace(facts.host, boot_unit=replace(unit, file=after(unit.file))) if unit else facts.host,
        nsswitch=after(_in_etc(facts.nsswitch)) if change.path == NSSWITCH else facts.nsswitch,
        etc_hosts=after(facts.etc_hosts),
        avahi_conf=after(facts.avahi_conf),
        mdns_allow=after(facts.mdns_allow),
        service_file=after(facts.service_file),
    )


def _in_etc(state: FileState) -> FileState:
    """Return a vendor's file as one of /etc, which is written in its stead."""
    return state if state.path == NSSWITCH else replace(state, path=NSSWITCH)


def _foresee_packages(facts: Facts, argv: tuple[str, ...]) -> Facts:
    packages = dict(facts.packages)
    modules = dict(facts.nss_modules)
    daemon, avahi = facts.daemon, facts.avahi
    conf = facts.avahi_conf
    for name in argv:
        if name in packages:
            packages[name] = True
        if name in ("avahi", "avahi-daemon"):
            daemon = replace(daemon, installed=True)
            avahi = replace(avahi, start=StartGround())  # it makes the daemon's user too
            if not conf.exists:  # the package brings one along that works
                conf = replace(conf, content=b"", mode=0o644, uid=0, gid=0, error="")
        if "nss-mdns" in name:
            modules = {m: True if m.startswith("mdns") else there for m, there in modules.items()}
    return replace(facts, packages=packages, nss_modules=modules, daemon=daemon, avahi=avahi, avahi_conf=conf)


def _foresee_daemon(daemon: DaemonState, argv: tuple[str, ...]) -> DaemonState:
    if any(word.startswith("dbus") for word in argv):
        return replace(daemon, bus_reachable=True, bus_error="")
    if daemon_of(argv) != AVAHI:
        return daemon
    # what is enabled beneath a mask nobody sees yet
    enabled = True if "enable" in argv else None if "unmask" in argv else daemon.enabled
    if not is_start_line(argv):
        return replace(daemon, enabled=enabled)
    return replace(daemon, on_bus=True, server_state=RUNNING, enabled=enabled)


def _merge_packages(changes: Sequence[Change]) -> list[Change]:
    """Join installations that differ in their last word, the package, into one command line."""
    commands: dict[tuple[str, ...], list[str]] = {}
    for change in changes:
        names = _package_names(change.argv)
        known = commands.setdefault(change.argv[: len(change.argv) - len(names)], [])
        known += [name for name in names if name not in known]
    return [
        Change("package", f"install {', '.join(sorted(names))}", argv=(*command, *sorted(names)))
        for command, names in commands.items()
    ]


def _package_names(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words behind the last option: ``apt-get install --yes a b`` gives a and b."""
    last = max((n for n, word in enumerate(argv) if word.startswith("-") or word == "install"), default=0)
    return argv[last + 1 :]


def _each_once(changes: Iterable[Change]) -> list[Change]:
    first: dict[str, Change] = {}
    for change in changes:
        first.setdefault(change.path, change)
    return list(first.values())


def _daemons(fixes: Sequence[Fix]) -> list[Change]:
    groups = [[c for c in fix.changes if c.kind == "daemon"] for fix in fixes]
    starts = [group for group in groups if group and not any(_is_restart(c) for c in group)]
    started = {daemon_of(c.argv) for group in starts for c in group if is_start_line(c.argv)}
    chosen: list[Change] = []
    for group in groups:
        restart = any(_is_restart(c) for c in group)
        if restart and any(daemon_of(c.argv) in started for c in group):
            continue
        chosen += [c for c in group if not any(same(c, other) for other in chosen)]
    return chosen


def _without_restarts(changes: Iterable[Change], earlier: Sequence[Change]) -> list[Change]:
    """Leave restarts out of what is started anyway: that reads its files and looks at the network then."""
    started = {daemon_of(c.argv) for c in earlier if c.kind == "daemon" and is_start_line(c.argv)}
    changes = list(changes)
    again = {daemon_of(c.argv) for c in changes if c.kind == "daemon" and _is_restart(c)} & started
    return [c for c in changes if c.kind != "daemon" or daemon_of(c.argv) not in again]


def starts_avahi(change: Change) -> bool:
    """Whether avahi-daemon runs anew after this change, if all goes well."""
    return change.kind == "daemon" and daemon_of(change.argv) == AVAHI and is_start_line(change.argv)


def is_start_line(argv: tuple[str, ...]) -> bool:
    """Whether a daemon runs anew after this command line; else it is only allowed to, or enabled."""
    return argv[:2] not in _ENABLING or "--now" in argv


def _is_restart(change: Change) -> bool:
    return change.argv[:2] in _RESTARTS


def daemon_of(argv: tuple[str, ...]) -> str:
    """Return the name of the daemon that a command line is about, all of it where that is none we know."""
    names = [word.partition(".")[0] for word in argv if word.startswith(("avahi-daemon", "dbus"))]
    return names[-1].replace("dbus-daemon", "dbus") if names else " ".join(argv)
