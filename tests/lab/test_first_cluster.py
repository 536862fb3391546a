"""docs/tutorial/first-cluster.md, done to the letter on two hosts as they are before setup."""

from __future__ import annotations

import re

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import REPOSITORY
from tests.lab.pages import follow_page, read_blocks

PAGE = "docs/tutorial/first-cluster.md"
INSTALL = re.compile(r"^```sh[^\n]*\n(apt-get update\n.*?)^```$", re.MULTILINE | re.DOTALL)
HELLO = next(b.text for b in read_blocks(PAGE, (REPOSITORY / PAGE).read_text()) if b.file == "hello.py")

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(600)]


def outputs(lab: Cluster, *headings: str) -> list[tuple[str, ...]]:
    """Follow these parts of the page; return what each block printed on each host."""
    found = []
    for heading in headings:
        found += [done.outputs for done in follow_page(PAGE, lab.hosts, under=heading, within_s=200.0)]
    return found


@pytest.mark.faults  # the demo takes much the same way
def test_the_tutorial_leads_from_bare_machines_to_training_and_back() -> None:
    """Without its first job and its last, which cost as much as all the rest; below they are run, too."""
    with cluster(2, bare=True) as lab:
        before = [host.read("/etc/nsswitch.conf") for host in lab]

        *_, look = outputs(lab, "2. Make them nodes, on both", "3. Look who is there")
        assert all(f"\n{host.name} " in look[0] for host in lab) and "no error found" in look[0]

        (train,) = outputs(lab, "5. Train, on both")
        assert "step 1 loss" in train[0] and "step 20 loss" in train[0] and "step" not in train[1]

        broken, mended = outputs(lab, "7. Break it, and mend it")
        assert "no such name" in broken[0] and "error   AG104  the hosts line does not" in broken[0]
        assert mended[0].splitlines()[-1].split() == [lab[1].address, "gpu-node-2.local"]

        outputs(lab, "8. Take it back, if you like")
        assert [host.read("/etc/nsswitch.conf") for host in lab] == before


@pytest.mark.faults
def test_the_jobs_of_the_tutorial_and_of_the_page_of_torchrun() -> None:
    with cluster(2) as lab:
        done = follow_page("docs/how-to/torchrun.md", lab.hosts, files={"hello.py": HELLO}, within_s=200.0)
        assert [o.count("the sum is 3") for o in done[0].outputs] == [1, 1], done[0].outputs

        looks = [d.outputs for d in follow_page(PAGE, lab.hosts, within_s=200.0)]
        hello, train, again = looks[3:6]
        assert [o.count("the sum is 3") for o in hello] == [1, 1], hello
        assert "rank 0 goes on after step 20\nstep 21 loss" in again[0]
        first, last = (float(x) for x in re.findall(r"step (?:1|40) loss (.*)", train[0] + again[0]))
        assert last < first / 2


def test_pages_install_in_the_same_way() -> None:
    """The lab's hosts have no apt: the commands are tried on booted machines, from the other page."""
    tutorial, joining = (
        INSTALL.findall((REPOSITORY / page).read_text(encoding="utf-8"))
        for page in (PAGE, "docs/how-to/adding-a-machine.md")
    )
    assert tutorial == joining and len(tutorial) == 1
