"""setup --firewall as a plan: the exact commands and files, by the tool that keeps the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from avahi_gpu.checks.registry import run_checks, setup_findings
from avahi_gpu.model import (
    HANDLE,
    NFT_FILE,
    BootRules,
    Change,
    Facts,
    FileState,
    Finding,
    Firewall,
    Wall,
    WallKind,
    ZoneRule,
)

NET = "10.77.0.0/24"
PORTS = ((29400, 29429), (29500, 29999), (32768, 60999))
CONF = b"flush ruleset\ntable inet filter {\n\tchain input {\n\t}\n}\n"
RICH = [
    f'rule family="ipv4" source address="{NET}" port port="{port}" protocol="{protocol}" accept'
    for port, protocol in (
        ("5353", "udp"),
        ("29400-29429", "tcp"),
        ("29500-29999", "tcp"),
        ("32768-60999", "tcp"),
    )
]


def wall(what: WallKind, **changed: Any) -> Wall:
    words = {"because": "inet filter input: policy drop", "tool": "nft", "table": ("inet", "filter")}
    given: dict[str, Any] = {**words, "chain": "input", "by_policy": True, **changed}
    return Wall(
        what, given.pop("way", "in"), "eth0", given.pop("family", 4), given.pop("network", NET), **given
    )


def shut(facts: Facts, *walls: Wall, wanted: bool = True, **changed: Any) -> Facts:
    """The machine with these walls, whose firewall the user wants opened."""
    firewall = Firewall((), walls=walls, ports=PORTS, **changed)
    return replace(facts, opens_firewall=wanted, network=replace(facts.network, firewall=firewall))


FIREWALLD = [wall(what, table=("inet", "firewalld"), chain="filter_INPUT") for what in ("mdns", "jobs")]
UFW: dict[str, Any] = {"tool": "iptables", "table": ("ip", "filter"), "chain": "INPUT"}


def judged(facts: Facts) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(facts)}


def changes(facts: Facts, id: str = "AG215") -> tuple[Change, ...]:
    fix = judged(facts)[id].fix
    return fix.changes if fix is not None else ()


def boot(content: bytes | None = CONF, **changed: Any) -> BootRules:
    conf = FileState("/etc/nftables.conf", content, mode=0o755, uid=0, gid=0, **changed)
    return BootRules("nft", conf, FileState(NFT_FILE, None))


def test_nft_gets_one_rule_for_mdns_and_one_for_jobs_at_the_end_of_the_very_chain(healthy: Facts) -> None:
    mdns, jobs = changes(shut(healthy, wall("mdns"), wall("jobs")))

    head = ("nft", "add", "rule", "inet", "filter", "input", "iifname", '"eth0"', "ip", "saddr", NET)
    assert mdns.argv == (
        *head,
        *("udp", "dport", "5353", "accept", "comment", f'"avahi-gpu: mDNS from {NET} on eth0"'),
    )
    assert jobs.argv == (
        *head,
        *("tcp", "dport", "{", "29400-29429,", "29500-29999,", "32768-60999", "}"),
        *("accept", "comment", f'"avahi-gpu: connections of jobs from {NET} on eth0"'),
    )
    assert mdns.undo == ("nft", "delete", "rule", "inet", "filter", "input", "handle", HANDLE)
    assert mdns.question == jobs.question and NET in jobs.question and "29400-29429" in jobs.question


def test_a_rule_that_drops_all_has_ours_before_it(healthy: Facts) -> None:
    (one,) = changes(shut(healthy, wall("jobs", by_policy=False)))

    assert one.argv[1] == "insert"


def test_what_drops_single_machines_before_is_not_made_void(healthy: Facts) -> None:
    found = judged(shut(healthy, wall("jobs", by_policy=False, others="ip saddr 10.77.0.66 drop")))["AG215"]

    assert (found.verdict, found.fix) == ("error", None) and "10.77.0.66" in found.hint


def test_ipv6_and_what_leaves_have_words_of_their_own(healthy: Facts) -> None:
    link = wall("mdns", family=6, network="fe80::/10")
    out = wall("mdns", family=6, network="fe80::/10", way="out", chain="output")
    jobs = wall("jobs", way="out", chain="output")

    first, second, third = (c.argv[6:12] for c in changes(shut(healthy, link, out, jobs)))

    assert first == ("iifname", '"eth0"', "ip6", "saddr", "fe80::/10", "udp")
    assert second == ("oifname", '"eth0"', "ip6", "daddr", "ff02::fb", "udp")
    assert third == ("oifname", '"eth0"', "ip", "daddr", NET, "tcp")


def test_iptables_gets_a_rule_that_undo_and_verify_name_in_full(healthy: Facts) -> None:
    walls = [wall(w, tool="iptables", table=("ip", "filter"), chain="INPUT") for w in ("mdns", "jobs")]
    mdns, jobs = changes(shut(healthy, *walls))

    words = (
        *("INPUT", "-s", NET, "-i", "eth0", "-p", "tcp", "-m", "multiport"),
        *("--dports", "29400:29429,29500:29999,32768:60999"),
        *("-m", "comment", "--comment", f"avahi-gpu: connections of jobs from {NET} on eth0", "-j", "ACCEPT"),
    )
    head = ("iptables", "--wait", "--table", "filter")
    assert jobs.argv == (*head, "--append", *words)
    assert jobs.undo == (*head, "--delete", *words)
    assert jobs.verify == (*head, "--check", *words)
    assert mdns.argv[10:16] == ("-p", "udp", "-m", "udp", "--dport", "5353")


def test_ufw_gets_rules_for_the_lans_card_that_it_keeps_itself(healthy: Facts) -> None:
    mdns, jobs = changes(shut(healthy, wall("mdns", **UFW), wall("jobs", **UFW), keeper="ufw"))

    words = ("allow", "in", "on", "eth0", "proto", "tcp", "from", NET, "to", "any", "port")
    ports = "29400:29429,29500:29999,32768:60999"
    assert jobs.argv == ("ufw", *words, ports, "comment", "avahi-gpu")
    assert jobs.undo == ("ufw", "delete", *words, ports)
    assert mdns.argv[5:] == ("proto", "udp", "from", NET, "to", "any", "port", "5353", "comment", "avahi-gpu")
    assert jobs.rewrites == ("/etc/ufw/user.rules", "/etc/ufw/user6.rules") and not jobs.until_boot


def test_ufw_gets_ours_before_a_rule_of_the_users_that_drops_all(healthy: Facts) -> None:
    because = "iptables filter ufw-user-input: -j DROP"
    (one,) = changes(shut(healthy, wall("jobs", because=because, **UFW), keeper="ufw"))
    others = shut(healthy, wall("jobs", because=because, others="x -s 10.77.0.66", **UFW), keeper="ufw")

    assert one.argv[:3] == ("ufw", "prepend", "allow") and one.undo[:3] == ("ufw", "delete", "allow")
    assert changes(others) == ()


def test_firewalld_is_told_for_good_and_now(healthy: Facts) -> None:
    facts = shut(healthy, *FIREWALLD, keeper="firewalld", zones=(("eth0", "public"),))
    made = changes(facts)

    assert [c.argv for c in made] == [
        ("firewall-cmd", *when, "--zone=public", f"--add-rich-rule={rule}")
        for rule in RICH
        for when in (("--permanent",), ())
    ]
    assert [c.undo[-1] for c in made[:2]] == [f"--remove-rich-rule={RICH[0]}"] * 2
    # after a boot what is in force comes from the files, and undo has to take that back as well
    assert not any(c.until_boot for c in made) and made[1].verify[-1] == f"--query-rich-rule={RICH[0]}"
    assert made[0].rewrites and not made[1].rewrites


def test_what_firewalld_has_already_it_is_not_told_again(healthy: Facts) -> None:
    known = tuple(ZoneRule("public", lasting=True, rule=rule) for rule in RICH)
    facts = shut(healthy, *FIREWALLD, keeper="firewalld", zones=(("eth0", "public"),), zone_rules=known)

    assert ["--permanent" in c.argv for c in changes(facts)] == [False] * 4


def test_firewalld_cannot_open_what_leaves(healthy: Facts) -> None:
    out = wall("jobs", way="out", table=("inet", "firewalld"))
    facts = shut(healthy, out, keeper="firewalld", zones=(("eth0", "public"),))

    assert changes(facts) == () and judged(facts)["AG215"].verdict == "error"


def test_without_the_users_wish_nothing_is_opened_and_it_is_told(healthy: Facts) -> None:
    facts = shut(healthy, wall("mdns"), wall("jobs"), wanted=False, boot=(boot(),))
    found = judged(facts)

    assert (found["AG215"].verdict, found["AG215"].fix) == ("info", None)
    assert "setup --firewall" in found["AG215"].hint
    assert [f for f in setup_findings(facts, {"network"}) if f.fix is not None] == []


def test_the_file_that_is_loaded_at_boot_gets_the_same_rules(healthy: Facts) -> None:
    facts = shut(healthy, wall("mdns"), wall("jobs", by_policy=False), boot=(boot(),))
    ours, conf = changes(facts, "AG216")

    lines = (ours.content or b"").decode().splitlines()
    assert [line for line in lines if " rule " in line] == [" ".join(c.argv[1:]) for c in changes(facts)]
    assert lines.count("add table inet filter") == lines.count("add chain inet filter input") == 1
    assert (ours.path, conf.path, conf.mode) == (NFT_FILE, "/etc/nftables.conf", 0o755)
    assert (conf.content or b"").startswith(CONF) and b'include "/etc/avahi-gpu/firewall*.nft"\n' in (
        conf.content or b""
    )
    assert ours.question == conf.question == changes(facts)[0].question


def test_a_second_run_changes_nothing(healthy: Facts) -> None:
    opened = [wall("mdns", shut=False), wall("jobs", shut=False)]
    ours, conf = changes(shut(healthy, *opened, boot=(boot(),)), "AG216")
    again = BootRules(
        "nft", replace(boot().file, content=conf.content), FileState(NFT_FILE, ours.content, mode=0o644)
    )
    facts = shut(healthy, *opened, boot=(again,))

    assert [f.verdict for f in setup_findings(facts, {"network"}) if f.id in ("AG215", "AG216")] == ["ok"] * 2


def test_rules_that_somebody_saved_with_ours_among_them_need_no_file(healthy: Facts) -> None:
    opened = wall("jobs", shut=False)
    (rule,) = changes(shut(healthy, replace(opened, shut=True)))
    saved = f"table inet filter {{\nchain input {{\n{' '.join(rule.argv[6:])}\n}}\n}}\n".encode()

    assert judged(shut(healthy, opened, boot=(boot(saved),)))["AG216"].verdict == "ok"


def test_a_chain_that_an_included_file_makes_is_opened_by_the_file_that_includes_it(healthy: Facts) -> None:
    main = replace(boot(b'include "/etc/nftables/main.nft"\n'), included=(CONF.decode(),))
    facts = shut(healthy, wall("jobs"), boot=(main,))

    assert [c.path for c in changes(facts, "AG216")] == [NFT_FILE, "/etc/nftables.conf"]


@pytest.mark.parametrize(
    "rules",
    [
        (),
        (boot(b"table inet other { chain input { } }\n"),),
        (boot(writable=False),),
        (boot(link_target="/nix/store/x/nftables.conf"),),
    ],
)
def test_where_the_file_is_not_known_it_is_opened_until_the_next_boot_and_that_is_said(
    rules: tuple[BootRules, ...], healthy: Facts
) -> None:
    facts = shut(healthy, wall("jobs"), boot=rules)
    found = judged(facts)["AG216"]

    assert changes(facts) != ()
    assert (found.verdict, found.fix) == ("warn", None) and "next boot" in found.says and found.hint


def test_the_files_of_iptables_get_the_rule_too(healthy: Facts) -> None:
    saved = FileState(
        "/etc/iptables/rules.v4", b"*filter\n:INPUT DROP [0:0]\nCOMMIT\n", mode=0o640, uid=0, gid=0
    )
    one = wall("jobs", tool="iptables-nft", table=("ip", "filter"), chain="INPUT")
    facts = shut(healthy, one, boot=(BootRules("ip6tables", saved), BootRules("iptables", saved)))
    (change,) = changes(facts, "AG216")

    assert change.path == "/etc/iptables/rules.v4" and change.mode == 0o640
    assert f"-A INPUT -s {NET} -i eth0 -p tcp -m multiport" in (change.content or b"").decode()


def test_a_public_network_alone_is_refused_with_the_lines_to_run_by_hand(healthy: Facts) -> None:
    facts = shut(healthy, wall("jobs", network="203.0.113.0/24"))
    found = judged(facts)

    assert found["AG217"].verdict == "error" and "203.0.113.0/24" in found["AG217"].says
    assert found["AG217"].fix is not None and found["AG217"].fix.changes == ()
    assert "saddr 203.0.113.0/24" in found["AG217"].fix.commands[0]
    assert changes(facts) == () and changes(facts, "AG216") == ()


def test_a_public_network_beside_a_private_one_stays_shut(healthy: Facts) -> None:
    facts = shut(healthy, wall("jobs"), wall("jobs", family=6, network="2001:db8::/64"))

    assert judged(facts)["AG217"].verdict == "info"
    assert [NET in c.argv for c in changes(facts)] == [True]


def test_a_card_of_a_strange_name_gets_no_rule(healthy: Facts) -> None:
    odd = replace(wall("jobs"), interface='e"0')

    assert changes(shut(healthy, odd)) == ()


def test_a_table_of_somebody_else_beside_ufw_is_opened_by_nft(healthy: Facts) -> None:
    facts = shut(healthy, wall("jobs", **UFW), wall("jobs"), keeper="ufw", boot=(boot(),))

    assert [c.argv[0] for c in changes(facts)] == ["ufw", "nft"]
    assert [c.path for c in changes(facts, "AG216")] == [NFT_FILE, "/etc/nftables.conf"]
