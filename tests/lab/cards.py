"""More networks for the lab's hosts: second cards, direct cables, and what Docker leaves behind."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.lab.host import Host
from tests.lab.network import configure

_numbers = itertools.count(1)


class Network:
    """A second switch, with a cable to some of the hosts. It goes with the hosts."""

    def __init__(self, interface: str, addresses: Mapping[Host, str]) -> None:
        """Lay it. ``interface``: the name of the cards; ``addresses``: with prefix length, '' for none."""
        self.interface = interface
        self._number = next(_numbers)
        self._switch = next(iter(addresses)).switch
        bridge = f"net{self._number}"
        setup = [f"link add {bridge} type bridge stp_state 0 mcast_snooping 0", f"link set {bridge} up"]
        for host in addresses:
            port = self.port(host)
            setup += [
                f"link add {port} type veth peer name {interface} netns {host.pid}",
                f"link set {port} master {bridge} up",
            ]
        configure(self._switch, setup)
        for host, address in addresses.items():
            given = [f"addr add {address} dev {interface}"] if address else []
            configure(host.pid, [*given, f"link set {interface} up"])

    def port(self, host: Host) -> str:
        return f"net{self._number}-{host.number}"

    def cut(self, host: Host, *, carrier: bool = False) -> None:
        """Pull the host's cable. With ``carrier`` the host sees no fault, its frames just go nowhere."""
        state = "nomaster" if carrier else "down"
        configure(self._switch, [f"link set {self.port(host)} {state}"])

    def heal(self, host: Host) -> None:
        configure(self._switch, [f"link set {self.port(host)} master net{self._number} up"])


def add_docker(host: Host) -> None:
    """Give a host the bridge of a container that runs, at the address that it has on every host."""
    configure(
        host.pid,
        [
            "link add docker0 type bridge",
            "addr add 172.17.0.1/16 dev docker0",
            "link set docker0 up",
            "link add veth0a type veth peer name veth0b",
            "link set veth0a master docker0 up",
            "link set veth0b up",
        ],
    )


def readdress(host: Host, old: str, new: str, interface: str = "eth0") -> None:
    """Give an interface another address, as a DHCP server does that forgot the first."""
    configure(host.pid, [f"addr del {old} dev {interface}", f"addr add {new} dev {interface}"])
