"""Whatever the files and the network say, every check answers and none of them breaks."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.checks.tracing import tell_story
from avahi_gpu.model import (
    AvahiAnswer,
    Facts,
    FileState,
    Lookup,
    ModuleAnswer,
    NameFacts,
    NameServer,
    PeerFacts,
    Step,
    Trace,
    Versions,
)

words = st.text(max_size=40)
contents = st.none() | st.binary(max_size=300)
addresses = st.sampled_from([None, "", "10.77.0.9", "fe80::1%eth0", "::ffff:1.2.3.4", "no address", "1.2.3"])
lookups = st.none() | st.builds(
    Lookup, words, st.lists(addresses.map(lambda a: a or "")).map(tuple), st.floats(0, 60), words
)
peers = st.builds(
    PeerFacts,
    name=words,
    host=words,
    address=addresses,
    interface=st.sampled_from([None, "eth0", "eth9"]),
    resolve_error=words,
    glibc=lookups,
    alive=st.sampled_from([True, False, None]),
    id=words,
    versions=st.builds(Versions, words, words, words, words, words),
)

servers = st.builds(
    NameServer,
    st.sampled_from(["10.77.0.254", "127.0.0.1", ""]) | words,
    st.sampled_from(["owner", "nxdomain", "nodata", "refused", "servfail", "odd", "silent", "closed"]),
    st.floats(0, 3),
    st.none() | st.booleans(),
    st.booleans(),
)
answers = st.builds(
    ModuleAnswer,
    st.sampled_from(["files", "mdns4_minimal", "mdns4", "mdns6", "dns"]) | words,
    st.sampled_from(["success", "notfound", "unavail", "tryagain", None]),
    st.lists(words, max_size=2).map(tuple),
    st.floats(0, 12),
    words,
    st.none() | st.booleans(),
    st.booleans(),
)
steps = st.builds(
    Step, words, words, st.none() | answers, st.sampled_from(["return", "continue", "merge", "wait"])
)
names = st.sampled_from(["nosuch.local", "gpu-node-2.local", "store.lan", "."]) | words
traces = st.builds(
    Trace,
    names,
    names,
    words,
    st.integers(0, 9),
    st.lists(steps, max_size=3).map(tuple),
    lookups.map(lambda found: found or Lookup("", (), 0.0, "timeout")),
    st.builds(
        AvahiAnswer, st.booleans(), st.just(()) | st.just((("fe80::1", "eth0"),)), st.floats(0, 5), words
    ),
    st.just(()) | st.just((("10.77.0.9", False),)),
    lookups,
    words,
)


def file_at(path: str, content: bytes | None, mode: int | None) -> FileState:
    return FileState(path, content, mode=mode if content is not None else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_no_check_breaks_on_hostile_facts(healthy: Facts, data: st.DataObject) -> None:
    def any_file(state: FileState) -> FileState:
        return data.draw(
            st.just(state)
            | st.builds(file_at, st.just(state.path), contents, st.sampled_from([None, 0o600, 0o644]))
        )

    facts = replace(
        healthy,
        hostname=data.draw(words),
        nsswitch=any_file(healthy.nsswitch),
        avahi_conf=any_file(healthy.avahi_conf),
        etc_hosts=any_file(healthy.etc_hosts),
        resolv_conf=any_file(healthy.resolv_conf),
        mdns_allow=any_file(healthy.mdns_allow),
        service_file=any_file(healthy.service_file),
        own_name=data.draw(lookups),
        names=NameFacts(
            servers=data.draw(st.none() | st.lists(servers, max_size=3).map(tuple)),
            own_by_module=data.draw(st.none() | st.lists(answers, max_size=2).map(tuple)),
            reverse=data.draw(lookups),
            traces=data.draw(st.none() | st.lists(traces, max_size=2).map(tuple)),
        ),
        kernel_name=data.draw(lookups),
        peers=data.draw(st.none() | st.lists(peers, max_size=3).map(tuple)),
        wanted_peers=data.draw(st.lists(words, max_size=2).map(tuple)),
        versions=data.draw(st.builds(Versions, words, words, words, words, words)),
        daemon=replace(healthy.daemon, host_name=data.draw(words), on_bus=data.draw(st.booleans())),
    )

    findings = run_checks(facts)

    assert [f.says for f in findings if "itself failed" in f.says] == []
    assert all(f.says for f in findings)
    for trace in facts.names.traces or ():
        assert tell_story(facts, trace).says
