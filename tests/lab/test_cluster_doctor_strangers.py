"""``doctor --serve`` listens on a LAN: strangers, keys, Ctrl-C, and the end of its time."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import set_up
from tests.lab.surveying import SERVES, serving, survey

pytestmark = pytest.mark.lab

KEY = "/etc/avahi-gpu/key"
PORT = 29420
# floods the doctor of a host for as long as its stdin is open, in all the ways that a stranger has
FLOOD = """
import os, select, socket, sys, time
address, port = sys.argv[1], int(sys.argv[2])
words = [b"\\0\\xff" * 4096, b"A" * 200_000, b"{}\\n", b'{"type":"hello","id":"x"}\\n', b"",
         b"GET / HTTP/1.0\\r\\n\\r\\n", b'{"type":"probe","targets":[]}\\n', b"[" * 60_000 + b"\\n"]
held, number = [], 0
while not select.select([0], [], [], 0)[0]:
    for _ in range(20):
        number += 1
        s = socket.socket()
        s.settimeout(1)
        try:
            s.connect((address, port))
            s.sendall(words[number % len(words)])
        except OSError:
            pass
        held.append(s)
    held = held[-200:]
    if number == 200:
        print("200", flush=True)
    time.sleep(0.02)
"""
# says one line and returns what comes back within two seconds
SAY = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
for line in sys.argv[3:]:
    s.sendall(line.encode() + b"\\n")
s.settimeout(2)
got = b""
try:
    while part := s.recv(65536):
        got += part
except OSError:
    pass
print(got.decode(errors="replace"), end="")
"""
# a doctor that is none: what it answers depends on which of the ports it is asked at
LIAR = """
import asyncio, json, sys
ABOUT = {"type": "about", "hostname": "\\x1b[2Jliar", "cluster": "default"}
async def serve(number, reader, writer):
    await reader.readline()
    about = json.dumps({**ABOUT, "id": "%016x" % number}).encode() + b"\\n"
    if number == 0:
        writer.write(b"A" * 10_000_000)
    elif number == 1:
        await asyncio.sleep(100)
    elif number == 2:
        writer.write(about + b"garbage\\n" * 1000)
    elif number == 3:
        writer.write(about)
        await asyncio.sleep(100)
    else:
        while True:
            writer.write(about)
            await reader.readline()
    await writer.drain()
    writer.close()
async def main():
    for number in range(5):
        def answer(r, w, number=number): return serve(number, r, w)
        await asyncio.start_server(answer, sys.argv[1 + number], 29420)
    print("lies", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
HELLO = '{"type":"hello","id":"0123456789abcdef","host":"stranger","version":1}'


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(3) as hosts:
        set_up(hosts, forget=True)
        yield hosts


def say(lab: Cluster, *lines: str) -> list[dict[str, object]]:
    """Say these lines to the doctor of the second host from the third one; return the answers."""
    done = lab[2].run(["python", "-c", SAY, lab[1].address, str(PORT), *lines], check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def probe(address: str, *ports: int, host: str = "") -> str:
    return json.dumps({"type": "probe", "targets": [{"address": address, "ports": ports, "host": host}]})


@pytest.mark.faults
def test_a_flood_of_garbage_holds_up_no_asker(lab: Cluster) -> None:
    with serving(lab[1:2]) as (server,):
        flood = lab[2].popen(["python", "-c", FLOOD, lab[1].address, str(PORT)], stdin=-1)
        assert flood.stdout is not None and flood.stdout.readline() == "200\n"
        try:
            found = survey(lab[0], "--wait", "8")
        finally:
            flood.communicate("", 10)

        assert found.node(2)["asked"] and (1, 2) not in found.states, found.tell()
        assert server.process.poll() is None
    assert len([line for line in server.lines if lab[2].address in line]) <= 20


def test_whoever_asks_without_a_key_learns_of_nodes_alone(lab: Cluster) -> None:
    """Only nodes that the asked one sees itself, on ports of jobs, and names of mDNS."""
    outside = [
        ("127.0.0.1", 29500, ""),
        ("8.8.8.8", 29500, ""),
        (lab.subnet + ".77", 29500, ""),  # in the subnet, but no node
        (lab.subnet + ".255", 29500, ""),
        (lab[0].address, 22, ""),
        (lab[0].address, 29500, "example.com"),
        (lab[0].address, 29500, "a.b.local"),
    ]
    with serving(lab[1:2]):
        time.sleep(1.5)  # until it has seen the others
        lines = [probe(address, port, host=host) for address, port, host in outside]
        about, *refused = say(lab, HELLO, *lines, probe(lab[0].address, 29500), '{"type":"bye"}')
        unlistened = say(lab, HELLO, '{"type":"listen","ports":[22],"seconds":5}')
        ended = say(lab, HELLO, "garbage", probe(lab[0].address, 29500))

    assert about["type"] == "about" and about["host"] == "gpu-node-2.local"
    *refused, allowed = [r["reports"][0]["ports"][0] for r in refused]  # type: ignore[index]
    assert [r["ok"] for r in refused] == [None] * len(outside) and all(r["words"] for r in refused)
    assert allowed == {"ok": False, "words": "refused", "took_s": allowed["took_s"]}
    assert [m["type"] for m in unlistened] == ["about", "refused"]
    assert [m["type"] for m in ended] == ["about"]


def test_with_a_key_strangers_get_nothing_and_nodes_without_it_are_named(lab: Cluster) -> None:
    for host in lab[:2]:
        host.write(KEY, "")
    lab[0].run(["avahi-gpu", "key", "new", "--force"], check=True)
    lab[1].write(KEY, lab[0].read(KEY))
    lab[1].path(KEY).chmod(0o600)
    try:
        with serving(lab[1:]) as (keyed, plain):
            answers = say(lab, HELLO, probe(lab[0].address, 29500))
            forged = say(lab, '{"type":"offer","id":"0123456789abcdef","host":"x","version":1}')
            found = survey(lab[0])
    finally:
        for host in lab[:2]:
            host.run(["rm", "-r", "/etc/avahi-gpu"], check=True)

    assert [(a["type"], a["why"]) for a in answers + forged] == [("unproven", "key-wanted")] * 2
    assert "only to who holds the cluster key" in keyed.output
    assert "without a cluster key" in plain.output
    assert (found.exit_code, found.errors) == (1, ["AG621"]), found.tell()
    assert found.states == dict.fromkeys(((1, 3), (2, 3), (3, 1), (3, 2)), "unknown")
    assert "gpu-node-3" in found.says("AG621")


def test_doctors_that_lie_or_fall_silent_spoil_nothing(lab: Cluster) -> None:
    addresses = [f"{lab.subnet}.{100 + n}" for n in range(5)]
    for address in addresses:
        lab[2].run(["ip", "addr", "add", f"{address}/24", "dev", "eth0"], check=True)
    liar = lab[2].follow(["python", "-c", LIAR, *addresses])
    liar.wait_for("lies")
    try:
        with serving(lab[1:2]):
            began = time.monotonic()
            found = survey(lab[0], "--wait", "3", "--peers", ",".join(addresses))
            took_s = time.monotonic() - began
    finally:
        liar.end()
        for address in addresses:
            lab[2].run(["ip", "addr", "del", f"{address}/24", "dev", "eth0"], check=True)

    assert took_s < 45 and found.errors == [], found.tell()
    states = {(p["from"], p["to"]): p["state"] for p in found.data["matrix"]}
    assert states["gpu-node-1", "gpu-node-2"] == states["gpu-node-2", "gpu-node-1"] == "ok"
    told = {n["address"]: (n["asked"], n["why"]) for n in found.data["nodes"]}
    assert [told[address][0] for address in addresses] == [False] * 5, told
    assert all(told[address][1] for address in addresses), told


def test_ctrl_c_ends_both_sides_without_a_traceback(lab: Cluster) -> None:
    with serving(lab[1:2]) as (server,):
        asker = lab[0].follow(["avahi-gpu", "doctor", "--cluster", "--wait", "30"])
        asker.wait_for("waiting for gpu-node-3")
        asker.ctrl_c()
        assert asker.wait(10) == 128 + signal.SIGINT
        server.wait_for("has no more questions")
        server.ctrl_c()
        assert server.wait(10) == 128 + signal.SIGINT
    assert "Traceback" not in asker.output + server.output


def test_serve_ends_when_its_time_is_over_and_its_record_goes(lab: Cluster) -> None:
    server = lab[1].follow(["avahi-gpu", "doctor", "--serve", "2"])
    server.wait_for(SERVES)

    assert server.wait(15) == 0
    assert "2 s are over" in server.output
    deadline = time.monotonic() + 10  # Avahi forgets a second after the goodbye
    while "gpu-node-2" in (left := lab[0].run(["avahi-browse", "-tp", "_torch-doctor._tcp"]).stdout):
        assert time.monotonic() < deadline, left


def test_two_askers_take_turns(lab: Cluster) -> None:
    with serving(lab[1:2]):
        both = [
            host.follow(["avahi-gpu", "doctor", "--cluster", "--json", "--wait", "2"])
            for host in (lab[0], lab[2])
        ]
        for asker in both:
            assert asker.wait(60) == 0, asker.output
        for asker in both:
            nodes = {n["name"]: n["asked"] for n in json.loads(asker.output)["data"]["nodes"]}
            assert nodes["gpu-node-2"]


def test_without_avahi_addresses_are_enough(lab: Cluster) -> None:
    for host in lab[:2]:
        host.stop_avahi()
    try:
        with serving(lab[1:2], "--peers", lab[0].address) as (server,):
            found = survey(lab[0], "--peers", lab[1].address)
    finally:
        for host in lab[:2]:
            host.start_avahi()

    assert "not announced" in server.output
    names = {n["name"]: n["asked"] for n in found.data["nodes"]}
    assert names == {"gpu-node-1": True, "gpu-node-2": True}, found.tell()
    assert found.states == {} and found.ports(2, 1)["high"] and found.ports(1, 2)["high"]
