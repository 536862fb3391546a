"""3xx: the system bus and avahi-daemon."""

from __future__ import annotations

from avahi_gpu.checks import fixes, installation
from avahi_gpu.checks.daemon_config import says_no_dbus
from avahi_gpu.checks.daemon_state import log_lines
from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.checks.surroundings import FOR_CONTAINERS, lacks_bus
from avahi_gpu.model import Facts, Fix

# Avahi's own states of its server object (avahi-common/defs.h)
RUNNING = 2
CLAIMING = (1, 3)
STATES = {0: "invalid", 1: "registering", 2: "running", 3: "collision", 4: "failure"}
BUS_ADDRESS = "DBUS_SYSTEM_BUS_ADDRESS"


@check(
    "AG301",
    slug="system-bus",
    area="host",
    says="the D-Bus system bus answers",
    setup=True,
    image=True,
)
def system_bus(facts: Facts) -> Outcome:
    """Everything else asks Avahi over this bus."""
    daemon = facts.daemon
    if daemon.bus_reachable:
        return ok()
    if facts.image is not None and not installation.lacks_bus(facts):
        return ok("no package of one is known to be missing in the image")
    evidence = [daemon.bus_error] if daemon.bus_error else []
    if facts.image is None and lacks_bus(facts):
        return error(
            "the host's system bus was not handed into this container, so Avahi cannot be asked",
            [*evidence, "there is no /run/dbus/system_bus_socket"],
            fix=Fix("start the container with the host's sockets", commands=(FOR_CONTAINERS,)),
            hint="no second avahi-daemon: the host's answers for the container too",
        )
    around = facts.host.surroundings
    if around is not None and around.mapped_user and around.bus_socket:
        return error(
            "the system bus refuses this process, whose user has another number outside its user namespace",
            evidence,
            hint="run it outside of the rootless container, or map the user to itself: podman run "
            "--userns=keep-id",
        )
    if facts.avahi.bus_address:
        return error(
            f"{BUS_ADDRESS} sends programs to a system bus that does not answer",
            [f"{BUS_ADDRESS}={facts.avahi.bus_address}", *evidence],
            hint=f"unset {BUS_ADDRESS}: without it the bus is looked for in its usual place",
        )
    if installation.lacks_bus(facts):
        return error(
            "the D-Bus system bus is not installed",
            evidence,
            fix=installation.install("dbus", facts),
            hint=installation.explain(facts),
        )
    return error("the D-Bus system bus does not answer", evidence, fix=fixes.start_bus(facts))


@check("AG302", slug="avahi-installed", area="host", says="avahi-daemon is installed", setup=True, image=True)
def avahi_installed(facts: Facts) -> Outcome:
    """Installed is what a package says, or a daemon that answers."""
    if lacks_bus(facts):
        return skip("a container for one program borrows the host's Avahi (AG301)")
    if facts.daemon.installed or facts.daemon.on_bus:
        return ok(f"avahi {facts.daemon.version}" if facts.daemon.version else "found on disk")
    fix = installation.install("avahi", facts)
    return error("avahi-daemon is not installed", fix=fix, hint=installation.explain(facts))


@check(
    "AG304",
    slug="avahi-running",
    area="host",
    says="avahi-daemon runs and is on the system bus",
    needs=("AG301", "AG302", "AG303"),
    follows=("AG510",),
    setup=True,
)
def avahi_running(facts: Facts) -> Outcome:
    """Running, reachable over the bus, and done with claiming its name."""
    daemon = facts.daemon
    if not daemon.on_bus:
        if daemon.pid is not None and says_no_dbus(facts):
            return skip("avahi-daemon runs, and AG305 tells why it is not on the system bus")
        return _not_on_bus(facts)
    if daemon.server_state is None and daemon.bus_error:
        return error(
            "avahi-daemon is on the system bus and does not answer",
            [_describe_process(facts), daemon.bus_error] if daemon.pid else [daemon.bus_error],
            fix=fixes.wake_avahi(facts),
            hint="" if fixes.is_stopped(facts) else "it hangs, or the machine is overloaded",
        )
    if daemon.server_state is None:
        return unknown("avahi-daemon is on the bus but did not tell its state")
    if daemon.server_state in CLAIMING:
        # a second after its start, or after somebody else had the name: a restart would only begin anew
        return unknown("avahi-daemon is still claiming its name", hint="ask again in a few seconds")
    if daemon.server_state != RUNNING:
        state = STATES.get(daemon.server_state, str(daemon.server_state))
        return error(
            f"avahi-daemon is in state {state!r} and publishes nothing",
            fix=fixes.restart_avahi(facts),
            hint="if it says so again, read its log: journalctl -u avahi-daemon",
        )
    return ok(f"state running, process {daemon.pid}" if daemon.pid else "state running")


def _not_on_bus(facts: Facts) -> Outcome:
    pid = facts.daemon.pid
    runs = "runs, but not on the system bus" if pid is not None else "does not run"
    evidence = [f"process {pid} runs"] if pid is not None else []
    evidence.append("org.freedesktop.Avahi has no owner on the system bus")
    if facts.avahi.bus_refuses:
        return error(
            f"the system bus refuses avahi-daemon its name, so that it {runs}",
            [*evidence, f"the bus's policy: {facts.avahi.bus_refuses}", *log_lines(facts, "dbus", "own")],
            hint="take that rule out, or install the package of avahi-daemon again; then let the bus read "
            "its policy (systemctl reload dbus) and restart avahi-daemon",
        )
    if fixes.is_stopped(facts):
        return error(
            "a signal has stopped avahi-daemon, and it is not on the system bus",
            evidence,
            fix=fixes.wake_avahi(facts),
        )
    if pid is not None:
        return error(
            "avahi-daemon runs, but not on the system bus",
            [*evidence, *log_lines(facts, "dbus", "D-Bus")],
            fix=fixes.restart_avahi(facts),
            hint="it was started before the bus, or on another bus",
        )
    return _cannot_start(facts, evidence) or error(
        "avahi-daemon does not run", [*evidence, *_why_not(facts)], fix=fixes.start_avahi(facts)
    )


def _cannot_start(facts: Facts, evidence: list[str]) -> Outcome | None:
    """Return what would end every start at once, None where nothing is known to."""
    start = facts.avahi.start
    if start is None or facts.avahi.processes:
        return None
    missing = [word for word, there in (("user", start.user), ("group", start.group)) if not there]
    if missing:
        return error(
            f"avahi-daemon cannot start: its {' and its '.join(missing)} avahi is missing",
            evidence,
            hint="install the package of avahi-daemon again, which makes them; or: useradd --system "
            "--user-group --no-create-home --shell /usr/sbin/nologin avahi",
        )
    if start.pid_file is not None:
        path = start.pid_file.path
        remove = fixes.write_file("remove the old pid file of avahi-daemon", start.pid_file, None)
        begin = fixes.start_avahi(facts)
        return error(
            "avahi-daemon cannot start: an old pid file makes it believe that it runs already",
            [*evidence, f"{path} names process {start.holder}, which is {start.program}"],
            fix=Fix("remove the old pid file and start avahi-daemon", (remove, *begin.changes)),
        )
    return None


def _describe_process(facts: Facts) -> str:
    stopped = ", which a signal has stopped" if fixes.is_stopped(facts) else ""
    return f"process {facts.daemon.pid}{stopped}"


def _why_not(facts: Facts) -> list[str]:
    """Return what systemd and the log tell of a daemon that is not there."""
    unit = facts.avahi.unit
    words = []
    if unit is not None and unit.load == "masked":
        words.append("its unit is masked: somebody has forbidden it to start")
    elif unit is not None and unit.load == "not-found":
        words.append("systemd knows no avahi-daemon.service")
    elif unit is not None and unit.active == "failed":
        words.append(f"its unit has failed: {unit.result}, exit status {unit.exit_status}")
    elif unit is not None and unit.enabled == "disabled":
        words.append("its unit is disabled: it does not start at boot")
    return [*words, *log_lines(facts, "failed", "error", "invalid", "exiting", "cannot")]


@check("AG306", slug="machine-id", area="host", says="this machine has an id of its own")
def machine_id(facts: Facts) -> Outcome:
    """The node id that peers know us by is a hash of the machine id (machine-id(5))."""
    if facts.machine_id:
        return ok()
    return warn(
        "/etc/machine-id is missing or empty, so peers know this node by its host name only",
        hint="run as root: systemd-machine-id-setup, or dbus-uuidgen --ensure=/etc/machine-id",
    )


@check(
    "AG307",
    slug="avahi-at-boot",
    area="host",
    says="avahi-daemon starts at boot",
    needs=("AG302",),
    setup=True,
    image=True,
)
def avahi_at_boot(facts: Facts) -> Outcome:
    """Running now is not enough for a node that is to be found after a power cut."""
    if facts.init != "systemd":
        return skip("there is no systemd here: how daemons start at boot is not known")
    if facts.daemon.enabled is None:
        return unknown("systemd did not tell whether it starts avahi-daemon")
    if not facts.daemon.enabled:
        return warn("avahi-daemon does not start at boot", fix=fixes.start_avahi(facts))
    return ok()
