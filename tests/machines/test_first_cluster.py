"""docs/tutorial/first-cluster.md on two Debians as debootstrap leaves them, the installation too."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from tests.lab.pages import read_blocks
from tests.lab.process import CommandFailed
from tests.machines import wheels
from tests.machines.cache import NotMade
from tests.machines.lab import Lab, machines
from tests.machines.newcomer import BLOCK_WITHIN_S, HASTE, INDEX, RELEASE, REPOSITORY, prepare_bare

PAGE = "docs/tutorial/first-cluster.md"
FOLDER = "/root/first"


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(900)
def test_the_tutorial_makes_a_cluster_of_two_bare_debians() -> None:
    try:
        assert find_spec("torch")
        with machines(2, RELEASE, binds=[f"{wheels.torch_wheels(RELEASE)}:/srv/torch"]) as lab:
            lab.allow_ssh(lab[0])
            for machine in lab:
                prepare_bare(lab, machine, INDEX + HASTE)
            printed = follow(lab)
    except NotMade as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no machines with torch can be made here: {problem}")

    everything = "\n".join(printed)
    assert everything.count("the sum is 3") == 2
    assert "rank 0 goes on after step 20\nstep 21 loss" in everything
    assert "error   AG104  the hosts line does not ask mDNS before DNS" in everything
    assert re.search(r"\nno error found", everything)


def follow(lab: Lab) -> list[str]:
    """Run all blocks of the page where it says so; return what they printed."""
    blocks = read_blocks(
        PAGE, (REPOSITORY / PAGE).read_text(encoding="utf-8").replace("gpu-node-", "machine-")
    )
    for machine in lab:
        for block in blocks:
            if block.file:
                machine.write(f"{FOLDER}/{block.file}", block.text + "\n")
    printed = []
    for block in blocks:
        if not block.place:
            continue
        where = lab.machines[:1] if block.place == "one-node" else lab.machines
        argv = ["sh", "-ec", f"mkdir -p {FOLDER}; cd {FOLDER}\n{block.text}"]
        with ThreadPoolExecutor(len(where)) as together:
            ends = list(together.map(lambda m, argv=argv: m.run(argv, timeout=BLOCK_WITHIN_S), where))
        for end in ends:
            if end.returncode != 0:
                raise CommandFailed(end.returncode, block.text, end.stdout, end.stderr)
            printed.append(end.stdout + end.stderr)
    return printed
