"""Real and made-up nsswitch.conf files under real glibc: our judgement is what it does, our repair works.

Each file is tried in two worlds, with a name server that has a forged address for everything. *bare*: no
module of another program is there. *full*: all of them are, and say NOTFOUND; ``resolve`` forges as well. A
line asks mDNS first exactly if a peer is found in both.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from avahi_gpu.files.nsswitch import decode, encode, judge, parse, repair
from tests.contract.corpus import load
from tests.contract.test_corpus_nsswitch import machine_of, wanted
from tests.lab.cluster import Cluster, cluster
from tests.lab.nsswitch_variants import make_variants

NSSWITCH = "/etc/nsswitch.conf"
CASES = load("nsswitch.jsonl")
SEED = int(os.environ.get("FUZZ_SEED", "2033"))
VARIANTS = int(os.environ.get("FUZZ_NSSWITCH", "150"))
SOURCE = Path(__file__).with_name("foreign_module.c")
NAME_SERVER = Path(__file__).with_name("name_server.py")
AT_ONCE = 200  # files for one run in the host: a second or two
FOREIGN = (
    *("docker", "libvirt", "libvirt_guest", "mymachines", "myhostname", "nis", "nisplus", "ldap", "sss"),
    *("wins", "winbind", "cache", "altfiles"),
)
FORGING = ("resolve",)

# in the host: puts each file in place and says what glibc makes of it: the peer's addresses, and who else is
# found. A process of its own asks each time, as modules once loaded stay.
ASK = f"""
import json, subprocess, sys
peer, folder, files = json.load(sys.stdin)
env = {{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": folder}}
def ask(*argv):
    done = subprocess.run(["getent", *argv], capture_output=True, text=True, timeout=30, env=env)
    return sorted({{line.split()[0] for line in done.stdout.splitlines() if line.strip()}})
answers = []
for content in files:
    with open("{NSSWITCH}", "wb") as file:
        file.write(content.encode("utf-8", "surrogateescape"))
    answers.append([ask("ahostsv4", peer), bool(ask("passwd", "root")), bool(ask("ahosts", "localhost"))])
json.dump(answers, sys.stdout)
"""


@dataclass(frozen=True)
class Answer:
    """What glibc made of one file."""

    finds: bool  # the peer, at its own address and no other
    users: bool
    localhost: bool


class Oracle:
    """Two hosts, and a folder of other programs' modules."""

    def __init__(self, lab: Cluster, modules: Path | None) -> None:
        self.lab = lab
        self.modules = modules

    def ask(self, texts: Sequence[str], *, full: bool = False) -> list[Answer]:
        """Put each file in place on the first host and look for the second."""
        host, peer = self.lab.hosts
        before = host.read(NSSWITCH)
        folder = str(self.modules) if full else ""
        answers: list[Answer] = []
        try:
            for start in range(0, len(texts), AT_ONCE):
                question = json.dumps([f"{peer.name}.local", folder, texts[start : start + AT_ONCE]])
                done = host.run([sys.executable, "-c", ASK], input=question, check=True, timeout=110)
                answers += [Answer(found == [peer.address], *m) for found, *m in json.loads(done.stdout)]
        finally:
            host.write(NSSWITCH, before)
        return answers

    def ask_everywhere(self, texts: Sequence[str]) -> list[Answer]:
        """Return what holds in both worlds."""
        bare = self.ask(texts)
        if self.modules is None:
            return bare
        full = self.ask(texts, full=True)
        return [
            Answer(a.finds and b.finds, a.users and b.users, a.localhost and b.localhost)
            for a, b in zip(bare, full, strict=True)
        ]


def compile_modules(folder: Path) -> Path | None:
    """Make the foreign modules; None without a compiler: the full world is left out then."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    for name in (*FOREIGN, *FORGING):
        forges = ["-DFORGES"] if name in FORGING else []
        target = folder / f"libnss_{name}.so.2"
        line = [compiler, "-shared", "-fPIC", f"-DNAME={name}", *forges, "-o", str(target), str(SOURCE)]
        subprocess.run(line, check=True, timeout=30)
    return folder


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    modules = compile_modules(tmp_path_factory.mktemp("modules"))
    with cluster(2) as lab:
        host = lab[0]
        server = host.follow([sys.executable, NAME_SERVER, "127.0.0.1", "hijack"])
        server.wait_for("ready")
        host.write("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        yield Oracle(lab, modules)


@pytest.fixture
def judges(oracle: Oracle) -> Oracle:
    """Whether a line asks mDNS first shows in both worlds only."""
    if oracle.modules is None:
        pytest.skip("there is no C compiler (cc) to make the modules of other programs with")
    return oracle


def text_of(case: dict[str, Any]) -> str:
    return str(case["text"])


@pytest.mark.skipif(not CASES, reason="the corpus is not at hand")
def test_the_judgement_of_every_case_is_what_glibc_does(judges: Oracle) -> None:
    texts = [text_of(case) for case in CASES]

    answers = judges.ask_everywhere(texts)

    wrong = [
        (case["id"], answer)
        for case, answer in zip(CASES, answers, strict=True)
        if answer.finds != judge(text_of(case)).asks_first
    ]
    assert wrong == []
    assert {answer.finds for answer in answers} == {True, False}


@pytest.mark.skipif(not CASES, reason="the corpus is not at hand")
def test_every_case_that_can_run_resolves_peers_by_its_expected_file(oracle: Oracle) -> None:
    """The expected file, and ours, which the contract test holds to be the same bytes."""
    cases = [case for case in CASES if wanted(case) is not None]
    files = [decode(repair(text_of(case).encode(), machine_of(case)).content or b"") for case in cases]
    right = [text_of(case) for case in CASES if case["untouched"]]
    assert len(files) > 30 and len(right) > 20

    answers = oracle.ask_everywhere([*files, *right])

    names = [*(case["id"] for case in cases), *(case["id"] for case in CASES if case["untouched"])]
    assert [n for n, a in zip(names, answers, strict=True) if not (a.finds and a.users)] == []


@pytest.mark.timeout(900)  # with the long list of make fuzz
def test_files_of_every_kind_are_judged_and_repaired_as_glibc_reads_them(judges: Oracle) -> None:
    texts = make_variants(VARIANTS, SEED)
    repairs = [repair(encode(text)) for text in texts]
    mended = {n: decode(r.content) for n, r in enumerate(repairs) if r.content is not None}

    before = judges.ask_everywhere(texts)
    after = dict(zip(mended, judges.ask_everywhere(list(mended.values())), strict=True))

    misjudged = [(t, a) for t, a in zip(texts, before, strict=True) if a.finds != judge(t).asks_first]
    assert misjudged == []
    assert [(t, a) for t, a in zip(texts, before, strict=True) if a.users == bool(parse(t).defects)] == []
    vain = [(texts[n], repairs[n].says, mended[n]) for n, a in after.items() if not (a.finds and a.users)]
    assert vain == []
    # a line that is read only once it ends in a newline may do without files: that is its owner's will
    read = {n for n in after if (p := parse(texts[n])).hosts is p.last_hosts}
    lost = [mended[n] for n, a in after.items() if n in read and before[n].localhost > a.localhost]
    assert lost == []
    right = [(t, r) for t, r, a in zip(texts, repairs, before, strict=True) if r.wanted and a.finds]
    assert right == []  # what works in every world is not touched unasked
    assert len(mended) > VARIANTS // 4
