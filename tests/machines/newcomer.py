"""A bare Debian comes into a running job of two nodes, by the commands of docs/how-to/adding-a-machine.md."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tests.lab.host import REPOSITORY
from tests.lab.process import CommandFailed, Follower
from tests.machines import wheels
from tests.machines.cache import NotMade
from tests.machines.image import RELEASES
from tests.machines.lab import Lab, machines
from tests.machines.machine import Machine

PAGE = REPOSITORY / "docs/how-to/adding-a-machine.md"
RELEASE = "bookworm"
INDEX = "[global]\nno-index = true\nfind-links =\n    /srv/wheels\n    /srv/torch\n"
HASTE = "[install]\ncompile = false\n"  # most of the work is byte code of torch that is never used
TRAINING_WITHIN_S = 120.0  # three workers import torch side by side on what may be one busy core
BLOCK_WITHIN_S = 300.0  # pip unpacks torch


def blocks_of_page() -> list[str]:
    """Return the commands that the page tells to run, by blocks, with the names that machines have here."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [block.replace("gpu-node-", "machine-") for block in blocks]


@contextmanager
def two_nodes_and_a_bare_one(*, haste: bool = False) -> Iterator[Lab]:
    """Boot three machines, of which two are nodes with torch; the last one lies as debootstrap left it.

    ``haste``: pip is not to compile byte code there. The nodes use the torch of this process. Raises NotMade
    where that does not run in the machines.
    """
    ours = ".".join(map(str, sys.version_info[:2]))
    if ours != RELEASES[RELEASE] or not version("torch").endswith("+cpu"):
        raise NotMade(f"the machines' Python {RELEASES[RELEASE]} would need this one's torch, for CPUs")
    torch = find_spec("torch")
    assert torch is not None and torch.origin is not None
    site = Path(torch.origin).parents[1]
    binds = [f"{wheels.torch_wheels(RELEASE)}:/srv/torch", f"{site}:/srv/site"]
    with machines(3, RELEASE, binds=binds) as lab:
        with ThreadPoolExecutor(2) as together:
            list(together.map(make_node, lab.machines[:2]))
        lab.allow_ssh(lab[0])
        prepare_bare(lab, lab[2], INDEX + HASTE if haste else INDEX)
        yield lab


def make_node(machine: Machine) -> None:
    """Make a node with torch and the script."""
    machine.install_avahi_gpu()
    machine.write(
        f"/opt/avahi-gpu/lib/python{RELEASES[RELEASE]}/site-packages/torch-of-the-lab.pth", "/srv/site\n"
    )
    machine.write("/srv/train/train.py", (REPOSITORY / "examples/train.py").read_bytes())
    machine.run(["avahi-gpu", "setup", "--yes"], timeout=120, check=True)


def prepare_bare(lab: Lab, machine: Machine, pip_conf: str) -> None:
    """Give a bare machine what every one has somewhere: a package index, and a key to log in with."""
    machine.write("/etc/pip.conf", pip_conf)
    machine.write("/root/.ssh/id_ed25519", lab.control(["cat", lab.ssh_key], check=True).stdout, mode=0o600)
    machine.path("/root/.ssh").chmod(0o700)


def start_job(lab: Lab) -> list[Follower]:
    """Start on the two nodes what the page tells the third to join; return when it trains."""
    line = blocks_of_page()[-1]
    nodes = [machine.follow(["sh", "-ec", line]) for machine in lab.machines[:2]]
    wait_for_any(nodes, "step 12 loss")  # beyond the first checkpoint
    return nodes


def wait_for_any(followed: list[Follower], text: str, after: list[int] | None = None) -> tuple[int, int]:
    """Wait until one of them prints a line with ``text``; return which, and the number of the line."""
    begin = after or [0] * len(followed)
    deadline = time.monotonic() + TRAINING_WITHIN_S
    while time.monotonic() < deadline:
        for which, one in enumerate(followed):
            for index in range(begin[which], len(one.lines)):
                if text in one.lines[index]:
                    return which, index
        if all(one.process.poll() is not None for one in followed):
            break
        time.sleep(0.02)
    raise AssertionError(f"no {text!r} in:\n" + "\n---\n".join(one.output for one in followed))


def come_in(lab: Lab, nodes: list[Follower]) -> tuple[Follower, dict[str, float]]:
    """Run the page on the bare machine; return its job, and the seconds that each block and the rest took.

    The last one ends with the first step of training that all three have done together.
    """
    newcomer, took = lab[2], {}
    *before, launch = blocks_of_page()
    for block in before:
        began = time.monotonic()
        done = newcomer.run(["sh", "-ec", block], timeout=BLOCK_WITHIN_S)
        if done.returncode != 0:
            raise CommandFailed(done.returncode, block, done.stdout, done.stderr)
        took[block] = time.monotonic() - began
    began = time.monotonic()
    job = newcomer.follow(["sh", "-ec", launch])
    everyone = [*nodes, job]
    which, index = wait_for_any(everyone, "with 3 processes")
    everyone[which].wait_for("loss", TRAINING_WITHIN_S, after=index)
    took[launch] = time.monotonic() - began
    return job, took
