"""Which chains keep the LAN out, told apart from rules about single machines."""

from __future__ import annotations

from avahi_gpu.files import firewall_iptables
from avahi_gpu.files.firewall import Table, address_interval
from avahi_gpu.files.firewall_walls import (
    CONTROL_PORTS,
    STORE_PORTS,
    find_walls,
    job_ports,
    needs_of,
    settle,
    without_ours,
)
from avahi_gpu.model import Address, Interface, Wall
from avahi_gpu.rendezvous.mesh import WORKER_PORTS
from avahi_gpu.rendezvous.terms import CONTROL_PORTS as JOB_CONTROL_PORTS
from avahi_gpu.survey.limits import DOCTOR_PORTS

HIGH = (32768, 60999)
PORTS = job_ports(HIGH, 29500)
CARD = Interface(
    "eth0",
    2,
    "wired",
    up=True,
    running=True,
    multicast=True,
    addresses=(Address("10.77.0.1", 24, 4, "global"), Address("fe80::1", 64, 6, "link")),
)
OURS = '-A INPUT -s 10.77.0.0/24 -i eth0 -p {} -m comment --comment "avahi-gpu: x" -j ACCEPT'
OPEN = "\n".join(OURS.format(p) for p in ("udp", "tcp"))


def saved(*rules: str, policy: str = "DROP") -> list[Table]:
    lines = "\n".join(rules)
    return firewall_iptables.parse(
        f"*filter\n:INPUT {policy} [0:0]\n:OUTPUT ACCEPT [0:0]\n{lines}\nCOMMIT\n", 4
    )


def walls(*rules: str, policy: str = "DROP") -> dict[str, Wall]:
    found, _ = find_walls(saved(*rules, policy=policy), [CARD], PORTS)
    assert len({w.what for w in found}) == len(found), found
    return {w.what: w for w in found}


def test_the_ports_of_jobs_are_those_that_are_taken() -> None:
    assert (min(JOB_CONTROL_PORTS), max(DOCTOR_PORTS)) == CONTROL_PORTS
    assert (min(WORKER_PORTS), max(WORKER_PORTS)) == STORE_PORTS
    assert job_ports(HIGH, 29500) == (CONTROL_PORTS, STORE_PORTS, HIGH)
    assert job_ports((20000, 60999), 1234) == ((1234, 1234), (20000, 60999))


def test_a_policy_is_a_wall_that_a_rule_at_the_end_opens() -> None:
    found = walls("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT")

    assert set(found) == {"mdns", "jobs"}
    jobs = found["jobs"]
    assert (jobs.network, jobs.interface, jobs.way, jobs.chain) == ("10.77.0.0/24", "eth0", "in", "INPUT")
    assert jobs.by_policy and jobs.shut and not jobs.others and not jobs.public


def test_a_rule_at_the_end_that_drops_is_no_policy() -> None:
    found = walls("-A INPUT -j REJECT --reject-with icmp-port-unreachable", policy="ACCEPT")

    assert not found["jobs"].by_policy and not found["jobs"].others


def test_some_of_the_ports_being_shut_is_a_wall() -> None:
    few = walls(
        "-A INPUT -p udp -m udp --dport 5353 -j ACCEPT",
        "-A INPUT -p tcp -m tcp --dport 29400:50000 -j ACCEPT",
    )
    none = walls(
        "-A INPUT -p udp -m udp --dport 5353 -j ACCEPT",
        "-A INPUT -p tcp -m tcp --dport 1024:65535 -j ACCEPT",
    )

    assert set(few) == {"jobs"} and none == {}


def test_single_machines_that_are_let_in_leave_the_others_outside() -> None:
    assert set(walls("-A INPUT -s 10.77.0.5/32 -j ACCEPT")) == {"mdns", "jobs"}


def test_single_machines_that_are_kept_out_are_meant_to_be() -> None:
    assert walls("-A INPUT -s 10.77.0.66/32 -j DROP", policy="ACCEPT") == {}


def test_who_is_kept_out_before_all_are_is_told() -> None:
    found = walls("-A INPUT -s 10.77.0.66/32 -j DROP", "-A INPUT -j DROP", policy="ACCEPT")["jobs"]

    assert "10.77.0.66" in found.others and not found.by_policy
    assert walls("-A INPUT -s 10.77.0.66/32 -j DROP")["jobs"].by_policy


def test_what_a_rule_of_ours_opens_is_a_wall_that_is_not_shut() -> None:
    found = walls("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT", OPEN)

    assert {w.shut for w in found.values()} == {False} and set(found) == {"mdns", "jobs"}


def test_rules_of_ours_are_known_by_their_comment_alone() -> None:
    other = '-A INPUT -m comment --comment "not avahi-gpu: x" -j ACCEPT'

    (table,) = without_ours(saved(OPEN, other))

    assert [rule.comment for rule in table.chains["INPUT"].rules] == ["not avahi-gpu: x"]


def test_a_rule_that_nobody_understands_is_told_and_is_no_wall() -> None:
    strange = ("-A INPUT -m bpf --bytecode x -j DROP",)
    found, unclear = find_walls(saved(*strange, policy="ACCEPT"), [CARD], PORTS)

    assert found == [] and any("bytecode" in one for one in unclear)


def test_what_leaves_is_asked_about_too() -> None:
    text = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT DROP [0:0]\nCOMMIT\n"
    found, _ = find_walls(firewall_iptables.parse(text, 4), [CARD], PORTS)

    assert {(w.what, w.way) for w in found} == {("mdns", "out"), ("jobs", "out")}


def test_each_network_of_a_card_has_its_own_walls_and_a_public_one_is_called_so() -> None:
    card = Interface(
        "eth0",
        2,
        "wired",
        up=True,
        running=True,
        multicast=True,
        addresses=(
            Address("10.77.0.1", 24, 4, "global"),
            Address("fd77::1", 64, 6, "global"),
            Address("2001:db8::1", 64, 6, "global"),
            Address("203.0.113.9", 32, 4, "global"),  # alone in its network
            Address("fe80::1", 64, 6, "link"),
        ),
    )
    text = "*filter\n:INPUT DROP [0:0]\nCOMMIT\n"
    tables = [*firewall_iptables.parse(text, 4), *firewall_iptables.parse(text, 6)]

    found, _ = find_walls(tables, [card], PORTS)

    assert {(w.what, w.network, w.public) for w in found} == {
        ("mdns", "10.77.0.0/24", False),
        ("jobs", "10.77.0.0/24", False),
        ("jobs", "fd77::/64", False),
        ("jobs", "2001:db8::/64", True),
        ("mdns", "fe80::/10", False),
    }


def test_a_public_card_is_not_asked_about_the_link_either() -> None:
    addresses = (Address("203.0.113.9", 24, 4, "global"), Address("fe80::1", 64, 6, "link"))
    card = Interface("eth0", 2, "wired", up=True, running=True, multicast=True, addresses=addresses)

    assert {need.network for need in needs_of(card, PORTS)} == {"203.0.113.0/24"}


def test_a_blocked_neighbour_says_nothing_of_the_others() -> None:
    tables = saved("-A INPUT -s 10.77.0.66/32 -j DROP", policy="ACCEPT")
    asked = next(n for n in needs_of(CARD, PORTS) if n.what == "mdns").packets[0]

    fate = settle(tables, asked)

    assert fate is not None and fate.outcome == "pass"
    assert settle(tables, asked, [address_interval("10.77.0.66")]) is None


def test_thousands_of_rules_end_in_an_open_answer_and_not_in_an_hour() -> None:
    rules = [
        f"-A INPUT -s 10.77.{n // 250}.{n % 250}/32 -p tcp --dport {1024 + n} -j ACCEPT" for n in range(5000)
    ]
    wide = Interface(
        "eth0", 2, "wired", up=True, running=True, multicast=True,
        addresses=(Address("10.77.0.1", 16, 4, "global"),),
    )  # fmt: skip

    found, _ = find_walls(saved(*rules), [wide], PORTS)

    assert {w.what for w in found} == {"mdns", "jobs"}
