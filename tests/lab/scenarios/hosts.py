"""/etc/hosts, the own name, and what a host runs in."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.scenarios.names import NSSWITCH, hosts_line
from tests.lab.scenarios.scenario import Scenario

HOSTS = "/etc/hosts"
LOCALHOST = "127.0.0.1\tlocalhost\n"


def hosts_file(text: str) -> Callable[[Cluster], None]:
    """Return what gives the first host this file; ``@N`` is its name, ``@2`` and ``@3`` peers' addresses."""

    def break_it(lab: Cluster) -> None:
        filled = text.replace("@N", lab[0].name).replace("@2", lab[1].address).replace("@3", lab[2].address)
        lab[0].write(HOSTS, filled)

    return break_it


def mount_nsswitch(lab: Cluster) -> None:
    """Make nsswitch.conf a mount of its own, as containers do, and break its hosts line."""
    hosts_line("files dns")(lab)
    lab[0].write("/run/nsswitch.conf", lab[0].read(NSSWITCH))
    lab[0].run(["mount", "--bind", "/run/nsswitch.conf", NSSWITCH], check=True)


def no_name_and_no_mdns(lab: Cluster) -> None:
    """Break two things that have nothing to do with each other."""
    hosts_file(LOCALHOST)(lab)
    hosts_line("files dns")(lab)


SCENARIOS = (
    Scenario(
        "B-14",
        "own-name-unknown",
        "no line for the own name in /etc/hosts, no nss-myhostname",
        "AG320",
        hosts_file(LOCALHOST),
        mends=True,
    ),
    Scenario(
        "B-14",
        "old-host-name",
        "/etc/hosts has the name that the machine had before",
        "AG320",
        hosts_file(f"{LOCALHOST}127.0.1.1\tubuntu\n::1 ip6-localhost ip6-loopback\n"),
        mends=True,
    ),
    Scenario(
        "B-14",
        "own-name-unknown-and-no-mdns",
        "two causes: no line for the own name in /etc/hosts, and `hosts: files dns`",
        "AG104",
        no_name_and_no_mdns,
        also=("AG320",),
        mends=True,
    ),
    Scenario(
        "B-15",
        "nsswitch-is-a-mount",
        "nsswitch.conf is a mount of its own and lacks mDNS: a rename over it fails with EBUSY",
        "AG104",
        mount_nsswitch,
        mends=True,
    ),
    Scenario(
        "C-02",
        "own-name-is-localhost",
        "`127.0.0.1 localhost HOST`: getfqdn() is localhost",
        "AG321",
        hosts_file("127.0.0.1 localhost @N\n"),
        mends=True,
    ),
    Scenario(
        "A-10",
        "own-name-has-an-old-address",
        "/etc/hosts gives the own name an address that the machine had before",
        "AG322",
        hosts_file(f"{LOCALHOST}10.99.99.99 @N\n"),
        mends=True,
    ),
    Scenario(
        "A-10",
        "own-local-name-pinned",
        "`127.0.1.1 HOST.local HOST`: the own .local name is loopback",
        "AG323",
        hosts_file(f"{LOCALHOST}127.0.1.1 @N.local @N\n"),
        mends=True,
    ),
    Scenario(
        "A-10",
        "peer-pinned-to-nobody",
        "/etc/hosts gives a peer's .local name an address at which nobody is",
        "AG323",
        hosts_file(f"{LOCALHOST}127.0.1.1 @N\n10.99.99.99 gpu-node-2.local\n"),
        mends=True,
    ),
    Scenario(
        "A-10",
        "peer-pinned-to-another",
        "/etc/hosts gives a peer's .local name the address of another peer",
        "AG323",
        hosts_file(f"{LOCALHOST}127.0.1.1 @N\n@2 gpu-node-2.local\n@2 gpu-node-3.local\n"),
        mends=True,
    ),
)
