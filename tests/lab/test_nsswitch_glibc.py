"""This machine's own glibc judges our parser of nsswitch.conf, and resolves peers by repaired lines."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

import pytest

from avahi_gpu.files.nsswitch import decode, encode, parse, repair
from avahi_gpu.files.nsswitch_grammar import Line, Nsswitch
from tests.lab.cluster import Cluster, cluster

NSSWITCH = "/etc/nsswitch.conf"
PROBE = "probe.example"  # in /etc/hosts and nowhere else
FIXED_SEED = 2033  # the generated lines are the same on every run
GENERATED = 150

# in the host: puts each file in place and says what glibc makes of it, [users there, name found]
ASK = f"""
import json, subprocess, sys
def there(*argv):
    return subprocess.run(["getent", *argv], capture_output=True, timeout=30).returncode == 0
answers = []
for content in json.load(sys.stdin):
    with open("{NSSWITCH}", "wb") as file:
        file.write(content.encode("utf-8", "surrogateescape"))
    answers.append([there("passwd", "root"), there("ahostsv4", "{PROBE}")])
json.dump(answers, sys.stdout)
"""

HAND_WRITTEN = [
    "hosts: files\n",
    "hosts:files\n",
    "hosts :: : files\n",
    "hosts files\n",
    "\vhosts:\ffiles\r\n",
    "hosts\n",
    "hosts:\n",
    "hosts",
    "hosts: absent\nhosts: files\n",
    "hosts: files\nhosts: absent\n",
    "hosts: absent\nhosts: files",
    "hosts: absent\nHosts: files\n",
    "\ufeffhosts: absent\n",
    "hosts:\u00a0files\n",
    "hosts: absent # files\n",
    "hosts: absent\0 files\n",
    "hosts: files\0 [X]\n",
    "hosts: absent [NOTFOUND=return] [UNAVAIL=return] files\n",
    "hosts: [UNAVAIL=return] files\n",
    "hosts: files []\n",
    "hosts: files [NOT FOUND=return]\n",
    "hosts: files # see [1]\n",
    "hosts: files [X]\nhosts: files\n",
    "hosts: files\nrpc: files [X]\n",
    "hosts: files\nrpc: files [X]",
    "hosts: files\ninitgroups: [SUCCESS=continue] files\n",
    "hosts: files\npasswd_compat: files [X]\n",
    "hosts: files\nsudoers: files [X]\n",
    "hosts: files\nnetmasks: files [X]\n",
    "hosts: files\n#rpc: files [X]\n",
    "rpc: files\r\nhosts: absent [!UNAVAIL=return] files\r\n",
]


def generate(number: int) -> list[str]:
    """Return hosts lines of ``files``, a module that is not there, and actions, some of them malformed."""
    dice = random.Random(FIXED_SEED)
    statuses = [
        "NOTFOUND",
        "UNAVAIL",
        "TRYAGAIN",
        "unavail",
        "!NOTFOUND",
        "!UNAVAIL",
        "NOT FOUND",
        "! UNAVAIL",
    ]
    equals = ["=", " = ", "\t=", "", "=="]
    actions = ["return", "continue", "RETURN", "stop", ""]
    lines = []
    for _ in range(number):
        words = []
        for _ in range(dice.randint(1, 4)):
            words.append(dice.choice(["files", "absent", "absent", "#", ""]))
            if dice.random() < 0.6:
                criteria = " ".join(
                    dice.choices(statuses, [9, 9, 3, 3, 3, 3, 1, 1])[0]
                    + dice.choices(equals, [20, 5, 5, 1, 1])[0]
                    + dice.choices(actions, [12, 12, 5, 1, 1])[0]
                    for _ in range(dice.randint(1, 2))
                )
                words.append(f"[{criteria}" + ("]" if dice.random() < 0.97 else ""))
            words.append(dice.choice([" ", "\t", ""]))
        lines.append("hosts: " + "".join(words) + "\n")
    return lines


def predict(parsed: Nsswitch) -> list[bool]:
    """Return what glibc will answer by our reading of a file: users there, the probe found."""
    if parsed.defects:
        return [False, False]
    return [True, finds(parsed.hosts) if parsed.hosts else True]


def finds(line: Line) -> bool:
    """Walk the services: ``files`` knows the name, no other module is there. The last one asked decides."""
    found = False
    for service in line.services:
        found = service.name == "files"
        if (service.actions.success if found else service.actions.unavail) == "return":
            break
    return found


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Two hosts, with avahi-daemon running."""
    with cluster(2) as lab:
        yield lab


def ask(lab: Cluster, contents: Sequence[str]) -> list[list[bool]]:
    host = lab.hosts[0]
    hosts_before = host.read("/etc/hosts")
    host.write("/etc/hosts", f"{hosts_before}\n10.9.8.7 {PROBE}\n")
    before = host.read(NSSWITCH)
    try:
        done = host.run(["python3", "-c", ASK], input=json.dumps(contents), check=True, timeout=100)
    finally:
        host.write(NSSWITCH, before)
        host.write("/etc/hosts", hosts_before)
    answers: list[list[bool]] = json.loads(done.stdout)
    return answers


def test_glibc_reads_the_file_as_we_do(lab: Cluster) -> None:
    contents = [f"passwd: files\n{text}" for text in [*HAND_WRITTEN, *generate(GENERATED)]]

    answers = ask(lab, contents)

    predicted = [predict(parse(content)) for content in contents]
    wrong = [c for c, saw, said in zip(contents, answers, predicted, strict=True) if saw != said]
    assert wrong == []
    # the generated files are worth something only if all kinds are among them
    assert {tuple(answer) for answer in answers} == {(True, True), (True, False), (False, False)}


REPAIRABLE = [
    "hosts: files dns\n",
    "hosts:files myhostname dns mdns4_minimal\n",
    "hosts: files [NOTFOUND=return] dns\n",
    "hosts: files mDNS4_minimal [NOTFOUND=return] dns\n",
    "hosts: files dns # mdns4 was here\n",
    "hosts:\n",
    "hosts: files mdns4_minimal [NOTFOUND=return] dns",
    "hosts: files [NOT FOUND=return] mdns4_minimal dns\n",
    "networks: files\r\n",
    "\ufeffhosts: files mdns4_minimal [NOTFOUND=return] dns\n",
]


@pytest.mark.parametrize("text", REPAIRABLE)
def test_peers_resolve_by_a_repaired_line(lab: Cluster, text: str) -> None:
    host, peer = lab.hosts
    before = host.read(NSSWITCH)
    result = repair(encode(text))
    assert result.wanted
    assert result.content is not None
    try:
        host.write(NSSWITCH, result.content)
        found = host.run(["getent", "ahostsv4", f"{peer.name}.local"], timeout=20)
        localhost = host.run(["getent", "hosts", "localhost"], timeout=20)
    finally:
        host.write(NSSWITCH, before)

    assert peer.address in found.stdout, decode(result.content)
    assert localhost.returncode == 0
