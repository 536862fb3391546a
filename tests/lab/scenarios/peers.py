"""A and C: what one node sees of the others, without their help. gpu-node-3 is broken, gpu-node-1 asked."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.scenarios.scenario import Scenario

SERVICE = "/etc/avahi/services/torch.service"
SEEN_WITHIN_S = 10.0  # a change of a service is told twice, a second apart


def listed_by(host: Host) -> str:
    """Return what Avahi there knows of all nodes, resolved."""
    return host.run(["avahi-browse", "-rpt", "_torch._tcp"]).stdout


def wait_until(happens: Callable[[], bool]) -> None:
    """Wait until the LAN has heard of a change."""
    deadline = time.monotonic() + SEEN_WITHIN_S
    while not happens():
        assert time.monotonic() < deadline, "the LAN has not heard of it"
        time.sleep(0.2)


def cut_the_power(lab: Cluster) -> None:
    """No goodbye: Avahi's list remembers the node."""
    lab[2].kill()


def pull_the_cable(lab: Cluster) -> None:
    lab[2].cut(carrier=True)


def kill_avahi(lab: Cluster) -> None:
    lab[2].run(["pkill", "-KILL", "-x", "avahi-daemon"], check=True)


def freeze_it(lab: Cluster) -> None:
    """A machine that swaps itself to death: its kernel still answers."""
    lab[2].freeze()


def thaw_it(lab: Cluster) -> None:
    lab[2].thaw()


def drop_everything(lab: Cluster) -> None:
    """A firewall that lets mDNS through, and nothing else."""
    rules = (
        "table inet wall { chain input { type filter hook input priority 0; policy drop; "
        'iif "lo" accept; udp dport 5353 accept; }; }'
    )
    lab[2].run(["nft", rules], check=True)


def lose_ipv4(lab: Cluster) -> None:
    lab[2].run(["ip", "-4", "addr", "flush", "dev", "eth0"], check=True)


def lose_ipv4_for_good(lab: Cluster) -> None:
    """… for so long that nobody remembers the address: whoever has just started never knew it."""
    lose_ipv4(lab)
    lab[0].restart_avahi()


def give_another_address(lab: Cluster) -> None:
    """While nobody can hear of it, as behind a switch that has stopped to pass multicast on."""
    third = lab[2]
    rule = "table inet quiet { chain out { type filter hook output priority 0; udp dport 5353 drop; }; }"
    third.run(["nft", rule], check=True)
    lose_ipv4(lab)
    third.run(["ip", "addr", "add", f"{lab.subnet}.33/24", "dev", "eth0"], check=True)


def move_to_another_subnet(lab: Cluster) -> None:
    lose_ipv4(lab)
    lab[2].run(["ip", "addr", "add", "192.168.99.3/24", "dev", "eth0"], check=True)
    wait_until(lambda: "192.168.99.3" in listed_by(lab[0]))


def add_to_txt(*items: str) -> Callable[[Cluster], None]:
    """Return what puts items before those of gpu-node-3's service file."""

    def break_it(lab: Cluster) -> None:
        third = lab[2]
        records = "".join(f"<txt-record>{item}</txt-record>" for item in items)
        third.write(SERVICE, third.read(SERVICE).replace("</port>", f"</port>{records}"))
        third.restart_avahi()
        time.sleep(1.2)  # the goodbye of the old service takes a second to come into force

    return break_it


def keep_its_address_to_itself(lab: Cluster) -> None:
    conf = "/etc/avahi/avahi-daemon.conf"
    text = lab[2].read(conf).replace("[publish]", "[publish]\npublish-addresses=no")
    lab[2].write(conf, text)
    lab[2].restart_avahi()
    time.sleep(1.2)  # the goodbye of the address takes a second to come into force


def tell(key: str, value: str) -> Callable[[Cluster], None]:
    """Return what makes gpu-node-3 tell another value."""

    def break_it(lab: Cluster) -> None:
        third = lab[2]
        lines = third.read(SERVICE).splitlines()
        kept = [line for line in lines if f">{key}=" not in line]
        record = f"<txt-record>{key}={value}</txt-record>"
        third.write(SERVICE, "\n".join(kept).replace("</port>", f"</port>{record}"))
        third.restart_avahi()
        wait_until(lambda: f'"{key}={value}"' in listed_by(lab[0]))

    return break_it


def name_it_like_the_first(lab: Cluster) -> None:
    """A machine that was installed with the host name of another, and then set up."""
    third = lab[2]
    third.run(["hostname", "gpu-node-1"], check=True)
    third.restart_avahi()
    third.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=90)
    wait_until(lambda: '"host=gpu-node-1"' in listed_by(lab[1]).replace(lab[0].name + ".local", ""))
    wait_until(lambda: any("gpu-node-3" in n and '"host=gpu-node-1"' in n for n in lines_of(lab[1])))


def lines_of(host: Host) -> list[str]:
    return [line for line in listed_by(host).splitlines() if line.startswith("=")]


def rename_without_need(lab: Cluster) -> None:
    """What avahi-daemon does after a conflict that was none: its own words, reflected by some bridge."""
    call = ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.Avahi", "/"]
    lab[0].run([*call, "org.freedesktop.Avahi.Server.SetHostName", "string:gpu-node-4"], check=True)
    lab[0].wait_for_avahi()


def clone_its_disk(lab: Cluster) -> None:
    third = lab[2]
    third.write("/etc/machine-id", lab[1].read("/etc/machine-id"))
    third.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=90)
    # for a second or two the old record is in the caches beside the new one
    old = f'"host={third.name}"'
    time.sleep(2.5)
    wait_until(lambda: any(old in line for line in lines_of(lab[0])))


def give_it_a_neighbours_address(lab: Cluster) -> None:
    lose_ipv4(lab)
    lab[2].run(["ip", "addr", "add", f"{lab[1].address}/24", "dev", "eth0"], check=True)
    lab[2].restart_avahi()
    wait_until(
        lambda: any(lab[2].name in line and f";{lab[1].address};" in line for line in lines_of(lab[0]))
    )


THIRD = (2,)

SCENARIOS = (
    Scenario(
        "A-05",
        "renamed-without-need",
        "avahi-daemon goes by an alternative name, though nobody else has the first",
        "AG107",
        rename_without_need,
        mends=True,
    ),
    Scenario(
        "A-06",
        "same-host-name-seen-by-its-owner",
        "a node has this machine's host name, so Avahi publishes it under another",
        "AG611",
        name_it_like_the_first,
        touches=THIRD,
    ),
    Scenario(
        "A-06",
        "same-host-name-seen-by-a-third",
        "two other nodes have one host name",
        "AG611",
        name_it_like_the_first,
        on=1,
        touches=THIRD,
    ),
    Scenario(
        "A-06",
        "same-host-name-seen-by-the-renamed",
        "this machine has another one's host name",
        "AG107",
        name_it_like_the_first,
        on=2,
        touches=THIRD,
    ),
    Scenario(
        "A-06",
        "same-machine-id",
        "two other nodes have one machine id, as cloned disks do",
        "AG606",
        clone_its_disk,
        touches=THIRD,
    ),
    Scenario("A-09", "peer-without-power", "a node loses its power", "AG604", cut_the_power, touches=THIRD),
    Scenario(
        "A-09",
        "peer-without-cable",
        "a node's cable is out",
        "AG604",
        pull_the_cable,
        touches=THIRD,
    ),
    Scenario(
        "A-09",
        "peer-with-avahi-killed",
        "a node's avahi-daemon is killed: no goodbye, and the machine answers",
        "AG618",
        kill_avahi,
        touches=THIRD,
    ),
    Scenario(
        "A-09",
        "peer-frozen",
        "a node hangs: its kernel answers, no program does",
        "AG618",
        freeze_it,
        touches=THIRD,
        heals=thaw_it,
    ),
    Scenario(
        "C-07",
        "peer-behind-a-wall",
        "a node's firewall lets mDNS through and nothing else",
        "AG604",
        drop_everything,
        touches=THIRD,
    ),
    Scenario(
        "A-10",
        "peer-with-another-address",
        "a node's address changes unheard, Avahi gives the old one",
        "AG609",
        give_another_address,
        touches=THIRD,
    ),
    Scenario(
        "A-10",
        "peer-lost-its-address",
        "a node loses its IPv4 address, Avahi still gives it",
        "AG609",
        lose_ipv4,
        touches=THIRD,
    ),
    Scenario(
        "A-11",
        "peer-in-another-subnet",
        "a node has an address of another subnet",
        "AG605",
        move_to_another_subnet,
        touches=THIRD,
    ),
    Scenario(
        "A-21",
        "peer-with-too-much-to-tell",
        "a node's TXT record does not fit into a packet",
        "AG602",
        add_to_txt(*(f"k{n}={'x' * 200}" for n in range(8))),
        touches=THIRD,
    ),
    Scenario(
        "A-25",
        "peer-that-publishes-no-address",
        "a node's avahi-daemon.conf says publish-addresses=no",
        "AG602",
        keep_its_address_to_itself,
        touches=THIRD,
    ),
    Scenario(
        "A-28",
        "peer-without-ipv4",
        "a node has no address but IPv6 link-local",
        "AG608",
        lose_ipv4_for_good,
        touches=(0, 2),
    ),
    Scenario(
        "A-28",
        "no-ipv4-of-its-own",
        "this machine has no address but IPv6 link-local",
        "AG201",
        lose_ipv4,
        on=2,
        touches=THIRD,
    ),
    Scenario(
        "A-11",
        "peer-with-a-neighbours-address",
        "two nodes have one IPv4 address",
        "AG616",
        give_it_a_neighbours_address,
        touches=THIRD,
    ),
    Scenario(
        "C-14",
        "peer-with-another-torch",
        "a node has another torch",
        "AG607",
        tell("torch", "2.9.1"),
        touches=THIRD,
    ),
    Scenario(
        "C-14",
        "peer-with-another-python",
        "a node has the same torch under another Python",
        "AG612",
        tell("python", "3.9.2"),
        touches=THIRD,
    ),
)
