"""What real glibc makes of an nsswitch.conf, in two worlds.

Both have a name server with a forged address for everything. *bare*: no module of another program is
there. *full*: all of them are, and say NOTFOUND; ``resolve`` forges as well. A line asks mDNS first exactly
if a peer is found in both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cluster import Cluster, cluster

NSSWITCH = "/etc/nsswitch.conf"
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
peer, folder, files, other = json.load(sys.stdin)
env = {{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": folder}}
def ask(*argv):
    done = subprocess.run(["getent", *argv], capture_output=True, text=True, timeout=30, env=env)
    return sorted({{line.split()[0] for line in done.stdout.splitlines() if line.strip()}})
answers = []
for content in files:
    with open("{NSSWITCH}", "wb") as file:
        file.write(content.encode("utf-8", "surrogateescape"))
    answers.append([ask("ahostsv4", peer), bool(ask("passwd", "root")), bool(ask("ahosts", "localhost")),
        bool(ask("ahostsv4", other)) if other else None])
json.dump(answers, sys.stdout)
"""


@dataclass(frozen=True)
class Answer:
    """What glibc made of one file."""

    finds: bool  # the peer, at its own address and no other
    users: bool
    localhost: bool
    dns: bool | None = None  # a name that DNS alone has; None: not asked


class Oracle:
    """Two hosts, and a folder of other programs' modules."""

    def __init__(self, lab: Cluster, modules: Path | None) -> None:
        self.lab = lab
        self.modules = modules

    def ask(self, texts: Sequence[str], *, full: bool = False, dns: bool = False) -> list[Answer]:
        """Put each file in place on the first host and look for the second, with ``dns`` for more."""
        host, peer = self.lab.hosts
        before = host.read(NSSWITCH)
        folder = str(self.modules) if full else ""
        answers: list[Answer] = []
        try:
            for start in range(0, len(texts), AT_ONCE):
                some = texts[start : start + AT_ONCE]
                question = json.dumps([f"{peer.name}.local", folder, some, "www.example.org" if dns else ""])
                done = host.run([sys.executable, "-c", ASK], input=question, check=True, timeout=110)
                answers += [Answer(found == [peer.address], *m) for found, *m in json.loads(done.stdout)]
        finally:
            host.write(NSSWITCH, before)
        return answers

    def ask_everywhere(self, texts: Sequence[str], *, dns: bool = False) -> list[Answer]:
        """Return what holds in both worlds."""
        bare = self.ask(texts, dns=dns)
        if self.modules is None:
            return bare
        full = self.ask(texts, full=True, dns=dns)
        return [
            Answer(a.finds and b.finds, a.users and b.users, a.localhost and b.localhost, a.dns and b.dns)
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


@contextmanager
def consult(folder: Path) -> Iterator[Oracle]:
    """Boot the two hosts; the modules of other programs are made in ``folder``."""
    modules = compile_modules(folder)
    with cluster(2) as lab:
        host = lab[0]
        server = host.follow([sys.executable, NAME_SERVER, "127.0.0.1", "hijack"])
        server.wait_for("ready")
        host.write("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        yield Oracle(lab, modules)
