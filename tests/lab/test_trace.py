"""``doctor NAME``: the way of a name through glibc, under name servers of every temper, and without Avahi."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from avahi_gpu.files.nss_walk import Status, walk
from avahi_gpu.files.nsswitch_grammar import parse_line
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import set_up
from tests.lab.host import REPOSITORY, Host
from tests.lab.scenarios.names import NSSWITCH, RESOLV_CONF, STUB, put_hosts_line, start_name_server

PEER = "gpu-node-2.local"
# the interpreter of these tests may lie in a folder of root's alone
MAY_READ = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *MAY_READ)
WITHIN_S = 15.0  # whatever is broken
FIXED_SEED = 1536
GENERATED = 120


@dataclass(frozen=True)
class Told:
    """One run of ``doctor --json`` with names."""

    exit_code: int
    seconds: float
    errors: list[str]
    traces: list[dict[str, Any]]

    def step(self, module: str, number: int = 0) -> dict[str, Any]:
        (found,) = [s for s in self.traces[number]["steps"] if s["module"] == module]
        return dict(found)


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Two nodes."""
    with cluster(2) as lab:
        set_up(lab)
        yield lab


@pytest.fixture
def host(lab: Cluster) -> Iterator[Host]:
    """The first of them; its files are as they were afterwards."""
    host = lab[0]
    before = {path: host.read(path) for path in (NSSWITCH, RESOLV_CONF, "/etc/hosts")}
    yield host
    for path, text in before.items():
        host.write(path, text)


def trace(host: Host, *names: str, **options: Any) -> Told:
    started = time.monotonic()
    done = host.run(["avahi-gpu", "doctor", "--json", *names], timeout=60, **options)
    seconds = time.monotonic() - started
    assert "Traceback" not in done.stderr, done.stderr
    data = json.loads(done.stdout)["data"]
    errors = [f["id"] for f in data["findings"] if f["verdict"] == "error"]
    return Told(done.returncode, seconds, errors, data["trace"])


# --- the four name servers -------------------------------------------------------------------------------


def test_without_a_name_server_the_plug_in_finds_the_peer_at_once(lab: Cluster, host: Host) -> None:
    told = trace(host, PEER)

    assert (told.exit_code, told.errors) == (0, [])
    step = told.step("mdns4_minimal")
    assert (step["status"], step["addresses"], step["ends"]) == ("success", [lab[1].address], True)
    assert f"{STUB} is none" in step["why"]
    assert [s["asked"] for s in told.traces[0]["steps"]] == [True, True, False]
    assert told.traces[0]["glibc"]["addresses"] == [lab[1].address]
    assert {"address": lab[1].address, "interface": "eth0"} in told.traces[0]["avahi"]["addresses"]
    assert {"address": lab[1].address, "alive": True} in told.traces[0]["answers"]
    assert told.traces[0]["says"] == f"{PEER} is {lab[1].address}, and it answers"


def test_a_server_that_knows_no_local_does_no_harm_and_is_quoted(lab: Cluster, host: Host) -> None:
    server = start_name_server(host, "nxdomain")
    try:
        told = trace(host, PEER)
    finally:
        server.end()

    assert (told.exit_code, told.errors) == (0, [])
    assert f"{STUB} knows no domain local" in told.step("mdns4_minimal")["why"]
    assert told.step("mdns4_minimal")["ends"]


def test_a_server_that_claims_local_is_the_reason_why_the_plug_in_stands_back(
    lab: Cluster, host: Host
) -> None:
    server = start_name_server(host, "owner")
    try:
        told = trace(host, PEER)
    finally:
        server.end()

    assert (told.exit_code, told.errors) == (1, ["AG109"])
    step = told.step("mdns4_minimal")
    assert (step["status"], step["ends"]) == ("unavail", False)
    assert f"{STUB} claims the domain local" in step["why"]
    assert told.step("dns")["status"] == "notfound"
    assert told.traces[0]["glibc"]["addresses"] == []
    assert lab[1].address in told.traces[0]["says"]  # as Avahi knows it


def test_a_dead_server_is_where_the_time_goes(lab: Cluster, host: Host) -> None:
    server = start_name_server(host, "dead")
    try:
        told = trace(host, PEER)
        unknown = trace(host, "nosuch.local")
    finally:
        server.end()

    assert (told.exit_code, told.errors) == (1, ["AG108"])
    step = told.step("mdns4_minimal")
    assert step["elapsed_s"] > 5.0
    if step["status"] is None:  # on a busy machine glibc's ten seconds may not end within all of ours
        assert told.seconds > 11.0 and not step["ends"] and not told.step("dns")["asked"]
    else:
        assert step["status"] == "success" and step["addresses"] == [lab[1].address]
    assert f"waited for the name server {STUB}" in step["why"]
    assert (unknown.exit_code, unknown.errors) == (1, ["AG108"])
    assert max(told.seconds, unknown.seconds) < WITHIN_S


# --- names of other kinds --------------------------------------------------------------------------------


def test_bare_names_search_domains_and_addresses(lab: Cluster, host: Host) -> None:
    host.write("/etc/hosts", host.read("/etc/hosts") + "10.1.2.3 store.lan\n10.1.2.4 shelf\n")

    told = trace(host, "gpu-node-2", "store.lan", "shelf", lab[1].address)

    assert [t["name"] for t in told.traces] == [PEER, "store.lan", "shelf"]  # an address has no way
    assert told.step("files", 1)["why"] == "/etc/hosts:3"
    assert told.step("files", 2)["addresses"] == ["10.1.2.4"]
    assert told.traces[1]["avahi"]["asked"] is False
    assert "shelf" in json.dumps(told.errors) or told.errors == ["AG601"]  # a bare name must be a node's


def test_a_search_domain_is_asked_as_glibc_does(host: Host) -> None:
    host.write(RESOLV_CONF, f"search one.test two.test\noptions ndots:2 timeout:1\nnameserver {STUB}\n")
    server = start_name_server(host, "hijack")
    try:
        told = trace(host, "printer", "a.test")
    finally:
        server.end()

    assert [t["name"] for t in told.traces] == ["printer", "a.test"]
    assert all(told.step("dns", n)["addresses"] == ["198.51.100.66"] for n in (0, 1))


def test_what_glibc_cannot_read_is_said(host: Host) -> None:
    put_hosts_line(host, "files [NOT FOUND=return] mdns4_minimal dns")

    told = trace(host, PEER)

    assert told.errors == ["AG101"]
    assert told.traces[0]["steps"] == []
    assert "cannot read nsswitch.conf" in told.traces[0]["says"]


def test_a_user_without_rights_sees_the_same(lab: Cluster, host: Host) -> None:
    done = host.run([*AS_NOBODY, "avahi-gpu", "doctor", PEER])

    assert f"{PEER} is {lab[1].address}, and it answers" in done.stdout, done.stdout + done.stderr
    assert "■ found: the search ends here" in done.stdout


def test_without_avahi_the_way_is_shown_all_the_same(host: Host) -> None:
    host.stop_avahi()
    try:
        told = trace(host, PEER)
    finally:
        host.start_avahi()

    assert (told.exit_code, told.errors) == (1, ["AG304"])
    assert told.step("mdns4_minimal")["why"] == "avahi-daemon does not run"
    assert told.traces[0]["avahi"]["addresses"] == [] and told.traces[0]["avahi"]["error"]


def test_a_lan_without_ipv4_is_set_up_so_that_names_resolve(make_cluster: Callable[..., Cluster]) -> None:
    six = make_cluster(2, subnet="fd77:6")
    untouched = trace(six[0], PEER)
    set_up(six)

    told = trace(six[0], PEER)

    assert untouched.errors[:1] == ["AG116"]
    assert "IPv4 addresses only" in untouched.step("mdns4_minimal")["why"]
    assert (told.exit_code, told.errors) == (0, [])
    assert six[1].address in told.step("mdns_minimal")["addresses"]


# --- glibc itself judges the walk ------------------------------------------------------------------------

# in the host: what each module says to each name, and what glibc makes of each hosts line
ASK = f"""
import json, subprocess, sys
sys.path.insert(0, {str(REPOSITORY)!r})
from avahi_gpu.host import nss_call
modules, names, lines = json.load(sys.stdin)
said = {{m: [nss_call.ask(m, n)["status"] for n in names] for m in modules}}
found = []
for line in lines:
    with open("{NSSWITCH}", "w") as file:
        file.write(f"passwd: files\\nhosts: {{line}}\\n")
    ask = lambda name: subprocess.run(["getent", "ahosts", name], capture_output=True, timeout=30)
    found.append([ask(name).returncode == 0 for name in names])
json.dump([said, found], sys.stdout)
"""
STATUSES: dict[int, Status] = {-2: "tryagain", -1: "unavail", 0: "notfound", 1: "success"}


def generate(modules: list[str]) -> list[str]:
    """Return hosts lines of these modules with well-formed actions."""
    dice = random.Random(FIXED_SEED)
    lines = []
    for _ in range(GENERATED):
        words = []
        for module in dice.choices(modules, k=dice.randint(1, 4)):
            words.append(module)
            if dice.random() < 0.6:
                states = dice.choices(["NOTFOUND", "UNAVAIL", "TRYAGAIN", "SUCCESS"], [6, 6, 4, 2], k=2)
                signs = dice.choices(["", "!"], [4, 1], k=2)
                acts = dice.choices(["return", "continue"], k=2)
                words.append(
                    "[" + " ".join(f"{g}{s}={a}" for g, s, a in zip(signs, states, acts, strict=True)) + "]"
                )
        lines.append(" ".join(words))
    return lines


@pytest.mark.parametrize("temper", ["nxdomain", "servfail", "hijack"])
def test_glibc_walks_as_we_do(host: Host, temper: str) -> None:
    modules = ["files", "absent", "mdns4_minimal", "dns"]
    names = ["localhost", PEER, "nowhere.example"]
    lines = generate(modules)
    server = start_name_server(host, temper)
    try:
        done = host.run(
            ["python3", "-c", ASK], input=json.dumps([modules, names, lines]), check=True, timeout=100
        )
    finally:
        server.end()
    said, found = json.loads(done.stdout)

    wrong = []
    for line, saw in zip(lines, found, strict=True):
        services = parse_line(f"hosts: {line}").services
        for number, name in enumerate(names):
            _, end = walk(services, [STATUSES[said[s.name][number]] for s in services])
            if (end == "success") != saw[number]:
                wrong.append((line, name, end, saw[number]))
    assert wrong == []
    told = {status for states in said.values() for status in states}
    assert len(told) >= 3  # else the lines are worth nothing
