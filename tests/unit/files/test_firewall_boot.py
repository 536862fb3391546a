"""The files of boot: whether they make a chain, and how ours gets into them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files import firewall_iptables
from avahi_gpu.files.firewall_boot import (
    INCLUDED,
    include_ours,
    includes_ours,
    makes_chain,
    save_rule,
    write_nft,
)

INPUT = ("inet", "filter", "input")
DEBIAN = """\
#!/usr/sbin/nft -f

flush ruleset

table inet filter {
\tchain input {
\t\ttype filter hook input priority filter; policy drop;
\t\tct state { established, related } accept
\t}
\tchain forward {
\t\ttype filter hook forward priority filter;
\t}
}
"""
RULE = ("-s", "10.77.0.0/24", "-i", "eth0", "-m", "comment", "--comment", "avahi-gpu: x", "-j", "ACCEPT")
LINE = '-A INPUT -s 10.77.0.0/24 -i eth0 -m comment --comment "avahi-gpu: x" -j ACCEPT'
SAVED = """\
*nat
:PREROUTING ACCEPT [0:0]
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -j REJECT
-A FORWARD -j DROP
COMMIT
"""


@pytest.mark.parametrize(
    ("text", "place", "makes"),
    [
        (DEBIAN, INPUT, True),
        (DEBIAN, ("inet", "filter", "output"), False),
        (DEBIAN, ("ip", "filter", "input"), False),
        ("table filter {\n chain input { }\n}\n", ("ip", "filter", "input"), True),
        ("table inet a { }\ntable inet filter { chain input { } }\n", INPUT, True),
        ("table inet filter { }\ntable inet b { chain input { } }\n", INPUT, False),
        ("add table inet filter\nadd chain inet filter input { policy drop; }\n", INPUT, True),
        ("# table inet filter { chain input { } }\n", INPUT, False),
        ('table inet filter { # chain input {\n chain x { log prefix "chain input {" } }\n', INPUT, False),
        ('include "/etc/nftables.d/*.nft"\n', INPUT, False),
        ("", INPUT, False),
    ],
)
def test_a_file_makes_a_chain_where_it_says_so(text: str, place: tuple[str, str, str], makes: bool) -> None:
    assert makes_chain(text, place) is makes


def test_ours_is_included_once_at_the_end_and_its_absence_is_no_error() -> None:
    text = include_ours(DEBIAN)

    assert text.startswith(DEBIAN) and text.endswith(f'include "{INCLUDED}"\n')
    assert includes_ours(text) and not includes_ours(DEBIAN)
    assert "*" in INCLUDED
    assert not includes_ours(f'# include "{INCLUDED}"\n')
    assert include_ours("table inet x {}").startswith("table inet x {}\n\n# ")


@given(st.text(max_size=300), st.sampled_from([INPUT, ("ip", "a-b", "c.d")]))
def test_any_text_is_read_without_an_error(text: str, place: tuple[str, str, str]) -> None:
    makes_chain(text, place)
    assert includes_ours(include_ours(text))
    added = save_rule(text, "filter", "INPUT", RULE, at_end=True)
    assert added is None or LINE in added


@pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not here")
def test_nft_loads_ours_whether_the_chain_is_there_or_has_been_renamed() -> None:
    rules = [(INPUT, True, ("tcp", "dport", "{", "1-2,", "5", "}", "accept", "comment", '"avahi-gpu: x"'))]
    for before in (DEBIAN, DEBIAN.replace("inet filter", "inet mine"), "flush ruleset\n"):
        text = before + write_nft(rules)
        argv = ["unshare", "--net", "nft", "--check", "--file", "-"]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=30, check=False)
        if "unshare" in done.stderr:
            pytest.skip("not root")
        assert done.returncode == 0, done.stderr


def test_a_rule_is_saved_where_it_counts() -> None:
    last = save_rule(SAVED, "filter", "INPUT", RULE, at_end=True)
    first = save_rule(SAVED, "filter", "INPUT", RULE, at_end=False)

    assert last == SAVED.replace("-A INPUT -j REJECT\n", f"-A INPUT -j REJECT\n{LINE}\n")
    assert first == SAVED.replace("-A INPUT -i lo", f"{LINE}\n-A INPUT -i lo")
    assert save_rule(last, "filter", "INPUT", RULE, at_end=True) == last
    rules = next(t for t in firewall_iptables.parse(first, 4) if t.name == "filter").chains["INPUT"].rules
    assert [rule.comment for rule in rules] == ["avahi-gpu: x", "", ""]


def test_a_rule_of_an_empty_chain_comes_behind_all_declarations() -> None:
    text = "*filter\n:INPUT DROP [0:0]\n:X - [0:0]\nCOMMIT\n"

    assert save_rule(text, "filter", "INPUT", RULE, at_end=True) == text.replace("COMMIT", f"{LINE}\nCOMMIT")


@pytest.mark.parametrize(
    "text", ["", "*nat\n:INPUT ACCEPT [0:0]\nCOMMIT\n", "*filter\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"]
)
def test_where_the_chain_is_not_nothing_is_saved(text: str) -> None:
    assert save_rule(text, "filter", "INPUT", RULE, at_end=True) is None
