"""The way of a name in words, and the verdict on names that the user asked about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.checks.tracing import tell_story
from avahi_gpu.model import (
    AbsentPeer,
    AvahiAnswer,
    DaemonState,
    Facts,
    Lookup,
    ModuleAnswer,
    NameServer,
    Status,
    Step,
    Story,
    Trace,
)

PEER, ADDRESS = "gpu-node-7.local", "10.77.0.7"
KNOWN = AvahiAnswer(True, ((ADDRESS, "eth0"),), 0.01)
UNKNOWN = AvahiAnswer(True, (), 5.0, "nobody on the LAN answered for the host")


def step(module: str, status: Status | None, action: str, *addresses: str, after_s: float = 0.0) -> Step:
    return Step(module, "", ModuleAnswer(module, status, addresses, after_s, loaded=True), action)


def traced(*steps: Step, avahi: AvahiAnswer = KNOWN, name: str = PEER, alive: bool | None = True) -> Trace:
    found = steps[-1].answer if steps and steps[-1].answer and steps[-1].answer.status == "success" else None
    addresses = found.addresses if found else ()
    waited_s = sum(s.answer.elapsed_s for s in steps if s.answer)
    told = Lookup(name, addresses, waited_s, "" if addresses else "name not found")
    there = [*addresses, *(a for a, _ in avahi.addresses if a not in addresses)]
    return Trace(
        name, name, "files mdns4_minimal dns", 2, steps, told, avahi, tuple((a, alive) for a in there)
    )


def with_trace(facts: Facts, trace: Trace, *servers: NameServer) -> Facts:
    names = replace(facts.names, traces=(trace,), servers=servers or facts.names.servers, own_by_module=())
    return replace(facts, names=names, wanted_peers=(trace.asked,), peers=())


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


def tell(facts: Facts) -> Story:
    (trace,) = facts.names.traces or ()
    return tell_story(facts, trace)


FOUND = traced(step("files", "notfound", "continue"), step("mdns4_minimal", "success", "return", ADDRESS))
NOBODY = traced(
    step("files", "notfound", "continue"),
    step("mdns4_minimal", "notfound", "return", after_s=5.0),
    Step("dns"),
    avahi=UNKNOWN,
)
HIDDEN = traced(
    step("files", "notfound", "continue"),
    step("mdns4_minimal", "unavail", "continue"),
    step("dns", "notfound", "continue"),
)


def test_a_name_that_is_found(healthy: Facts) -> None:
    facts = with_trace(healthy, FOUND)
    story = tell(facts)

    assert failing(facts) == {}
    assert story.says == f"{PEER} is {ADDRESS}, and it answers"
    assert [s.effect for s in story.steps] == ["the search goes on", "found: the search ends here"]
    assert "10.77.0.254 knows no domain local" in story.steps[1].why


def test_an_unknown_name_is_one_error_that_says_what_it_costs(healthy: Facts) -> None:
    facts = with_trace(healthy, NOBODY)
    story = tell(facts)

    assert failing(facts) == {"AG118": "error"}
    assert "nobody on the LAN" in story.says and "5.0 s" in story.says
    assert (story.steps[2].words, story.steps[2].effect) == ("", "not asked")


def test_a_server_that_claims_local_is_the_cause_and_the_name_no_second_error(healthy: Facts) -> None:
    facts = with_trace(healthy, HIDDEN, NameServer("10.0.0.9", "owner", 0.01))
    story = tell(facts)

    assert failing(facts) == {"AG109": "error"}
    assert "10.0.0.9 claims the domain local" in story.steps[1].why
    assert ADDRESS in story.says and "10.0.0.9" in story.says


def test_a_dead_server_is_named_where_the_time_goes(healthy: Facts) -> None:
    slow = traced(step("mdns4_minimal", "success", "return", ADDRESS, after_s=10.0))
    facts = with_trace(healthy, slow, NameServer("10.77.0.254", "silent", 2.5))

    assert failing(facts) == {"AG108": "error"}
    assert "waited for the name server 10.77.0.254" in tell(facts).steps[0].why
    assert "after 10.0 s" in tell(facts).says


def test_no_daemon_is_said_and_is_the_one_error(healthy: Facts) -> None:
    gone = AvahiAnswer(True, (), 0.0, "avahi-daemon is not on the D-Bus system bus")
    facts = with_trace(healthy, traced(step("mdns4_minimal", "unavail", "continue"), avahi=gone))
    facts = replace(facts, daemon=DaemonState(installed=True, bus_reachable=True))

    assert failing(facts) == {"AG304": "error"}
    assert tell(facts).steps[0].why == "avahi-daemon does not run"


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (traced(step("files", "success", "return", "10.9.9.9")), "(files), but 10.77.0.7 to Avahi"),
        (traced(step("mdns4", "success", "return", ADDRESS), alive=False), "nobody answers there"),
        (traced(step("mdns4", "success", "return", ADDRESS), alive=None), f"{PEER} is {ADDRESS}"),
        (replace(HIDDEN, glibc=Lookup(PEER, (), 11.0, "timeout")), "did not end within 11 s"),
        (replace(HIDDEN, steps=(), defect="line 3: bad"), "cannot read nsswitch.conf (line 3: bad)"),
        (traced(avahi=AvahiAnswer(False), name="host.lan"), "host.lan does not resolve"),
    ],
)  # fmt: skip
def test_other_ends(healthy: Facts, trace: Trace, words: str) -> None:
    assert words in tell(with_trace(healthy, trace)).says


def test_a_machine_that_is_off_is_a_warning_another_ones_name_an_error(healthy: Facts) -> None:
    off = with_trace(healthy, traced(step("mdns4", "success", "return", ADDRESS), alive=False))
    lost = with_trace(
        healthy, traced(step("dns", "notfound", "continue"), avahi=AvahiAnswer(False), name="a.lan")
    )

    assert failing(off) == {"AG118": "warn"}
    assert failing(lost) == {"AG119": "error"}


def test_where_no_name_server_answers_the_advice_for_a_name_of_the_internet_is_to_correct_that(
    healthy: Facts,
) -> None:
    trace = traced(step("dns", "unavail", "continue"), avahi=AvahiAnswer(False), name="example.com")
    shut, works = (NameServer("192.0.2.1", says, 0.0) for says in ("closed", "nxdomain"))

    def advice(server: NameServer) -> str:
        return next(f.hint for f in run_checks(with_trace(healthy, trace, server)) if f.id == "AG119")

    assert "/etc/resolv.conf" in advice(shut)
    assert "spelled" in advice(works)


def test_a_listed_node_and_a_bare_name_are_judged_with_the_nodes(healthy: Facts) -> None:
    bare = replace(NOBODY, asked="gpu-node-7")
    listed = replace(NOBODY, asked="gpu-node-2.local", name="gpu-node-2.local")

    assert failing(with_trace(healthy, bare)) == {"AG601": "error"}
    facts = replace(with_trace(healthy, listed), peers=healthy.peers)
    assert failing(facts) == {}


def test_a_host_name_of_a_node_that_was_there_before_is_a_missing_node(healthy: Facts) -> None:
    seen = AbsentPeer(PEER, ADDRESS, "memory", alive=False, seen_ago_s=60.0)
    facts = replace(with_trace(healthy, NOBODY), absent=(seen,))

    assert failing(facts) == {"AG601": "error"}


@pytest.mark.parametrize(
    ("module", "name", "allow", "why"),
    [
        ("mdns4_minimal", "a.b.local", None, "host.local alone"),
        ("mdns4", "host.lan", b".local\n", "mdns.allow does not allow"),
        ("mdns6_minimal", PEER, None, "IPv6 addresses only"),
    ],
)
def test_why_a_module_stands_back(
    healthy: Facts, module: str, name: str, allow: bytes | None, why: str
) -> None:
    facts = replace(healthy, mdns_allow=replace(healthy.mdns_allow, content=allow))
    facts = with_trace(facts, traced(step(module, "unavail", "continue"), name=name))

    assert why in tell(facts).steps[0].why


def test_a_module_that_is_not_there_is_said(healthy: Facts) -> None:
    absent = Step("wins", "", ModuleAnswer("wins", "unavail", error="cannot open", loaded=False), "continue")

    assert "no such module" in tell(with_trace(healthy, traced(absent))).steps[0].why


def test_what_could_not_be_followed_is_unknown(healthy: Facts) -> None:
    facts = replace(healthy, names=replace(healthy.names, traces=None), wanted_peers=("x.local",))

    assert {f.verdict for f in run_checks(facts) if f.id in ("AG118", "AG119")} == {"unknown"}


def test_a_step_that_the_doctor_could_not_wait_for_is_said_to_be_late_and_why(healthy: Facts) -> None:
    answer = ModuleAnswer("mdns4_minimal", None, elapsed_s=11.0, error="no answer in time", late=True)
    late = traced(step("files", "notfound", "continue"), Step("mdns4_minimal", "", answer, "wait"))
    late = replace(late, glibc=Lookup(PEER, (), 11.0, "timeout"))
    facts = with_trace(healthy, late, NameServer("10.77.0.254", "silent", 2.5))

    story = tell(facts)

    assert (story.steps[1].words, story.steps[1].effect) == ("no answer in time", "glibc still waits")
    assert story.steps[1].why == "waited for the name server 10.77.0.254, which does not answer"
    assert failing(facts) == {"AG108": "error"}
