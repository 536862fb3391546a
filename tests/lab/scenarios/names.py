"""B: names and the name service switch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.process import Process
from tests.lab.scenarios.scenario import Scenario

NSSWITCH = "/etc/nsswitch.conf"
RESOLV_CONF = "/etc/resolv.conf"
MDNS_ALLOW = "/etc/mdns.allow"
NAME_SERVER = Path(__file__).parents[1] / "name_server.py"
STUB = "127.0.0.53"  # what a host's resolv.conf names from the start
MODULES = Path("/usr/lib")


def put_hosts_line(host: Host, services: str) -> None:
    """Give the host this hosts line."""
    lines = host.read(NSSWITCH).splitlines()
    changed = [f"hosts: {services}" if line.startswith("hosts:") else line for line in lines]
    host.write(NSSWITCH, "\n".join(changed) + "\n")


def start_name_server(host: Host, temper: str, address: str = STUB) -> Process:
    """Start a DNS server there that listens when this returns; it ends with the host."""
    server = host.popen([sys.executable, str(NAME_SERVER), address, temper])
    assert server.stdout is not None and server.stderr is not None
    assert server.stdout.readline() == "ready\n", server.stderr.read()
    return server


def hosts_line(services: str, allow: str | None = None) -> Callable[[Cluster], None]:
    """Return what gives the first host this hosts line, and an mdns.allow if wanted."""

    def break_it(lab: Cluster) -> None:
        put_hosts_line(lab[0], services)
        if allow is not None:
            lab[0].write(MDNS_ALLOW, allow)

    return break_it


def name_server(
    temper: str, services: str | None = None, allow: str | None = None
) -> Callable[[Cluster], None]:
    """Return what lets a DNS server of this temper answer on the first host, and changes its files."""

    def break_it(lab: Cluster) -> None:
        start_name_server(lab[0], temper)
        if services is not None:
            put_hosts_line(lab[0], services)
        if allow is not None:
            lab[0].write(MDNS_ALLOW, allow)

    return break_it


def nobody_is_name_server(lab: Cluster) -> None:
    """Name a server whose address nobody has."""
    lab[0].write(RESOLV_CONF, f"nameserver {lab.subnet}.250\n")


def first_of_two_is_dead(lab: Cluster) -> None:
    """Name a server that is silent before one that answers."""
    start_name_server(lab[0], "dead", "127.0.0.2")
    start_name_server(lab[0], "nxdomain")
    lab[0].write(RESOLV_CONF, f"search lan\nnameserver 127.0.0.2\nnameserver {STUB}\n")


def module_is_broken(lab: Cluster) -> None:
    """Put something that is no library where the module is."""
    host = lab[0]
    (module,) = MODULES.glob("*/libnss_mdns4_minimal.so.2")
    host.write("/run/broken.so", b"\x7fELF" + bytes(60))
    host.run(["mount", "--bind", "/run/broken.so", str(module)], check=True)


def socket_is_gone(lab: Cluster) -> None:
    """Take away the socket where glibc's module asks Avahi, as a careless cleaning of /run does."""
    lab[0].path("/run/avahi-daemon/socket").unlink()


FULL_AT_THE_END = "files mdns4_minimal [NOTFOUND=return] dns mdns4"

SCENARIOS = (
    Scenario(
        "B-01",
        "no-mdns-on-the-hosts-line",
        "`hosts: files dns`",
        "AG104",
        hosts_line("files dns"),
        mends=True,
    ),
    Scenario(
        "B-02",
        "dns-ends-the-search-before-mdns",
        "`hosts: files dns [!UNAVAIL=return] mdns4_minimal`, and a DNS server that answers",
        "AG104",
        name_server("nxdomain", "files dns [!UNAVAIL=return] mdns4_minimal"),
        mends=True,
    ),
    Scenario(
        "B-03",
        "dns-claims-local",
        "a DNS server that answers SOA for `local`",
        "AG109",
        name_server("owner"),
        mends=True,
    ),
    Scenario(
        "B-03",
        "dns-claims-local-and-the-full-module-obeys",
        "a DNS server that answers SOA for `local`, and `mdns4` without an mdns.allow",
        "AG109",
        name_server("owner", "files mdns4 [NOTFOUND=return] dns"),
        mends=True,
    ),
    Scenario(
        "B-04",
        "dead-name-server",
        "a name server whose address nobody has",
        "AG108",
        nobody_is_name_server,
        mends=True,
    ),
    Scenario(
        "B-04",
        "silent-name-server",
        "a name server that reads questions and never answers",
        "AG108",
        name_server("dead"),
        mends=True,
    ),
    Scenario(
        "B-04",
        "first-name-server-dead",
        "a silent name server before one that answers",
        "AG108",
        first_of_two_is_dead,
        mends=True,
    ),
    Scenario(
        "B-04",
        "name-server-is-deaf-to-local",
        "a name server that answers everything but questions about `local`",
        "AG108",
        name_server("deaf-to-local"),
        mends=True,
    ),
    Scenario(
        "B-05",
        "unknown-name",
        "nothing: `doctor nosuch.local` asks for a name that nobody has",
        "AG118",
        lambda _: None,
        ask=("nosuch.local",),
    ),
    Scenario(
        "B-06",
        "full-module-at-the-end",
        f"`hosts: {FULL_AT_THE_END}`",
        "AG112",
        hosts_line(FULL_AT_THE_END),
        mends=True,
    ),
    Scenario(
        "B-08",
        "mdns-allow-ignored",
        "an mdns.allow for `.lan`, which `mdns4_minimal` does not read",
        "AG111",
        hosts_line("files mdns4_minimal [NOTFOUND=return] dns", ".local\n.lan\n"),
        mends=True,
    ),
    Scenario(
        "B-08",
        "mdns-allow-without-local",
        "`mdns4` with an mdns.allow that does not list `.local`",
        "AG114",
        hosts_line("files mdns4 [NOTFOUND=return] dns", ".lan\n"),
        mends=True,
    ),
    Scenario(
        "B-08",
        "mdns-allow-everything",
        "`mdns4 [NOTFOUND=return]` with `*` in mdns.allow: DNS is never asked",
        "AG115",
        hosts_line("files mdns4 [NOTFOUND=return] dns", "*\n"),
        mends=True,
    ),
    Scenario(
        "B-12",
        "avahi-socket-is-gone",
        "`/run/avahi-daemon/socket` is removed while the daemon runs",
        "AG120",
        socket_is_gone,
        mends=True,
    ),
    Scenario(
        "B-13",
        "module-cannot-be-loaded",
        "the file of the module is no library",
        "AG110",
        module_is_broken,
    ),
)
