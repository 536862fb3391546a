"""The real avahi-daemon judges our reading of made-up files: what it starts with, and what it publishes.

``make fuzz`` tries many more; VARIANTS_SEED chooses others.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator

import pytest

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.avahi_conf import parse
from avahi_gpu.files.avahi_conf_edit import mend
from avahi_gpu.files.avahi_harms import breaks_discovery, effects, starts
from avahi_gpu.files.service_loader import parse as parse_service
from tests.lab.avahi_variants import confs, service_files, settings
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import set_up

SEED = int(os.environ.get("VARIANTS_SEED", "33"))
MANY = float(os.environ.get("VARIANTS", "1"))  # times as many
CONF = "/etc/avahi/avahi-daemon.conf"
FOLDER = "/etc/avahi/services"
STARTS, SETTINGS, FILES = round(60 * MANY), round(5 * MANY), round(60 * MANY)
AT_ONCE = 60  # files in the folder
PUBLISHED_WITHIN_S = 12.0

# in the host: starts the daemon with each file, says whether it came up. What the file forbids is forbidden
# the second time, too; what a machine under load had no time for is not
START_EACH = f"""
import base64, json, subprocess, sys
def ends(*argv):
    return subprocess.run(argv, capture_output=True, timeout=30).returncode
def comes_up():
    started = ends("avahi-daemon", "--daemonize") == 0
    if ends("avahi-daemon", "--check") == 0:
        ends("avahi-daemon", "--kill")
    return started
answers = []
for content in json.load(sys.stdin):
    with open("{CONF}", "wb") as file:
        file.write(base64.b64decode(content))
    answers.append(comes_up() or comes_up())
json.dump(answers, sys.stdout)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(2) as made:
        set_up(made)
        yield made


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Not asked here: daemons come and go."""


def say_starts(text: str) -> bool:
    try:
        return starts(effects(parse(text), ["eth0"]))
    except MalformedInput:
        return False


def start_each(lab: Cluster, texts: list[str]) -> list[bool]:
    lab[0].stop_avahi()
    content = json.dumps([base64.b64encode(t.encode()).decode() for t in texts])
    done = lab[0].run(["python3", "-c", START_EACH], input=content, check=True, timeout=60 + len(texts))
    return list(json.loads(done.stdout))


def test_the_daemon_starts_with_what_we_say_it_starts_with(lab: Cluster) -> None:
    texts = list(confs(SEED, STARTS))

    started = start_each(lab, texts)

    differing = [(t, s) for t, s in zip(texts, started, strict=True) if say_starts(t) != s]
    assert differing == []  # the file, and whether the daemon started
    assert 0.2 < sum(started) / len(started) < 0.8


def test_the_daemon_starts_with_what_we_have_mended(lab: Cluster) -> None:
    broken = [t for t in confs(SEED + 1, STARTS * 2) if not say_starts(t)]
    mended = [m for t in broken if (m := mend(t)) is not None and say_starts(m)][: STARTS // 2]
    assert len(mended) > len(broken) / 4

    started = start_each(lab, mended)

    assert [t for t, s in zip(mended, started, strict=True) if not s] == []


def test_settings_break_what_we_say_they_break(lab: Cluster) -> None:
    host, peer = lab[0], lab[1]
    differing = []
    for text in settings(SEED, SETTINGS):
        host.stop_avahi()
        host.write(CONF, text)
        started = any(host.run(["avahi-daemon", "--daemonize"]).returncode == 0 for _ in range(2))  # as above
        found = started and finds_and_is_found(lab)
        try:
            harms = effects(parse(text), ["eth0"])
            said = starts(harms), not breaks_discovery(harms)
        except MalformedInput:
            said = (False, False)
        if said != (started, found):
            differing.append((text, said, (started, found)))
    assert differing == []  # the file, what we say, what was: started, found
    assert peer.pid


def finds_and_is_found(lab: Cluster) -> bool:
    """Whether the first host's service, name and address reach the second, and the second's the first."""
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        if sees(lab, 0, 1) and sees(lab, 1, 0):
            return True
    return False


def sees(lab: Cluster, who: int, whom: int) -> bool:
    lines = lab[who].run(["avahi-browse", "-prt", "_torch._tcp"], timeout=30).stdout.splitlines()
    return any(line.startswith("=") and f";{lab[whom].address};" in line for line in lines)


def test_the_daemon_publishes_what_we_say_it_publishes(lab: Cluster) -> None:
    host, peer = lab[0], lab[1]
    host.run(["sh", "-c", f"rm -f {FOLDER}/*"], check=True)
    files = list(service_files(SEED, FILES))
    differing = []
    for start in range(0, len(files), AT_ONCE):
        batch = files[start : start + AT_ONCE]
        said = {name: say_types(name, content) for name, content in batch}
        for name, content in batch:
            host.write(f"{FOLDER}/{name}.service", content)
        host.stop_avahi()
        host.run(["sh", "-c", f"printf '[server]\\n' > {CONF}"], check=True)
        host.start_avahi()
        deadline = time.monotonic() + PUBLISHED_WITHIN_S
        while (seen := published(peer, said)) != said and time.monotonic() < deadline:
            time.sleep(0.3)
        differing += [(c, said[n], seen[n]) for n, c in batch if said[n] != seen[n]]
        host.run(["sh", "-c", f"rm -f {FOLDER}/*"], check=True)
    assert differing == []  # the file, what we say, what a peer saw


def say_types(name: str, content: bytes) -> list[str]:
    """Return the types that we say are published under a name that begins with ``name``."""
    try:
        group = parse_service(content, name, "gpu-node-1")
    except MalformedInput:
        return []
    return sorted(s.type.rstrip(".").lower() for s in group.services)


def published(peer: object, said: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return what a peer sees: the beginning of the instance's name -> types."""
    lines = peer.run(["avahi-browse", "-ptak"], timeout=60).stdout.splitlines()  # type: ignore[attr-defined]
    rows = {(f[3], f[4].lower()) for line in lines if (f := line.split(";"))[0] == "+"}
    found: dict[str, list[str]] = {name: [] for name in said}
    for instance, kind in sorted(rows):
        name = instance.removeprefix("\\032")  # a blank, as avahi-browse writes it
        known = next((n for n in said if name.startswith(n)), None)
        if known is not None:
            found[known].append(kind)
    return {name: sorted(set(kinds)) for name, kinds in found.items()}
