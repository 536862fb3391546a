"""3xx: /etc/avahi/hosts, by which avahi-daemon publishes names for machines that do not do so themselves."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.outcome import Outcome, error, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.files import etc_hosts
from avahi_gpu.files.etc_hosts_edit import remove_names
from avahi_gpu.model import Facts, Fix

MAX_SHOWN = 4  # lines


@check(
    "AG313",
    slug="avahi-hosts",
    area="host",
    says="/etc/avahi/hosts publishes no name of a node under a wrong address",
    needs=("AG302",),
)
def avahi_hosts(facts: Facts) -> Outcome:
    """The daemon publishes these as it publishes its own: what is wrong there is wrong for the whole LAN."""
    state = facts.avahi.static_hosts
    if state is None:
        return unread(facts, "avahi.static_hosts", "/etc/avahi/hosts")
    entries = etc_hosts.parse((state.content or b"").decode("utf-8", "surrogateescape"))
    own = {a.ip.partition("%")[0] for i in facts.interfaces for a in i.addresses}
    name = f"{facts.daemon.host_name}.{facts.daemon.domain or 'local'}".lower()
    peers = {p.host.lower().rstrip("."): p.address for p in facts.peers or () if p.address}
    mine: dict[int, set[str]] = {}
    theirs: dict[int, set[str]] = {}
    lines = []
    for entry in entries:
        for one in entry.names:
            plain = one.lower().rstrip(".")
            if facts.daemon.host_name and plain == name and own and entry.address not in own:
                mine.setdefault(entry.line, set()).add(one)
                why = "no address of this machine"
            elif plain in peers and entry.address.partition("%")[0] != peers[plain].partition("%")[0]:
                theirs.setdefault(entry.line, set()).add(one)
                why = f"that node has {peers[plain]}"
            else:
                continue
            lines.append(f"{state.path}:{entry.line}: {entry.address} {one}: {why}")
    if not mine and not theirs:
        return ok()
    wrong = {**theirs, **mine}
    names = sorted({one for found in wrong.values() for one in found})
    hint = f"take {' and '.join(names)} out of it and restart avahi-daemon: each node publishes its own name"
    says = f"{state.path} publishes {' and '.join(names)} under a wrong address"
    fix = _take_out(facts, names, list(wrong))
    if mine:
        return error(says, lines[:MAX_SHOWN], fix=fix, hint=hint)
    return warn(
        f"{says}: that node gets another name when it starts anew", lines[:MAX_SHOWN], fix=fix, hint=hint
    )


def _take_out(facts: Facts, names: list[str], lines: list[int]) -> Fix | None:
    state = facts.avahi.static_hosts
    if state is None or state.content is None or not state.writable or fixes.is_of_nixos(state):
        return None
    title = f"take {' and '.join(names)} out of {state.path}"
    change = fixes.write_file(title, state, remove_names(state.content, names, lines))
    restart = fixes.restart_avahi(facts).changes if facts.daemon.pid is not None else ()
    return Fix(title, (change, *restart))
