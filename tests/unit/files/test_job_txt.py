"""What is read of a job's node from its record, whatever stands there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.avahi.records import MAX_TXT_BYTES, encode_txt
from avahi_gpu.files.job_txt import NODES_MAX, TIME_MAX, TIME_MIN, read_job_node
from avahi_gpu.model import JOB_SERVICE, JobNode, JobPart, Service
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.record import encode_record
from avahi_gpu.rendezvous.terms import Terms

ID = "0123456789abcdef"
TERMS = Terms("llama", "lab", 2, 3, skills=Skills(processes=4))
OWN = Candidate(ID, "gpu-node-2", "10.77.0.2", 29400, 7)
RUNS = JobPart(
    running=True,
    epoch=3,
    leader="gpu-node-1",
    leader_id="f" * 16,
    rank=1,
    size=3,
    since=1_800_000_100,
    began=1_800_000_000,
    restarts=2,
)


def read(*txt: bytes) -> JobNode | None:
    service = Service(f"gpu-node-2-{ID}", JOB_SERVICE, 2, 4, "gpu-node-2.local", "10.77.0.2", 29400, txt)
    return read_job_node(service, "eth0")


def read_more(*more: str) -> JobNode:
    node = read(f"id={ID}".encode(), b"job=llama", *(text.encode() for text in more))
    assert node is not None
    return node


@pytest.mark.parametrize(
    "part", [RUNS, JobPart(), JobPart(epoch=3, leader="x", since=1_800_000_100, restarts=1)]
)
def test_what_a_node_writes_is_read_as_it_was_meant(part: JobPart) -> None:
    assert read(*encode_record(TERMS, OWN, part)) == JobNode(
        name=f"gpu-node-2-{ID}",
        id=ID,
        host="gpu-node-2",
        address="10.77.0.2",
        interface="eth0",
        port=29400,
        job="llama",
        cluster="lab",
        min_nodes=2,
        max_nodes=3,
        processes=4,
        priority=7,
        part=part,
    )


def test_the_record_of_the_longest_names_still_fits() -> None:
    terms = Terms("j" * 300, "c" * 300, 2, 9999, skills=Skills(processes=999))
    part = JobPart(True, 10**9, "l" * 300, "f" * 16, 9998, 9999, TIME_MAX, TIME_MAX, 10**6)

    assert len(encode_txt(encode_record(terms, OWN, part))) <= MAX_TXT_BYTES


def test_a_record_of_an_older_version_is_a_node_all_the_same() -> None:
    part = read_more("state=run", "epoch=2", "leader=gpu-node-1").part

    assert part == JobPart(running=True, epoch=2, leader="gpu-node-1")


@pytest.mark.parametrize("txt", [(), (b"job=x",), (f"id={ID}".encode(),), (b"job=", f"id={ID}".encode()),
                                 (b"job=x", b"id=0123"), (b"job=x", b"id=0123456789ABCDEF")])  # fmt: skip
def test_what_names_no_job_or_has_no_id_is_none(txt: tuple[bytes, ...]) -> None:
    assert read(*txt) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", (3, 3)), ("2:3", (2, 3)), ("3:2", (0, 0)), ("0:2", (0, 0)), ("2:", (0, 0)), ("", (0, 0)),
     ("-1", (0, 0)), ("99999", (0, 0)), ("2:3:4", (0, 0)), ("٣", (0, 0))],
)  # fmt: skip
def test_numbers_of_nodes_make_sense_or_are_not_known(text: str, expected: tuple[int, int]) -> None:
    node = read_more(f"nodes={text}")

    assert (node.min_nodes, node.max_nodes) == expected


@pytest.mark.parametrize("key", ["rank", "size", "since", "began", "restarts", "epoch"])
@pytest.mark.parametrize("value", ["", "-1", "x", "1e3", "9" * 12, "٣", "1 2"])
def test_senseless_values_are_as_if_not_there(key: str, value: str) -> None:
    assert read_more("state=run", f"{key}={value}").part == JobPart(running=True)


def test_who_waits_has_no_rank_whatever_it_says() -> None:
    part = read_more("state=look", "rank=0", "size=3").part

    assert (part.rank, part.size) == (None, None)


items: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        st.binary(max_size=260),
        st.tuples(
            st.sampled_from(["id", "job", "cluster", "nodes", "procs", "prio", "state", "epoch", "leader",
                             "lid", "rank", "size", "since", "began", "restarts"]),
            st.text(max_size=40) | st.integers().map(str) | st.sampled_from([ID, "run", "2:3"]),
        ).map(lambda pair: f"{pair[0]}={pair[1]}".encode(errors="replace")),
    ),
    max_size=80,
)  # fmt: skip


@given(items)
def test_anything_is_read_and_bounded(txt: list[bytes]) -> None:
    node = read(f"id={ID}".encode(), b"job=llama", *txt)

    assert node is not None
    assert 0 <= node.min_nodes <= node.max_nodes <= NODES_MAX
    assert node.part.running or node.part.rank is None
    assert node.part.since is None or TIME_MIN <= node.part.since <= TIME_MAX
    assert all(text.isprintable() for text in (node.job, node.cluster, node.part.leader))
    assert len(node.job) + len(node.cluster) + len(node.part.leader) < 800
