"""5xx: what service files publish, ours and the others in the folder, against what Avahi does."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.daemon_state import log_lines
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.checks.service import CHROOT, READABLE_BY_ALL, write_service_file
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.service_file import TXT_TOTAL_WISE, ServiceGroup, StaticService, is_loaded, parse
from avahi_gpu.model import NODE_SERVICE, NOT_A_FILE, SERVICE_FILE, Facts, Fix, ServiceFile

ETHERNET_MTU = 1500
# headers, the question and the other records that go with a TXT: with an MTU of 1500 Avahi 0.8 sent 1400
# bytes of TXT and dropped 1410
AROUND_TXT = 100
RESTART = "systemctl restart avahi-daemon"
MAX_SHOWN = 6  # files or services
NOBODYS_LABELS = ("user_home_t", "admin_home_t", "user_tmp_t", "tmp_t", "unlabeled_t", "default_t")


@check(
    "AG505",
    slug="service-fits",
    area="service",
    says=f"what {SERVICE_FILE} publishes fits into one packet",
    needs=("AG502",),
)
def service_fits(facts: Facts) -> Outcome:
    """avahi-daemon calls a record that it can never send established; peers time out (avahi#666)."""
    limit = txt_limit(facts)
    most = max((s.txt_bytes for s in _own_group(facts).services), default=0)
    if most > limit:
        return error(
            f"{SERVICE_FILE} publishes {most} bytes of TXT, which fit into no packet: no peer can resolve it",
            [f"{limit} bytes are the most here", *log_lines(facts, "too large")],
            fix=write_service_file(facts),
            hint="publish less: shorten or take out the longest txt-record",
        )
    if most > TXT_TOTAL_WISE:
        return warn(
            f"{SERVICE_FILE} publishes {most} bytes of TXT: more than about {TXT_TOTAL_WISE} can be lost",
            fix=write_service_file(facts),
            hint="publish less: shorten or take out the longest txt-record",
        )
    return ok(f"{most} bytes of TXT")


@check(
    "AG506",
    slug="service-meaning",
    area="service",
    says=f"{SERVICE_FILE} sends peers to this machine",
    needs=("AG502",),
)
def service_meaning(facts: Facts) -> Outcome:
    """What avahi-daemon takes and peers can do nothing with."""
    group = _own_group(facts)
    ours = [s for s in group.services if s.type.rstrip(".").lower() == NODE_SERVICE]
    fix = write_service_file(facts)
    for service in ours:
        where = [f"{SERVICE_FILE}:{service.line}"]
        if service.port == 0:
            says = f"{NODE_SERVICE} is published with port 0, where nobody can connect"
            hint = "write the port as a decimal number: what avahi-daemon cannot read becomes 0"
            return error(says, where, fix=fix, hint=hint)
        if service.domain_name and service.domain_name.rstrip(".").lower() != "local":
            says = f"{NODE_SERVICE} is published in {service.domain_name}, and peers look in local"
            return error(says, where, fix=fix, hint="take <domain-name> out")
        if service.host_name and service.host_name.rstrip(".").lower() not in _own_names(facts):
            says = f"{NODE_SERVICE} sends peers to {service.host_name}, which is not this machine"
            return error(says, where, fix=fix, hint="take <host-name> out")
    if "%h" in group.name and not group.replace_wildcards:
        return warn(
            f"{NODE_SERVICE} is published under the name {group.name!r} as it stands, on every node alike",
            [f"{SERVICE_FILE}: replace-wildcards counts only as “yes”"],
            fix=fix,
            hint='write <name replace-wildcards="yes">%h</name>',
        )
    if all(s.protocol == "ipv6" for s in ours) and any(i.ipv4 for i in usable_interfaces(facts)):
        return warn(f"{NODE_SERVICE} is published over IPv6 alone", fix=fix, hint='take protocol="ipv6" out')
    return ok(f"port {ours[0].port}" if ours else "")


@check(
    "AG507",
    slug="other-service-files",
    area="service",
    says="avahi-daemon takes every other file of its folder too",
)
def other_files(facts: Facts) -> Outcome:
    """Foreign files: what they publish is not ours to mend, and still somebody misses it."""
    if facts.avahi.service_files is None:
        return unread(facts, "avahi.service_files", f"the folder {SERVICE_FILE.parent}")
    faults: list[str] = []
    remarks: list[str] = []
    for file in facts.avahi.service_files:
        if file.name == SERVICE_FILE.name:
            continue
        if is_loaded(file.name):
            faults += _faults_of(file, facts)
        elif b"<service-group" in (file.state.content or b""):
            remarks.append(f"{file.state.path}: its name does not end in .service, so it is passed over")
    if faults:
        hint = "correct those files; avahi-daemon reads a file again when it is written"
        return warn("other files in avahi-daemon's folder are wrong", faults[:MAX_SHOWN], hint=hint)
    if remarks:
        return info("files in avahi-daemon's folder are no service files", remarks[:MAX_SHOWN])
    return ok()


@check(
    "AG508",
    slug="services-loaded",
    area="service",
    says="avahi-daemon publishes what the service files say",
    needs=("AG203", "AG304", "AG305", "AG308"),
    follows=("AG504", "AG501", "AG502"),
)
def services_loaded(facts: Facts) -> Outcome:
    """What the other files say against what browsing on this machine shows."""
    own, files = facts.avahi.own, facts.avahi.service_files
    if own is None or files is None:
        return info("what avahi-daemon publishes was not asked")
    lan = {i.index for i in usable_interfaces(facts)}
    seen = {(a.name.lower(), a.type.lower()) for a in own.announcements if a.interface in lan}
    missing = []
    for file in files:
        group = _group_of(file, facts) if file.name != SERVICE_FILE.name else None
        for service in group.services if group else ():
            kind = service.type.rstrip(".").lower()
            name = group.published_name(facts.daemon.host_name) if group else ""
            if kind in own.asked and not service.domain_name and not _listed(name.lower(), kind, seen):
                missing.append(f"{file.state.path}: “{name}” {kind}")
    if missing:
        return warn(
            "avahi-daemon does not publish what service files of others say",
            [*missing[:MAX_SHOWN], *log_lines(facts, "Failed to add service")],
            fix=fixes.restart_settled(facts),
            hint="changes of a mode or a link are no event for it; it reads all files when it starts",
        )
    return ok()


@check(
    "AG509",
    slug="service-file-label",
    area="service",
    says=f"{SERVICE_FILE} has a label that SELinux lets avahi-daemon read",
    needs=("AG501",),
)
def service_label(facts: Facts) -> Outcome:
    """A file moved from a home folder keeps that folder's label: permission denied, whatever the mode."""
    files = [f for f in facts.avahi.service_files or () if f.label.split(":")[2:3] and is_loaded(f.name)]
    wrong = [f for f in files if f.label.split(":")[2] in NOBODYS_LABELS]
    if wrong:
        return warn(
            f"SELinux keeps avahi-daemon from reading {wrong[0].state.path}",
            [f"{f.state.path}: {f.label}" for f in wrong[:MAX_SHOWN]],
            hint=f"run as root: restorecon -v {' '.join(f.state.path for f in wrong[:MAX_SHOWN])}",
        )
    return ok()


def txt_limit(facts: Facts) -> int:
    """Return how many bytes of TXT avahi-daemon can send on the LAN's narrowest interface."""
    mtus = [i.mtu for i in usable_interfaces(facts) if i.mtu]
    return min([*mtus, ETHERNET_MTU]) - AROUND_TXT


def _own_group(facts: Facts) -> ServiceGroup:
    return parse(facts.service_file.content or b"", SERVICE_FILE.name, facts.hostname)


def _own_names(facts: Facts) -> set[str]:
    names = {facts.hostname.partition(".")[0], facts.daemon.host_name} - {""}
    return {f"{name.lower()}.local" for name in names}


def _group_of(file: ServiceFile, facts: Facts) -> ServiceGroup | None:
    if file.state.content is None or not is_loaded(file.name):
        return None
    try:
        return parse(file.state.content, file.name, facts.daemon.host_name or facts.hostname)
    except MalformedInput:
        return None


def _faults_of(file: ServiceFile, facts: Facts) -> list[str]:
    state = file.state
    roots = {p.root for p in facts.avahi.processes or () if p.pid == facts.daemon.pid}
    if state.link_target is not None and not state.link_target.startswith(CHROOT) and "/" not in roots:
        return [f"{state.path} is a link to {state.link_target}, which avahi-daemon cannot see"]
    if state.mode is not None and state.mode & READABLE_BY_ALL != READABLE_BY_ALL:
        return [f"{state.path} has mode {state.mode:04o}: avahi-daemon, which is not root, cannot read it"]
    if state.content is None:
        return [f"{state.path}: {state.error}"] if state.exists else []
    try:
        group = parse(state.content, state.path, facts.daemon.host_name or facts.hostname)
    except MalformedInput as fault:
        return [fault.message]
    return [f for s in group.services if (f := _fault_of(s, state.path, txt_limit(facts)))]


def _fault_of(service: StaticService, path: str, limit: int) -> str:
    here = f"{path}:{service.line}"
    if service.txt_bytes > limit:
        return f"{here}: {service.txt_bytes} bytes of TXT fit into no packet: nobody can resolve it"
    if service.type.rstrip(".").lower() == NODE_SERVICE:
        return f"{here}: it publishes a second {NODE_SERVICE} of this machine, which peers take for a node"
    return ""


def _listed(name: str, kind: str, seen: set[tuple[str, str]]) -> bool:
    """Whether an instance is there, under the name that Avahi gives it where another has its own too."""
    return any(k == kind and (n == name or n.startswith(f"{name} #")) for n, k in seen)


@check(
    "AG510",
    slug="services-are-files",
    area="service",
    says=f"nothing in {SERVICE_FILE.parent} keeps avahi-daemon waiting",
    needs=("AG301",),
)
def services_are_files(facts: Facts) -> Outcome:
    """avahi-daemon opens whatever is named so, as a file: at a named pipe it waits for ever."""
    daemon = facts.daemon
    if not daemon.on_bus or daemon.server_state is not None:
        return ok()  # it waits for nobody
    odd = [f.state.path for f in facts.avahi.service_files or () if f.state.error == NOT_A_FILE]
    odd = [path for path in odd if path.endswith(".service")]
    if not odd:
        return ok()
    return error(
        f"avahi-daemon waits at {odd[0]}, which is {NOT_A_FILE}",
        odd[:MAX_SHOWN],
        fix=Fix(
            "move it away, and start avahi-daemon anew",
            commands=(f"mv {odd[0]} {odd[0]}.away", "pkill -KILL avahi-daemon", RESTART),
        ),
        hint="it is a pipe or a device; whoever made it meant another folder",
    )
