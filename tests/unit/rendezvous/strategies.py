"""Hypothesis strategies: any message of the protocol, of few ids, tokens and hosts, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from avahi_gpu.rendezvous import messages as m

IDS = [f"{number:016x}" for number in (1, 2, 5, 7, 9)]
ids = st.sampled_from(IDS)
hosts = st.sampled_from(["node-1", "node-2", "node-5", "node-7", "node-10", "ähm", "n" * 255])
addresses = st.sampled_from(["10.77.0.1", "10.77.0.2", "10.77.0.5", "10.77.0.7", "fd00::1"])
ports = st.sampled_from([1, 29400, 29401, 42000, 65535])
epochs = st.sampled_from([0, 1, 2, 3, 2**53])
texts = st.text(max_size=30) | st.just("x" * 500)
tokens = st.builds(m.Token, epochs, ids)
records = st.builds(
    m.Record, ids, hosts, addresses, ports, st.sampled_from([-1, 0, 0, 5, 10**6]), st.integers(0, 4)
)
seats = st.builds(m.Seat, ids, hosts, addresses, ports)
known = st.lists(records, max_size=3).map(tuple)
skills = st.builds(
    m.Skills,
    min_nodes=st.just(0),
    torch=st.sampled_from(["", "2.13.0", "1.0"]),
    digest=texts,
    script=st.text(max_size=m.SCRIPT_MAX),
)


def anything() -> st.SearchStrategy[m.Message]:
    """Any message of the protocol."""
    return st.one_of(
        st.builds(
            m.Hello,
            records,
            st.sampled_from(["job", "job", "job", "other"]),
            st.sampled_from(["default", "default", "lab"]),
            skills,
            epochs,
            st.booleans(),
            st.sampled_from([m.PROTOCOL, m.PROTOCOL, 99]),
            known,
        ),
        st.builds(m.Who, st.sampled_from(["job", "other"]), st.just("default")),
        st.builds(m.Here, records),
        st.builds(m.Welcome, records, epochs),
        st.builds(m.Redirect, records, st.none() | records),
        st.builds(m.Refuse, texts, st.booleans()),
        st.builds(m.Beat, st.none() | tokens, known),
        st.builds(
            m.Waiting, st.lists(hosts, max_size=3).map(tuple), st.integers(0, 9), st.integers(0, 9), texts
        ),
        st.builds(m.Ready, ports, epochs, texts),
        st.builds(m.Prepare, tokens, st.lists(seats, min_size=1, max_size=4).map(tuple), ports, ports),
        st.builds(m.Ack, tokens),
        st.builds(m.Nack, tokens, texts, st.lists(ids, max_size=2).map(tuple)),
        st.builds(m.Commit, tokens),
        st.builds(m.Abort, tokens, texts),
        st.builds(m.Regroup, tokens, texts),
        st.builds(m.Bye, st.sampled_from(["finished", "failed", "left"]), texts),
    )
