"""Poor cables, one-way loss, a LAN in parts, a host that boots again, a bus that dies: they are real."""

from __future__ import annotations

import re
import sys

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host

pytestmark = pytest.mark.lab

SEND_A_LOT = "import socket, sys; s = socket.create_connection((sys.argv[1], 5000)); s.sendall(b'x' * 100000)"
COUNT = (
    "import socket; s = socket.create_server(('', 5000)); print('listening', flush=True); c, _ = s.accept()\n"
    "n = 0\nwhile part := c.recv(65536): n += len(part)\nprint(n)"
)

HEAR = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5001))\n"
    "s.settimeout(0.7); print('listening', flush=True)\n"
    "try:\n s.recv(10); print('heard')\nexcept TimeoutError:\n print('nothing')"
)
SHOUT = (
    "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b'a', (sys.argv[1], 5001))"
)


def pings(source: Host, target: Host, count: int = 3) -> tuple[int, float]:
    """Return how many of the pings were answered, and their mean round trip in milliseconds."""
    words = ["ping", "-c", str(count), "-i", "0.01", "-W", "1", target.address]
    said = source.run(words).stdout
    answered = re.search(r"(\d+) received", said)
    mean = re.search(r"= [\d.]+/([\d.]+)/", said)
    return int(answered[1]) if answered else 0, float(mean[1]) if mean else 0.0


def test_a_poor_cable_delays_and_loses_until_it_is_healed(shared_cluster3: Cluster) -> None:
    poor, good = shared_cluster3[0], shared_cluster3[1]
    poor.impair(delay_ms=50)
    assert pings(poor, good)[1] >= 100  # there and back

    poor.impair(loss=0.3, seed=1)
    received, _ = pings(good, poor, 100)
    assert 20 <= received <= 80  # about half: each way loses three of ten

    poor.impair(loss=0.05, seed=1)
    follower = good.follow([sys.executable, "-c", COUNT])
    follower.wait_for("listening")
    poor.run([sys.executable, "-c", SEND_A_LOT, good.address], check=True, timeout=60)
    assert follower.wait(60) == 0
    assert follower.lines[-1] == "100000"  # checksums and segments are right, so TCP gets through

    poor.heal()
    assert pings(poor, good, 20) == (20, pytest.approx(0, abs=20))


def hears(listener: Host, speaker: Host) -> bool:
    """Say whether a broadcast of the one reaches the other; that needs no answer of any kind."""
    follower = listener.follow([sys.executable, "-c", HEAR])
    follower.wait_for("listening")
    speaker.run([sys.executable, "-c", SHOUT, listener.address.rpartition(".")[0] + ".255"], check=True)
    follower.wait(10)
    return follower.lines[-1] == "heard"


def test_one_way_loss_is_one_way(shared_cluster3: Cluster) -> None:
    host, other = shared_cluster3[0], shared_cluster3[1]
    host.mute("in")
    assert (hears(host, other), hears(other, host)) == (False, True)
    host.heal()
    host.mute("out")
    assert (hears(host, other), hears(other, host)) == (True, False)
    host.heal()
    assert pings(host, other)[0] == 3


def test_a_lan_in_parts_comes_together_again(shared_cluster3: Cluster) -> None:
    one, two, three = shared_cluster3
    shared_cluster3.partition([one, three], [two])
    assert pings(one, three)[0] == 3
    assert pings(one, two)[0] == 0
    assert one.run(["cat", "/sys/class/net/eth0/carrier"]).stdout.strip() == "1"

    shared_cluster3.reunite()
    assert pings(one, two)[0] == pings(two, three)[0] == 3


def test_a_host_that_lost_its_power_boots_again_with_its_name_and_address(cluster3: Cluster) -> None:
    cluster3[0].kill()
    cluster3.power_on(cluster3[0])

    assert cluster3[0].run(["hostname"]).stdout.strip() == "gpu-node-1"
    assert cluster3[0].read("/etc/machine-id").strip() == cluster3[0].machine_id
    assert pings(cluster3[0], cluster3[1])[0] == 3
    found = cluster3[1].run(["getent", "hosts", "gpu-node-1.local"])
    assert found.stdout.split()[0] == cluster3[0].address

    cluster3[1].stop_bus()
    assert (
        cluster3[1].run(["dbus-send", "--system", "--dest=org.freedesktop.DBus", "/", "a.b"]).returncode != 0
    )
    cluster3[1].start_bus()
    cluster3[1].wait_for_avahi()
    assert cluster3.strangers() == []
