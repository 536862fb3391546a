"""Fixes that several checks offer, as data: nothing is run here."""

from __future__ import annotations

from avahi_gpu.files.avahi_conf import PATH as DEFAULT_CONFIG
from avahi_gpu.files.nsswitch import PATH as NSSWITCH
from avahi_gpu.model import Change, Facts, FileState, Fix

# what the settings are where a distribution's own file changes nothing
CONF = b"[server]\nuse-ipv4=yes\nuse-ipv6=yes\n\n[publish]\npublish-hinfo=no\npublish-workstation=no\n"
# what gives a machine another id or name; each is for root
# systemd-machine-id-setup(1) would take the bus's copy of the old id, where there is one
NEW_MACHINE_ID = (
    "rm -f /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup && avahi-gpu setup"
)
NEW_NAME = "hostnamectl set-hostname NEW-NAME && systemctl restart avahi-daemon && avahi-gpu setup"
NEW_MODE = 0o644
STOP_AND_START = 'avahi-daemon --kill; exec "$@"'  # the stop fails where the daemon has just ended by itself
UNIT, SOCKET = "avahi-daemon.service", "avahi-daemon.socket"
SETTLED_S = 6.0  # claiming the name and the services takes two seconds, after conflicts four


def write_file(title: str, state: FileState, content: bytes | None, *, question: str = "") -> Change:
    """Return the change that gives the file this content, its mode kept; None removes it."""
    mode = 0o644 if state.mode is None else state.mode
    return Change("file", title, state.path, content, mode, before=state.content, question=question)


def write_nsswitch(title: str, state: FileState, content: bytes) -> Change:
    """Return the change that gives glibc this nsswitch.conf; /etc overrides a vendor's file under /usr."""
    if state.path != NSSWITCH:
        return Change("file", f"{title} (a copy of {state.path})", NSSWITCH, content, NEW_MODE)
    return write_file(title, state, content)


def command(
    title: str,
    argv: tuple[str, ...],
    *,
    undo: tuple[str, ...] = (),
    verify: tuple[str, ...] = (),
    question: str = "",
    until_boot: bool = False,
    rewrites: tuple[str, ...] = (),
) -> Change:
    """Return the change that runs a program; ``undo`` must take exactly that back. See ``Change``.

    Only what adds, and cuts nobody off: ``--yes`` answers the question too. ``HANDLE`` in ``undo`` stands
    for the number of the rule that ``nft`` added.
    """
    return Change(
        "command",
        title,
        argv=argv,
        undo=undo,
        verify=verify,
        question=question,
        until_boot=until_boot,
        rewrites=rewrites,
    )


def start_bus(facts: Facts) -> Fix:
    """Return the fix that starts the D-Bus system bus."""
    if facts.init == "systemd":
        return _daemon("start the system bus", ("systemctl", "start", "dbus.socket"))
    return Fix(
        "start the system bus",
        (
            Change("daemon", "make the bus's folder", argv=("install", "-d", "-m", "0755", "/run/dbus")),
            # without a pid file: one left behind by a killed bus would forbid the start
            Change("daemon", "start dbus-daemon", argv=("dbus-daemon", "--system", "--fork", "--nopidfile")),
        ),
    )


def start_avahi(facts: Facts) -> Fix:
    """Return the fix that starts avahi-daemon, now and at every boot where systemd is PID 1."""
    if facts.image is not None:
        return enable("avahi-daemon.service")
    if facts.init == "systemd":
        return _start_unit(facts)
    return _daemon("start avahi-daemon", ("avahi-daemon", "--daemonize", *_file_option(facts)))


def enable(unit: str) -> Fix:
    """Return the fix that lets systemd start a unit at boot; undo takes that back."""
    change = command(
        f"enable {unit}",
        ("systemctl", "enable", unit),
        undo=("systemctl", "disable", unit),
        verify=("systemctl", "is-enabled", "--quiet", unit),
    )
    return Fix(change.title, (change,))


def _start_unit(facts: Facts) -> Fix:
    unit = facts.avahi.unit
    masked = {name: enabled for name, load, enabled in _states(facts) if load == "masked"}
    if masked:
        # whether it is enabled beneath shows when the mask is gone
        question = f"Somebody has masked {' and '.join(masked)}, which forbids avahi-daemon to run. Allow it?"
        # a mask of this boot alone lies elsewhere, and undo must not make one of it that lasts
        lasting = tuple(name for name, enabled in masked.items() if enabled != "masked-runtime")
        passing = ("--runtime", *(name for name in masked if name not in lasting))
        unmask = [
            Change(
                "daemon",
                "unmask avahi-daemon",
                argv=("systemctl", "unmask", *words),
                undo=("systemctl", "mask", *words),
                question=question,
            )
            for words in (lasting, passing[1:] and passing)
            if words
        ]
        start = Change("daemon", "start avahi-daemon", argv=("systemctl", "start", UNIT), question=question)
        return Fix(unmask[0].title, (*unmask, start))
    first: tuple[Change, ...] = ()
    if unit is not None and unit.result == "start-limit-hit":
        # it was started too often in a row, and systemd would refuse
        first = (Change("daemon", "let systemd try again", argv=("systemctl", "reset-failed", UNIT)),)
    if facts.daemon.enabled:
        start = Change("daemon", "start avahi-daemon", argv=("systemctl", "start", UNIT))
        return Fix(start.title, (*first, start))
    # one that runs is only to be enabled: who restarts it besides must not take this for a start
    runs = unit is not None and unit.active == "active"
    enable = Change(
        "daemon",
        "enable avahi-daemon" if runs else "enable and start avahi-daemon",
        argv=("systemctl", "enable", *(() if runs else ("--now",)), UNIT),
        undo=("systemctl", "disable", UNIT),
    )
    return Fix(enable.title, (*first, enable))


def _states(facts: Facts) -> tuple[tuple[str, str, str], ...]:
    """Return of the service and the socket: name, load and whether it is enabled, as systemd tells them."""
    unit = facts.avahi.unit
    if unit is None:
        return ()
    return ((UNIT, unit.load, unit.enabled), (SOCKET, unit.socket_load, unit.socket_enabled))


def restart_avahi(facts: Facts, *, back: bool = False) -> Fix:
    """Return the fix that restarts a running avahi-daemon; with ``back`` undo does so too.

    That is for a file that it reads when it starts: undo puts the file back first.
    """
    if facts.init == "systemd":
        argv = ("systemctl", "restart", UNIT)
        change = Change("daemon", "restart avahi-daemon", argv=argv, undo=argv if back else ())
        return Fix(change.title, (change,))
    # one program, not two changes: it goes on where we are killed in between
    line = ("sh", "-c", STOP_AND_START, "sh", "avahi-daemon", "--daemonize", *_file_option(facts))
    change = Change("daemon", "restart avahi-daemon", argv=line, undo=line if back else ())
    return Fix(change.title, (change,))


def restart_settled(facts: Facts) -> Fix | None:
    """Return the restart for what a daemon should have done long since; None for one that just started."""
    ages = [p.age_s for p in facts.avahi.processes or () if p.pid == facts.daemon.pid]
    return restart_avahi(facts) if ages and ages[0] > SETTLED_S else None


def wake_avahi(facts: Facts) -> Fix:
    """Return the fix for a daemon that does not answer: one that a signal has stopped only has to go on."""
    if is_stopped(facts):
        return _daemon("let avahi-daemon go on", ("kill", "-CONT", str(facts.daemon.pid)))
    return restart_avahi(facts)


def is_stopped(facts: Facts) -> bool:
    """Whether a signal has stopped the daemon in its tracks (state T of proc(5))."""
    return any(p.pid == facts.daemon.pid and p.state == "T" for p in facts.avahi.processes or ())


def write_conf(
    facts: Facts, text: str | None, title: str, *, then_restart: bool, question: str = ""
) -> Fix | None:
    """Return the fix that makes avahi-daemon.conf hold ``text``; None where it is as it is to be, or fixed.

    A daemon that does not run is not restarted: that it does not is a finding of its own. ``question`` is for
    what somebody seems to have meant.
    """
    state = facts.avahi_conf
    if text is None or not state.writable or state.content is None or state.mode is None:
        return None
    content = text.encode("utf-8", "surrogateescape")
    if content == state.content or is_of_nixos(state):
        return None
    change = write_file(title, state, content, question=question)
    restart = restart_avahi(facts, back=True).changes if then_restart and facts.daemon.pid is not None else ()
    return Fix(title, (change, *restart))


def make_conf(facts: Facts) -> Fix | None:
    """Return the fix that makes an avahi-daemon.conf: the daemon does not start without one."""
    state = facts.avahi_conf
    if not state.writable or state.link_target is not None or is_of_nixos(state):
        return None
    change = Change("file", f"make {state.path}", path=state.path, content=CONF, mode=0o644)
    return Fix(change.title, (change,))


def is_of_nixos(state: FileState) -> bool:
    """Whether the file is generated: an edit would be lost, where it is possible at all."""
    return "/nix/store/" in (state.link_target or state.path)


def _file_option(facts: Facts) -> tuple[str, ...]:
    path = facts.daemon.config_path
    return () if path == DEFAULT_CONFIG else ("--file", path)


def _daemon(title: str, argv: tuple[str, ...]) -> Fix:
    return Fix(title, (Change("daemon", title, argv=argv),))
