"""The LAN of a cluster: a bridge in a network namespace of its own, one cable to each host.

Namespaces have no names and interfaces are named inside them, so any number of LANs live side by side and the
kernel removes each with its last process.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

BRIDGE = "br0"
SETTLE_S = 10.0  # ip answers in milliseconds

Way = Literal["in", "out"]


def inside(pid: int, argv: Sequence[str], text: str = "") -> str:
    """Run a command in the network namespace of ``pid``, feed it ``text``, return what it prints.

    Raises RuntimeError with the command's own words where it fails.
    """
    done = subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", *argv],
        input=text,
        capture_output=True,
        text=True,
        timeout=SETTLE_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout


def configure(pid: int, commands: Iterable[str]) -> None:
    """Run ``ip`` commands in the network namespace of ``pid``. Raises RuntimeError with ip's words."""
    inside(pid, ["ip", "-batch", "-"], "\n".join(commands) + "\n")


def port_of(number: int) -> str:
    """Return the name of the switch's port for host ``number``."""
    return f"port{number}"


def build_switch(switch: int) -> None:
    """Make the bridge. Snooping is off: without a multicast querier it would be a matter of luck."""
    configure(
        switch,
        [
            "link set lo up",
            f"link add {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
            f"link set {BRIDGE} up",
        ],
    )


def plug_in(switch: int, number: int, host: int, address: str) -> None:
    """Lay a cable from the switch to the host whose process 1 is ``host``; its end there is eth0.

    ``address``: IPv4, or IPv6 for a LAN that knows nothing else.
    """
    port = port_of(number)
    configure(
        switch,
        [f"link add {port} type veth peer name eth0 netns {host}", f"link set {port} master {BRIDGE} up"],
    )
    if ":" in address:
        configure(host, ["link set lo up", f"addr add {address}/64 dev eth0", "link set eth0 up"])
        return
    configure(
        host,
        [
            "link set lo up",
            f"addr add {address}/24 dev eth0",
            "link set eth0 up",
            "route add default dev eth0",  # multicast needs a route
        ],
    )


def remove_port(switch: int, number: int) -> None:
    """Take away the port of a host that is gone; its end of the cable has gone with it, or is about to."""
    with suppress(RuntimeError):  # the kernel has removed both ends by now
        configure(switch, [f"link del {port_of(number)}"])


def unplug(switch: int, number: int, *, carrier: bool) -> None:
    """Cut the cable. With ``carrier`` the host sees no fault, as behind a dead switch."""
    state = "nomaster" if carrier else "down"
    configure(switch, [f"link set {port_of(number)} {state}"])


def plug_back(switch: int, number: int) -> None:
    """Mend the cable, however it was cut."""
    configure(switch, [f"link set {port_of(number)} master {BRIDGE} up"])


def connect(switch: int, name: str) -> None:
    """Put an interface of the switch's own on the bridge."""
    configure(switch, [f"link set {name} master {BRIDGE} up"])


# --- a LAN in parts ----------------------------------------------------------------------------------------


def part(switch: int, groups: Sequence[Sequence[int]]) -> None:
    """Give each group of host numbers a bridge of its own; cables keep the state that they are in."""
    reunite(switch, [])
    for index, group in enumerate(groups):
        bridge = f"part{index}"
        configure(
            switch,
            [
                f"link add {bridge} type bridge stp_state 0 mcast_snooping 0",
                f"link set {bridge} up",
                *(f"link set {port_of(number)} master {bridge}" for number in group),
            ],
        )


def reunite(switch: int, numbers: Iterable[int]) -> None:
    """Put the ports of these hosts back on the one bridge, and remove the others."""
    configure(switch, [f"link set {port_of(number)} master {BRIDGE}" for number in numbers])
    shown = inside(switch, ["ip", "-brief", "link", "show", "type", "bridge"])
    bridges = [line.split()[0] for line in shown.splitlines() if line.startswith("part")]
    configure(switch, [f"link del {bridge}" for bridge in bridges])


# --- one-way loss ------------------------------------------------------------------------------------------


def mute(switch: int, number: int, host: int, way: Way) -> None:
    """Let every frame from the host (``out``) or to it (``in``) vanish, while the other way is open."""
    pid, device = (switch, port_of(number)) if way == "out" else (host, "eth0")
    rule = f"chain c {{ type filter hook ingress device {device} priority 0; policy drop; }};"
    inside(pid, ["nft", "-f", "-"], f"table netdev mute{number} {{ {rule} }};\n")


def unmute(switch: int, number: int, host: int) -> None:
    """Open both ways again."""
    for pid in (switch, host):
        if f"mute{number}" in inside(pid, ["nft", "list", "tables"]):
            inside(pid, ["nft", "delete", "table", "netdev", f"mute{number}"])


# --- speed -------------------------------------------------------------------------------------------------


def shape(switch: int, number: int, host: int, mbit: float | None) -> None:
    """Let the cable of a host carry so many Mbit/s each way (tc-tbf(8)); None: as many as it can."""
    for pid, device in ((switch, port_of(number)), (host, "eth0")):
        with suppress(RuntimeError):  # it had its own speed
            inside(pid, ["tc", "qdisc", "del", "dev", device, "root"])
        if mbit is not None:
            rate = f"{round(mbit * 1000)}kbit"
            # small enough that no burst passes at once, large enough for the kernel's ticks (tc-tbf(8))
            burst = f"{max(6000, round(mbit * 1e6 / 8 / 250))}b"
            bucket = ["rate", rate, "burst", burst, "latency", "100ms"]
            inside(pid, ["tc", "qdisc", "add", "dev", device, "root", "tbf", *bucket])
