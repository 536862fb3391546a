"""2xx: who else answers or listens on mDNS's port."""

from __future__ import annotations

from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Change, Facts, Fix, MdnsSocket

SOCKETS = "network.mdns_sockets"
AVAHI = "avahi-daemon"
RESOLVED = "systemd-resolve"  # of systemd-resolved; the kernel keeps 15 characters of a program's name
# behind what an administrator may have there: of these files the last one counts (resolved.conf(5))
DROP_IN = "/etc/systemd/resolved.conf.d/95-avahi-gpu.conf"
RESOLVED_UNIT = "systemd-resolved.service"
# programs for people that listen for printers, televisions and phones; they answer for no host name
LISTENERS = (
    "brave", "chrome", "chromium", "discord", "dropbox", "electron", "evolution", "firefox", "gjs", "gnome-",
    "gsconnect", "gvfsd", "kde", "msedge", "opera", "plasma", "pulseaudio", "pipewire", "slack", "spotify",
    "steam", "vivaldi", "vlc", "zoom",
)  # fmt: skip


@check(
    "AG209",
    slug="mdns-port",
    area="network",
    says="avahi-daemon has mDNS's port to itself",
    follows=("AG304",),
    setup=True,
    grant="resolved",
)
def mdns_port(facts: Facts) -> Outcome:
    """Answers to one address reach only one of several sockets on UDP 5353 (systemd#5530, avahi#117)."""
    sockets = facts.network.mdns_sockets
    if sockets is None:
        return unread(facts, SOCKETS, "the sockets on UDP port 5353")
    if not sockets:
        return skip("no socket is on UDP port 5353")
    others = _others(facts, sockets)
    if not others:
        return ok(f"{len(sockets)} sockets, of {AVAHI} alone")
    told = sorted({_tell(s) for s in others})
    if not any(s.program == RESOLVED for s in others) and not facts.daemon.on_bus:
        return skip("avahi-daemon does not run, so nobody shares the port with it")
    if any(s.program == RESOLVED for s in others):
        return _judge_resolved(facts, told)
    foreign = [s for s in others if not s.program.lower().startswith(LISTENERS)]
    if not foreign:
        return warn(
            f"{' and '.join(sorted({s.program for s in others}))} shares mDNS's port with avahi-daemon",
            told,
            hint="it only listens, and answers that are meant for avahi-daemon alone may go astray: "
            "close it while you look for nodes",
        )
    names = sorted({_name(s) for s in foreign})
    if any(s.program == AVAHI for s in foreign):
        return error(
            "two avahi-daemons answer on this machine",
            told,
            hint="one of them is probably in a container with the host's network: stop that one, and give "
            "the container /run/avahi-daemon/socket and /run/dbus/system_bus_socket of the host",
        )
    if not _sees_all(facts, sockets):
        return warn(
            "another program shares mDNS's port with avahi-daemon",
            told,
            hint="run this as root to see which one it is",
        )
    return error(
        f"another mDNS program shares UDP port 5353 with avahi-daemon: {', '.join(names)}",
        told,
        hint="stop it, or keep it from that port: answers reach only one of the two, and if both answer for "
        "this machine's name each takes the other for a stranger",
    )


def _judge_resolved(facts: Facts, told: list[str]) -> Outcome:
    resolved = facts.network.resolved_mdns
    on = [name for name, word in (resolved.links if resolved else ()) if word != "no"]
    if resolved is not None and (resolved.overall == "no" or not on):
        return warn(
            "systemd-resolved holds mDNS's port too, though mDNS is off on every link",
            told,
            fix=_switch_off(facts),
        )
    return error(
        "systemd-resolved does mDNS too, beside avahi-daemon",
        [*told, *(f"resolvectl mdns: {name}: on" for name in on)],
        fix=_switch_off(facts),
        hint="only one of them can answer for this machine",
    )


def _switch_off(facts: Facts) -> Fix:
    text = b"# by avahi-gpu: avahi-daemon does mDNS on this machine\n[Resolve]\nMulticastDNS=no\n"
    write = Change("file", "switch mDNS in systemd-resolved off", path=DROP_IN, content=text)
    restart = Change(
        "daemon",
        "restart systemd-resolved",
        argv=("systemctl", "restart", RESOLVED_UNIT),
        undo=("systemctl", "restart", RESOLVED_UNIT),
    )
    changes = (write, restart) if facts.init == "systemd" else (write,)
    return Fix(write.title, changes)


def _others(facts: Facts, sockets: tuple[MdnsSocket, ...]) -> list[MdnsSocket]:
    """Return the sockets that are not those of the avahi-daemon that is on the bus."""
    if _sees_all(facts, sockets):
        return [s for s in sockets if not _is_ours(facts, s)]
    # owners cannot be seen: avahi-daemon has one socket for each protocol
    seen: set[tuple[int, int]] = set()
    others = []
    avahi = {s.uid for s in sockets if s.pid is None}
    for socket in sockets:
        if socket.pid is not None or (socket.family, socket.uid) in seen or len(avahi) > 1:
            others.append(socket)
        seen.add((socket.family, socket.uid))
    return others


def _sees_all(facts: Facts, sockets: tuple[MdnsSocket, ...]) -> bool:
    """Whether this process may see whose the sockets are: it sees the daemon's own."""
    return any(_is_ours(facts, s) for s in sockets)


def _is_ours(facts: Facts, socket: MdnsSocket) -> bool:
    if socket.program != AVAHI:
        return False
    return facts.daemon.pid is None or socket.pid == facts.daemon.pid


def _name(socket: MdnsSocket) -> str:
    return socket.program or "a program outside this machine's view"


def _tell(socket: MdnsSocket) -> str:
    if socket.pid is not None:
        return f"{socket.program} (process {socket.pid}) on {socket.address}"
    return f"a socket of user id {socket.uid} on {socket.address}, of a process that is not seen from here"
