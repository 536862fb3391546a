"""The tab key on a real LAN, in real shells: nodes and findings are offered, and no name does harm."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from avahi_gpu.cli.complete import END_S
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.shells import fish_completes, missing, shell_at_a_terminal

pytestmark = pytest.mark.lab

SERVICE = """<service-group><name replace-wildcards="yes">{name}</name>
<service><type>{type}</type><port>29500</port>{records}</service></service-group>
"""
HARM = "/run/harm"
# instance names that somebody on the LAN may choose: none of them is a host name
WILD = (
    f"gpu-node-$(touch {HARM})",
    f"gpu-node-`touch {HARM}`",
    f"gpu-node-9;touch {HARM}",
    f"gpu-node-'\"|touch {HARM}",
    f"gpu-node-[$(touch {HARM})]",
    "gpu-node-8 x",
    "gpu-node-*",
    "gpu-node-7\x1b[2J",
    "gpu-node-6\nls",
    "-gpu-node-5",
    "--fix",
    "gpu-node-\u202e4",
)


def publish(host: Host, file: str, name: str, type: str = "_torch._tcp", records: str = "") -> None:
    """Announce a service under a name of any kind."""
    shown = escape(name, {"\n": "&#10;", "\x1b": "?"})
    host.write(f"/etc/avahi/services/{file}.service", SERVICE.format(name=shown, type=type, records=records))


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(3) as lab:
        for host in lab:
            publish(host, "torch", "%h")
        for number, name in enumerate(WILD):
            publish(lab[2], f"wild{number}", name)
        job = "<txt-record>job={}</txt-record>"
        publish(lab[1], "job", "job", "_torch-rdzv._tcp", job.format("llama"))
        publish(lab[2], "job2", "job2", "_torch-rdzv._tcp", job.format(f"x$(touch {HARM})"))
        for host in lab:
            host.restart_avahi(settle=False)
        for host in lab:
            host.wait_for_avahi()
        wanted = len(lab) + len(WILD)
        seen = lab[0].run(["avahi-gpu", "peers", "--json", "--expect", str(wanted), "--timeout", "20"])
        names = {peer["name"] for peer in json.loads(seen.stdout)["data"]["peers"]}
        assert {f"gpu-node-$(touch {HARM})", "gpu-node-6\nls", "gpu-node-*", "--fix"} <= names, names
        yield lab
        assert not lab[0].path(HARM).exists()


def expect(host: Host, shell: str, words: list[str], wanted: list[str]) -> None:
    """Ask until all that is wanted is told, since a look is short and the machine may be busy; never more."""
    end = time.monotonic() + 60
    while (told := ask(host, shell, *words)[0]) != wanted:
        assert set(told) <= set(wanted) and time.monotonic() < end, told


def ask(host: Host, shell: str, *words: str) -> tuple[list[str], float]:
    """Return what the script of the shell is told, and the seconds that it waited."""
    start = time.monotonic()
    done = host.run(["avahi-gpu", "_complete", shell, *words])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines(), time.monotonic() - start


def test_nodes_and_jobs_are_offered_and_no_name_that_is_none(lab: Cluster) -> None:
    nodes = ["gpu-node-1", "gpu-node-2", "gpu-node-3"]

    expect(lab[0], "fish", ["doctor", ""], ["words", *nodes])
    expect(lab[1], "zsh", ["launch", "--master", "gpu-node-"], ["words", *nodes])
    listed = ["gpu-node-2,gpu-node-1", "gpu-node-2,gpu-node-3"]
    expect(lab[0], "bash", ["launch", "--peers", "gpu-node-2,"], ["list", *listed])
    expect(lab[0], "fish", ["launch", "--job="], ["words", "--job=llama"])


def test_bash_completes_by_the_tab_key(lab: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with shell_at_a_terminal(lab[0], "bash", tmp_path) as terminal:
        shown = terminal.complete("avahi-gpu doctor gpu-node-", "gpu-node-1", "gpu-node-2", "gpu-node-3")
        assert not [sign for sign in ("$", "`", ";", "*", "gpu-node-8", "--fix") if sign in shown]
        terminal.complete("avahi-gpu launch --nno", "--nnodes ")
        terminal.complete("avahi-gpu doctor --only=AG10", "AG100", "AG104")
        terminal.complete("avahi-gpu launch --nnodes 2 tr", "train.py ")
        terminal.complete("avahi-gpu exp", "explain ")


@pytest.mark.skipif(not os.environ.get("CI") and bool(missing(["zsh"])), reason="zsh is not installed")
def test_zsh_completes_by_the_tab_key(lab: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with shell_at_a_terminal(lab[0], "zsh", tmp_path) as terminal:
        shown = terminal.complete("avahi-gpu doctor gpu-node-", "gpu-node-1", "gpu-node-2", "gpu-node-3")
        assert not [sign for sign in ("$", "`", ";", "*", "gpu-node-8", "--fix") if sign in shown]
        terminal.complete("avahi-gpu exp", "explain")
        terminal.complete("avahi-gpu doctor --only=AG10", "AG100", "hosts-loopback")
        terminal.complete("avahi-gpu launch --nnodes 2 tr", "train.py")


@pytest.mark.skipif(not os.environ.get("CI") and bool(missing(["fish"])), reason="fish is not installed")
def test_fish_completes(lab: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "data").mkdir()

    nodes = ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
    end = time.monotonic() + 60
    while (told := fish_completes(lab[0], "avahi-gpu doctor gpu", tmp_path)) != nodes:
        assert set(told) < set(nodes) and time.monotonic() < end, told
    assert fish_completes(lab[0], "avahi-gpu launch --nnodes 2 tr", tmp_path) == ["train.py"]
    assert fish_completes(lab[0], "avahi-gpu setup --root=da", tmp_path) == ["--root=data/"]
    assert fish_completes(lab[0], "avahi-gpu explain mdns-be", tmp_path) == ["mdns-before-dns"]


def test_without_avahi_or_with_a_bus_that_is_stuck_nothing_is_offered_and_nobody_waits(lab: Cluster) -> None:
    """What is known without a look at the LAN is completed all the same."""
    host = lab[1]
    host.stop_avahi()
    expect(host, "bash", ["doctor", "gpu"], ["words"])
    host.start_avahi()
    host.freeze()  # the bus takes connections and says nothing
    try:
        expect(host, "bash", ["doctor", "--only", "AG104"], ["words", "AG104"])
        told, took_s = ask(host, "bash", "doctor", "gpu")
    finally:
        host.thaw()
    assert told in ([], ["words"])
    assert took_s < END_S + 10  # of a busy machine
    host.stop_bus()
    expect(host, "zsh", ["launch", "--master", ""], ["words"])
