"""What a shell is offered for the words of a line, and what never reaches it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.cli.complete import answer
from avahi_gpu.cli.wishes import (
    COMMANDS,
    FILES,
    FINDINGS,
    FOLDERS,
    NAME,
    NODE_LIST,
    NODES,
    SAFE,
    Wish,
    choose,
    join_parted,
    read_wish,
)
from avahi_gpu.cli.words import SUMMARIES, TABLE

AREAS = ("names", "network", "host", "gpu", "service", "cluster")


@pytest.mark.parametrize(
    ("line", "start", "offers", "prefix"),
    [
        ("", "", (COMMANDS,), ""),
        ("do", "do", (COMMANDS,), ""),
        ("--version --python /o", "/o", (FILES,), ""),
        ("--version --python /opt/python do", "do", (COMMANDS,), ""),
        ("--python=/o", "/o", (FILES,), "--python="),
        ("help d", "d", (COMMANDS,), ""),
        ("help doctor ", "", (), ""),
        ("doctor gpu", "gpu", (NODES,), ""),
        ("doctor --fix gpu-node-1 ", "", (NODES,), ""),  # many
        ("doctor --only A", "A", (FINDINGS, *AREAS), ""),
        ("doctor --only=A", "A", (FINDINGS, *AREAS), "--only="),
        ("doctor --only AG104 ", "", (NODES,), ""),
        ("doctor --fail-on ", "", ("warn", "error"), ""),
        ("doctor --peers gpu-node-1,g", "g", (NODE_LIST,), "gpu-node-1,"),
        ("doctor --peers=a,b,", "", (NODE_LIST,), "--peers=a,b,"),
        ("doctor --nonsense=x", "x", (), ""),
        ("doctor --python /usr", "/usr", (FILES,), ""),
        ("explain mdns", "mdns", (FINDINGS,), ""),
        ("setup --root=/srv", "/srv", (FOLDERS,), "--root="),
        ("key ", "", ("new", "check"), ""),
        ("launch --nnodes 2 tr", "tr", (FILES,), ""),
        ("launch --nnodes 2 train.py --e", "--e", (FILES,), ""),  # the script's own
        ("launch -- --max-re", "--max-re", (FILES,), ""),  # torchrun's
        ("nonsense ", "", (), ""),
        ('doctor "gpu', "gpu", (NODES,), ""),
    ],
)
def test_what_is_looked_for_follows_from_the_words(
    line: str, start: str, offers: tuple[str, ...], prefix: str
) -> None:
    wish = read_wish(line.split(" "), TABLE)

    assert (wish.start if prefix or "=" not in wish.start else wish.start.partition("=")[2]) == start
    assert (wish.offers, wish.prefix) == (offers, prefix)


def test_options_are_offered_until_they_are_given() -> None:
    def options(line: str) -> set[str]:
        return {name for name, _ in read_wish(line.split(" "), TABLE).options}

    assert {"--fix", "--only", "--json"} <= options("doctor --")
    assert "--fix" not in options("doctor --fix --") and "--only" in options("doctor --only AG104 --")
    assert "-y" in options("doctor -") and "-y" not in options("doctor --")
    assert {"--version", "--help"} <= options("--")
    assert options("explain AG104 ") == {"--help"}
    assert options("launch train.py --") == set()


@pytest.mark.parametrize(
    ("words", "joined", "parted"),
    [
        (["doctor", "--only", "=", "AG"], ["doctor", "--only=AG"], True),
        (["doctor", "--only", "="], ["doctor", "--only="], True),
        (["doctor", "--only", "=", "AG1", "x"], ["doctor", "--only=AG1", "x"], False),
        (["doctor", "--only=AG"], ["doctor", "--only=AG"], False),
        (["doctor", "="], ["doctor", "="], False),
    ],
)
def test_bash_parts_words_at_the_sign(words: list[str], joined: list[str], parted: bool) -> None:
    assert join_parted(words) == (joined, parted)


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("gpu-node-2", True),
        ("gpu-node-2.local", True),
        ("7", True),
        ("", False),
        ("-x", False),
        ("x-", False),
        ("a b", False),
        ("a\n", False),
        ("$(id)", False),
        ("a_b", False),
        ("é", False),
        ("a" * 64, False),
        ("x..y", False),
    ],
)
def test_only_a_host_name_is_the_name_of_a_node(name: str, fit: bool) -> None:
    assert (NAME.fullmatch(name) is not None) == fit


WORD = st.one_of(
    st.text(max_size=12),
    st.sampled_from([*SUMMARIES, "help", "--", "=", "--only", "--only=", "--peers=a,", "-", "'", ""]),
)
LINES = st.lists(WORD, max_size=6)


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20))), st.text(max_size=5), st.text(max_size=5)
)
def test_nothing_but_plain_letters_reaches_a_shell(
    found: list[tuple[str, str]], start: str, prefix: str
) -> None:
    for word, says in choose(Wish(start, prefix=prefix), found):
        assert SAFE.fullmatch(word.removeprefix(prefix)) and word.startswith(prefix + start)
        assert not re.search(r"[\s\"'$`\\;&|<>(){}*?!~#^\[\]]", word)
        assert "\n" not in says and "\t" not in says


@given(LINES)
def test_any_line_has_an_answer(words: list[str]) -> None:
    wish = read_wish(words, TABLE)

    assert isinstance(choose(wish, [("gpu-node-1", ""), ("AG104", "x")]), list)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_the_words_in_its_own_form(shell: str) -> None:
    told = answer(shell, ["doctor", "--fai"]).splitlines()

    says = "What makes the exit code 1."
    wanted = {"bash": "--fail-on", "zsh": f"--fail-on:{says}", "fish": f"--fail-on\t{says}"}
    assert told == ["words", wanted[shell]]


def test_findings_are_those_that_have_a_page() -> None:
    ids = answer("bash", ["explain", "AG1"]).splitlines()
    slugs = answer("bash", ["explain", "mdns-b"]).splitlines()

    assert "AG104" in ids and all(re.fullmatch("AG1[0-9]{2}|words", word) for word in ids)
    assert slugs == ["words", "mdns-before-dns"]
