"""3xx: the ports that jobs take, and what dead jobs have left behind."""

from __future__ import annotations

from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import DEFAULT_PORT, Facts, Fix, Leftover, Listener

JOB_PORTS = (DEFAULT_PORT, 29999)  # a job of ours takes free ones of these for its rounds
C10D_PORT = 29400  # torchrun's, where an endpoint names none
SHOWN = 5


@check(
    "AG330",
    slug="no-leftovers",
    area="host",
    says="no worker of a dead job is left",
)
def no_leftovers(facts: Facts) -> Outcome:
    """An agent that is killed leaves its workers running, with GPUs and ports (pytorch/pytorch#76287)."""
    left = facts.host.leftovers
    if left is None:
        return unread(facts, "host.leftovers", "the processes of this machine")
    if not left:
        return ok()
    if not any(one.worker or one.holds for one in left):
        return warn(
            f"{left[0].command.partition(' ')[0] or 'a process'}, which a job had started, still runs",
            [_describe(one) for one in left[:SHOWN]],
            hint="it may be meant to, as a server of figures is; else end it",
        )
    count = "a worker" if len(left) == 1 else f"{len(left)} workers"
    pids = " ".join(str(one.pid) for one in left)
    return error(
        f"{count} of a dead job still runs: its agent has ended without it"
        if len(left) == 1
        else f"{count} of dead jobs still run: their agents have ended without them",
        [_describe(one) for one in left[:SHOWN]],
        fix=Fix("end them", commands=(f"kill {pids}",)),
        hint="look at them first: nobody collects what they compute, and what they hold is missing elsewhere",
    )


@check(
    "AG331",
    slug="job-ports-free",
    area="host",
    says=f"port {DEFAULT_PORT} is free, or a running job's",
    needs=("AG330",),
)
def job_ports_free(facts: Facts) -> Outcome:
    """A foreign listener keeps the other nodes waiting until their timeout (pytorch/pytorch#73320)."""
    listeners = facts.host.listeners
    if listeners is None:
        return unread(facts, "host.listeners", "the ports of this machine")
    asked = _asked_ports(facts)
    taken = [one for one in listeners if one.port in asked]
    foreign = [one for one in taken if one.pid is not None and not one.job]
    hidden = [one for one in taken if one.pid is None]
    if foreign:
        one = foreign[0]
        return error(
            f"port {one.port} is taken by process {one.pid}, which is no job: {one.command or '?'}",
            [_place(other) for other in foreign[:SHOWN]],
            fix=Fix("end it, or move it to another port", commands=(f"kill {one.pid}",)),
            hint="or choose another port for torch: torchrun --master-port, or port in the --rdzv-endpoint",
        )
    if hidden:
        return info(
            f"port {hidden[0].port} is taken; by whom cannot be seen from here",
            [_place(other) for other in hidden[:SHOWN]],
            hint="as root the doctor sees whose it is",
        )
    if taken:
        return info(
            f"a job runs here and listens on port {taken[0].port}", [_place(t) for t in taken[:SHOWN]]
        )
    return ok()


@check(
    "AG332",
    slug="job-ports-reserved",
    area="host",
    says="the kernel gives the ports of jobs to nobody by chance",
)
def job_ports_reserved(facts: Facts) -> Outcome:
    """A connection to anywhere may be given a port of net.ipv4.ip_local_port_range, one of ours included."""
    given = facts.host.port_range
    if given is None:
        return unread(facts, "host.port_range", "the range of local ports")
    low, high = given
    first, last = JOB_PORTS
    if high < first or low > last or _reserved(facts.host.reserved_ports, first):
        return ok(f"{low} to {high}")
    return warn(
        f"the kernel may give port {first} to any connection: its range is {low} to {high}",
        [f"net.ipv4.ip_local_port_range = {low} {high}"],
        fix=Fix(
            "reserve the ports",
            commands=(f"sysctl -w net.ipv4.ip_local_reserved_ports={first}-{last}",),
        ),
        hint="in a file of /etc/sysctl.d it stays after a restart",
    )


def _asked_ports(facts: Facts) -> set[int]:
    """Return the ports that must be free: ours, torchrun's, and those of endpoints that are this machine."""
    own = {a.ip for i in facts.interfaces for a in i.addresses}
    here = {
        e.port
        for e in facts.host.endpoints or ()
        if e.port and (own & set(e.addresses) or e.host == facts.hostname)
    }
    return {DEFAULT_PORT, C10D_PORT, *here}


def _reserved(text: str, port: int) -> bool:
    """Whether a port is among the kernel's list of numbers and spans."""
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if low.isdecimal() and int(low) <= port <= int(high if high.isdecimal() else low):
            return True
    return False


def _describe(one: Leftover) -> str:
    holds = f", holds {', '.join(one.holds)}" if one.holds else ""
    return f"process {one.pid} of run {one.run}: {one.command}{holds}"


def _place(one: Listener) -> str:
    owner = f"process {one.pid}: {one.command}" if one.pid is not None else f"user {one.uid}"
    return f"{one.address} port {one.port}: {owner}"
