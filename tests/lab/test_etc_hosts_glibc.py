"""/etc/hosts is read as glibc reads it, and edited so that glibc then answers what was meant."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator

import pytest

from avahi_gpu.files.etc_hosts import find, parse
from avahi_gpu.files.etc_hosts_edit import add_entry, is_localhost, remove_names
from tests.lab.cluster import cluster
from tests.lab.host import Host

NAMES = ("localhost", "node", "NODE.local", "b", "c")
ADDRESSES = (
    "127.0.0.1", "127.0.1.1", "::1", "10.0.0.1", "10.0.0.2", "fd00::1", "fe80::1%lo",
    "10.0.0.300", "010.0.0.1", "10.1", "0x0a.0.0.1", "10.0.0.4,", "#10.0.0.5", "node", "",
)  # fmt: skip
BLANKS = (" ", "\t", " \t ", "\v", "\f", "\r", "\u00a0", "\x1c")
ENDS = ("\n", "\r\n", " \n", " # b c\n", "#b\n", "")
ASK = """
import json, socket, sys
answers = []
for content, names in json.load(sys.stdin):
    with open("/etc/hosts", "wb") as file:
        file.write(content.encode("latin-1"))
    told = {}
    for name in names:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            told[name] = sorted({e[4][0].removeprefix("::ffff:") for e in found})
        except socket.gaierror:
            told[name] = []
    answers.append(told)
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with cluster(1, avahi=False) as lab:
        lab[0].write("/etc/nsswitch.conf", "hosts: files\n")
        yield lab[0]


def ask(host: Host, files: list[bytes]) -> list[dict[str, list[str]]]:
    """Return what glibc answers for each name with each file in place."""
    orders = [(content.decode("latin-1"), NAMES) for content in files]
    done = host.run([sys.executable, "-c", ASK], input=json.dumps(orders), check=True, timeout=60)
    told: list[dict[str, list[str]]] = json.loads(done.stdout)
    return told


def any_file(chance: random.Random) -> bytes:
    lines = []
    for _ in range(chance.randint(0, 5)):
        words = [chance.choice(ADDRESSES), *chance.choices(NAMES, k=chance.randint(0, 3))]
        lead, end = chance.choice(("", " ")), chance.choice(ENDS)
        # glibc 2.36 garbles the last name of a file that ends without a newline, in an indented line
        lines.append(lead + chance.choice(BLANKS).join(words) + (end or "\n" * bool(lead)))
    return "".join(lines).encode()


def ours(content: bytes, name: str) -> list[str]:
    entries = find(parse(content.decode("utf-8", "surrogateescape")), name)
    return sorted({entry.address for entry in entries})


def files(seed: int, count: int = 300) -> list[bytes]:
    chance = random.Random(seed)
    return [any_file(chance) for _ in range(count)]


def test_glibc_finds_what_we_find(host: Host) -> None:
    tried = files(1)

    for content, told in zip(tried, ask(host, tried), strict=True):
        for name, addresses in told.items():
            if not is_localhost(name):  # for that one glibc has an answer of its own
                assert ours(content, name) == addresses, (content, name)


def test_an_address_that_is_mapped_into_ipv6_is_an_ipv4_address(host: Host) -> None:
    assert [told["node"] for told in ask(host, [b"::ffff:10.0.0.3 node\n"])] == [["10.0.0.3"]]


def test_after_an_edit_glibc_answers_what_was_meant(host: Host) -> None:
    before = files(2)
    lines = set(range(1, 20))
    after = [add_entry(remove_names(c, ["node", "node.local"], lines), "10.9.9.9", ["node"]) for c in before]

    old, new = ask(host, before), ask(host, after)

    for was, told, content in zip(old, new, after, strict=True):
        assert (told["node"], told["NODE.local"]) == (["10.9.9.9"], []), content
        assert all(was[name] == told[name] for name in ("b", "c")), content
