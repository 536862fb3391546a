"""The LAN of a cluster: a bridge in a network namespace of its own, one cable to each host.

Namespaces have no names and interfaces are named inside them, so any number of LANs live side by side and the
kernel removes each with its last process.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

BRIDGE = "br0"
SETTLE_S = 10.0  # ip answers in milliseconds


def configure(pid: int, commands: Iterable[str]) -> None:
    """Run ``ip`` commands in the network namespace of ``pid``. Raises RuntimeError with ip's words."""
    done = subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        timeout=SETTLE_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


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
    """Lay a cable from the switch to the host whose process 1 is ``host``; its end there is eth0."""
    port = port_of(number)
    configure(
        switch,
        [f"link add {port} type veth peer name eth0 netns {host}", f"link set {port} master {BRIDGE} up"],
    )
    configure(
        host,
        [
            "link set lo up",
            f"addr add {address}/24 dev eth0",
            "link set eth0 up",
            "route add default dev eth0",  # multicast needs a route
        ],
    )


def unplug(switch: int, number: int, *, carrier: bool) -> None:
    """Cut the cable. With ``carrier`` the host sees no fault, as behind a dead switch."""
    state = "nomaster" if carrier else "down"
    configure(switch, [f"link set {port_of(number)} {state}"])


def plug_back(switch: int, number: int) -> None:
    """Mend the cable, however it was cut."""
    configure(switch, [f"link set {port_of(number)} master {BRIDGE} up"])
