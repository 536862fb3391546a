"""5xx: the static service file that tells the LAN of this node, avahi.service(5)."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.daemon_state import log_lines
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, ok, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import service_file
from avahi_gpu.model import LOOPBACK_INDEX, NODE_SERVICE, NOT_A_FILE, SERVICE_FILE, Change, Facts, Fix

READABLE_BY_ALL = 0o444  # avahi-daemon reads as the user avahi
FOLDER_OPEN = 0o005  # to list it and to reach what is in it
ASIDE = ".set-aside"
CHROOT = "/etc/avahi/"  # what avahi-daemon can see of the file system (Debian's default, avahi-daemon(8))


@check(
    "AG501",
    slug="service-file",
    area="service",
    says=f"{SERVICE_FILE} is there for all to read",
    follows=("AG510",),
    setup=True,
    image=True,
)
def service_file_there(facts: Facts) -> Outcome:
    """A regular file that the user avahi can read, inside avahi-daemon's chroot."""
    state = facts.service_file
    if state.link_target is not None and not _is_seen(facts, state.link_target):
        return error(
            f"{SERVICE_FILE} is a link to {state.link_target}, which avahi-daemon cannot see",
            fix=_set_aside(facts, "the link"),
            hint=f"put the file itself there; avahi-daemon sees {CHROOT} only",
        )
    if not state.exists:
        return error(
            f"{SERVICE_FILE} is missing, so no peer sees this machine",
            _misnamed(facts),
            fix=write_service_file(facts),
            hint=facts.wanted_service_error or "avahi-gpu setup makes a node of a machine, all of it at once",
        )
    if state.error == NOT_A_FILE:
        return error(
            f"{SERVICE_FILE} is no regular file, so no peer sees this machine",
            fix=_set_aside(facts, "what stands in its place"),
        )
    folder = facts.avahi.services_folder
    if folder is not None and folder.mode is not None and folder.mode & FOLDER_OPEN != FOLDER_OPEN:
        return error(
            f"avahi-daemon may not look into {SERVICE_FILE.parent}",
            [f"mode {folder.mode:04o}, wanted 0755"],
            fix=_open_folder(facts, folder.mode),
        )
    if state.mode is not None and state.mode & READABLE_BY_ALL != READABLE_BY_ALL:
        return error(
            f"{SERVICE_FILE} can be read by its owner only, not by avahi-daemon",
            [f"mode {state.mode:04o}, wanted 0644"],
            fix=write_service_file(facts),
        )
    if state.content is None:
        return unknown(f"{SERVICE_FILE} could not be read ({state.error})")
    return ok(f"{len(state.content)} bytes")


@check(
    "AG502",
    slug="service-file-valid",
    area="service",
    says=f"{SERVICE_FILE} is one that avahi-daemon accepts",
    needs=("AG501",),
    setup=True,
    image=True,
)
def service_file_valid(facts: Facts) -> Outcome:
    """avahi-daemon drops a file with any mistake as a whole and tells only its log."""
    assert facts.service_file.content is not None
    try:
        group = service_file.parse(facts.service_file.content, str(SERVICE_FILE), facts.hostname)
    except MalformedInput as fault:
        return error(
            f"{SERVICE_FILE} is malformed, so no peer sees this machine",
            [fault.message],
            fix=write_service_file(facts),
        )
    if not any(s.type == NODE_SERVICE for s in group.services):
        return error(
            f"{SERVICE_FILE} announces no {NODE_SERVICE}",
            [f"announced: {', '.join(s.type for s in group.services)}"],
            fix=write_service_file(facts),
        )
    return ok()


@check(
    "AG503",
    slug="service-file-current",
    area="service",
    says=f"{SERVICE_FILE} tells what this machine is now",
    needs=("AG502",),
    follows=("AG505", "AG506"),
    setup=True,
    image=True,
)
def service_file_current(facts: Facts) -> Outcome:
    """Byte for byte what ``setup`` would write."""
    wanted = facts.wanted_service_file
    if wanted is None:
        if facts.wanted_service_error:
            return error(
                f"what {SERVICE_FILE} should say cannot be rendered",
                [facts.wanted_service_error],
                hint="correct the template, or remove it to use the shipped one",
            )
        return unknown("what the file should say could not be rendered")
    content = facts.service_file.content or b""
    if content == wanted:
        return ok()
    return warn(
        f"{SERVICE_FILE} is out of date: this machine has changed since it was written",
        _differences(content, wanted),
        fix=write_service_file(facts),
    )


@check(
    "AG504",
    slug="service-visible",
    area="service",
    says=f"{NODE_SERVICE} of this machine is visible on a LAN interface",
    needs=("AG203", "AG304", "AG305", "AG308", "AG502"),
    follows=("AG505", "AG506"),
)
def service_visible(facts: Facts) -> Outcome:
    """What avahi-daemon really publishes, seen by browsing: its log says "established" too early."""
    if facts.own_service is None:
        return unknown("nobody browsed for this machine's own service")
    lan = {i.index: i.name for i in usable_interfaces(facts)}
    seen = sorted({lan[s.interface] for s in facts.own_service if s.interface in lan})
    if seen:
        return ok(*(f"seen on {name}" for name in seen))
    elsewhere = {s.interface for s in facts.own_service} - {LOOPBACK_INDEX}
    if facts.own_service and not elsewhere:
        shown, fix = "it is published on loopback only", None
    else:
        # a mode that was changed, or a link, is no event for the daemon: it reads the file when it starts
        shown, fix = "browsing on this machine does not show it", fixes.restart_settled(facts)
    return error(
        "avahi-daemon does not publish this machine's service on the LAN",
        [shown, *log_lines(facts, "torch.service", "Failed to add service", "established")],
        fix=fix,
        hint="avahi-daemon's log tells why it left the file out: journalctl -u avahi-daemon",
    )


def _is_seen(facts: Facts, path: str) -> bool:
    """Whether the daemon reaches a file outside its folder: only without its chroot."""
    roots = {p.root for p in facts.avahi.processes or () if p.pid == facts.daemon.pid}
    return path.startswith(CHROOT) or "/" in roots


def _misnamed(facts: Facts) -> list[str]:
    """Name files that hold our service under a name that avahi-daemon passes over."""
    ours = NODE_SERVICE.encode()
    return [
        f"{f.state.path} holds {NODE_SERVICE}, but its name does not end in .service: it is passed over"
        for f in facts.avahi.service_files or ()
        if not service_file.is_loaded(f.name) and ours in (f.state.content or b"")
    ]


def _set_aside(facts: Facts, what: str) -> Fix | None:
    """Move what is no file of ours out of the way, under a name that avahi-daemon passes over."""
    if facts.wanted_service_file is None:
        return None
    path, kept = str(SERVICE_FILE), f"{SERVICE_FILE}{ASIDE}"
    change = Change(
        "command",
        f"set {what} at {path} aside, as {kept}",
        argv=("mv", "--no-clobber", "--no-target-directory", path, kept),
        undo=("mv", "--no-target-directory", kept, path),
        verify=("find", kept, "-maxdepth", "0"),
    )
    return Fix(change.title, (change,))


def _open_folder(facts: Facts, mode: int) -> Fix:
    folder = str(SERVICE_FILE.parent)
    change = Change(
        "command",
        f"let avahi-daemon look into {folder}",
        argv=("chmod", "0755", folder),
        undo=("chmod", f"{mode:04o}", folder),
    )
    restart = fixes.restart_avahi(facts).changes if facts.daemon.pid is not None else ()
    return Fix(change.title, (change, *restart))


def write_service_file(facts: Facts) -> Fix | None:
    """Return the fix that writes the file as setup would; None where it cannot be rendered or written."""
    if facts.wanted_service_file is None:
        return None
    state = facts.service_file
    if state.content == facts.wanted_service_file and state.mode == 0o644:
        return None
    change = Change(
        "file",
        f"write {SERVICE_FILE}{_describe_lost(facts)}",
        path=str(SERVICE_FILE),
        content=facts.wanted_service_file,
        mode=0o644,
        before=state.content,
    )
    return Fix(change.title, (change,))


def _describe_lost(facts: Facts) -> str:
    """Say which other services a file written by hand publishes, and setup's will not; '' for none."""
    try:
        found = service_file.parse(facts.service_file.content or b"", str(SERVICE_FILE), facts.hostname)
        kept = service_file.parse(facts.wanted_service_file or b"", str(SERVICE_FILE), facts.hostname)
    except MalformedInput:
        return ""
    lost = {s.type for s in found.services} - {s.type for s in kept.services} - {NODE_SERVICE}
    where = "move them to a file of their own beside it"
    return f", which will no longer publish {', '.join(sorted(lost))} ({where})" if lost else ""


def _differences(content: bytes, wanted: bytes) -> list[str]:
    """Return the lines of ``wanted`` that are new, at most four: enough to see what changed."""
    old = set(content.decode("utf-8", "replace").splitlines())
    new = [line.strip() for line in wanted.decode("utf-8", "replace").splitlines() if line not in old]
    return [f"would say: {line}" for line in new[:4]]
