"""From records to jobs: true records make the job that runs, and no record of others changes it unsaid."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.files.job_groups import NOTES_MAX, make_jobs
from avahi_gpu.model import Job, JobNode, JobPart

START = 1_800_000_000


def node(
    number: int, part: JobPart | None = None, *, job: str = "llama", cluster: str = "default"
) -> JobNode:
    host = f"gpu-node-{number}"
    id = f"{number:016x}"
    return JobNode(
        name=f"{host}-{id}",
        id=id,
        host=host,
        address=f"10.77.0.{number}",
        interface="eth0",
        port=29400,
        job=job,
        cluster=cluster,
        min_nodes=2,
        max_nodes=3,
        part=part or JobPart(since=START),
    )


def in_round(*numbers: int, epoch: int = 1, since: int = START, job: str = "llama") -> list[JobNode]:
    """Return the nodes of a round as they publish themselves, the first one leading."""
    return [
        node(
            number,
            JobPart(
                running=True,
                epoch=epoch,
                leader=f"gpu-node-{numbers[0]}",
                leader_id=f"{numbers[0]:016x}",
                rank=rank,
                size=len(numbers),
                since=since,
                began=since,
            ),
            job=job,
        )
        for rank, number in enumerate(numbers)
    ]


def change(one: JobNode, **part: object) -> JobNode:
    return replace(one, part=replace(one.part, **part))  # type: ignore[arg-type]


def only(nodes: Sequence[JobNode]) -> Job:
    (job,) = make_jobs(nodes)
    return job


def hosts(nodes: Sequence[JobNode]) -> list[str]:
    return [n.host.removeprefix("gpu-node-") for n in nodes]


def test_a_round_is_its_members_by_rank_with_their_leader() -> None:
    job = only(in_round(2, 1, 3, epoch=4))

    assert (job.name, job.cluster, job.running, job.round, job.size) == ("llama", "default", True, 4, 3)
    assert hosts(job.members) == ["2", "1", "3"]
    assert job.leader is not None
    assert (job.leader.host, job.leader_host) == ("gpu-node-2", "gpu-node-2")
    assert (job.since, job.began, job.restarts, job.wants) == (START, START, 0, 0)
    assert (job.waiting, job.notes) == ((), ())


def test_who_waits_beside_a_round_is_a_spare_of_it() -> None:
    job = only([*in_round(1, 2, 3), node(4)])

    assert hosts(job.members) == ["1", "2", "3"]
    assert hosts(job.waiting) == ["4"]
    assert job.notes == ()


def test_a_job_without_a_round_says_how_many_it_waits_for() -> None:
    job = only([replace(node(1), min_nodes=3)])

    assert not job.running
    assert (job.wants, job.min_nodes, job.round, job.leader, job.since) == (2, 3, None, None, START)


def test_jobs_and_clusters_are_kept_apart_and_in_order() -> None:
    jobs = make_jobs([node(1, job="b"), node(2, job="a10"), node(3, job="a9"), node(1, job="b", cluster="a")])

    assert [(j.cluster, j.name) for j in jobs] == [
        ("a", "b"),
        ("default", "a9"),
        ("default", "a10"),
        ("default", "b"),
    ]


def test_how_long_a_job_runs_is_told_although_all_clocks_differ() -> None:
    """A member of the first round, five minutes ago, and one of the second round alone."""
    first, second = in_round(1, 2, epoch=2)
    first = change(first, began=START - 300, restarts=1)
    second = change(second, since=START + 86400, began=START + 86400)

    job = only([first, second])

    assert (job.since, job.began, job.restarts) == (START, START - 300, 1)
    assert job.notes == ("the clocks of its members are 86400 s apart",)
    own = only([first, replace(second, self=True)])
    assert (own.since, own.began) == (START + 86400, START + 86400 - 300)


def test_a_record_of_an_earlier_start_is_said_and_left_out() -> None:
    stale = replace(in_round(3, 1, 2)[0], id="e" * 16, name="stale")

    job = only([*in_round(1, 2, 3, epoch=2), stale])

    assert hosts(job.members) == ["1", "2", "3"]
    assert job.waiting == ()
    assert job.notes == ("a record of gpu-node-3 is of a start that has ended",)
    more = only([*in_round(1, 2, 3, epoch=2), stale, replace(stale, id="d" * 16, name="staler")])
    assert more.notes == ("2 records of gpu-node-3 are of starts that have ended",)


def test_a_member_that_is_lost_stays_apart_until_its_record_has_gone() -> None:
    lost = in_round(1, 2, 3)[0]

    job = only([*in_round(2, 3, epoch=2), lost])

    assert hosts(job.members) == ["2", "3"]
    assert hosts(job.waiting) == ["1"]
    assert job.notes == ("the record of gpu-node-1 tells of round 1 under gpu-node-1",)


def test_a_leader_and_members_that_are_not_seen_are_said() -> None:
    job = only(in_round(1, 2, 3)[1:])

    assert (job.leader, job.leader_host, job.size) == (None, "gpu-node-1", 3)
    assert job.notes == ("its leader, gpu-node-1, is not seen", "1 of its 3 members not seen: rank 0")


def test_contradictions_are_said() -> None:
    one, two, three = in_round(1, 2, 3)

    assert only([one, change(two, rank=2), three]).notes == (
        "2 nodes say that they have rank 2: gpu-node-2, gpu-node-3",
    )
    assert "do not agree on how many" in only([one, two, change(three, size=7)]).notes[0]
    assert (
        "different --nnodes: 2:3 on gpu-node-1, gpu-node-2; 3 on gpu-node-3"
        in only([one, two, replace(three, min_nodes=3)]).notes[0]
    )
    assert only([change(one, rank=1), change(two, rank=0), three]).notes[0] == (
        "gpu-node-1 leads and says that its rank is 1, not 0"
    )


def test_two_halves_of_a_job_are_two_entries_and_both_say_so() -> None:
    jobs = make_jobs([*in_round(1, 2), *in_round(3, 4, epoch=2)])

    assert [(hosts(j.members), j.round) for j in jobs] == [(["3", "4"], 2), (["1", "2"], 1)]
    assert {j.notes for j in jobs} == {("2 groups run this job side by side",)}


times = st.none() | st.integers(START - 10**6, START + 10**6)
parts = st.builds(
    JobPart,
    running=st.booleans(),
    epoch=st.integers(0, 3),
    leader=st.sampled_from(["", "gpu-node-1", "gpu-node-2"]),
    leader_id=st.sampled_from(["", f"{1:016x}", f"{2:016x}"]),
    rank=st.none() | st.integers(0, 3),
    size=st.none() | st.integers(1, 4),
    since=times,
    began=times,
    restarts=st.integers(0, 3),
)
strangers = st.builds(
    lambda number, part, job, name, size: replace(
        node(number, part, job=job), name=name, min_nodes=min(size), max_nodes=max(size)
    ),
    st.integers(1, 5),
    parts,
    st.sampled_from(["llama", "other"]),
    st.text("abc", min_size=1, max_size=3),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(strangers, max_size=10, unique_by=lambda n: n.name), st.randoms(use_true_random=False))
def test_whatever_the_records_say_each_is_told_once_and_their_order_means_nothing(
    nodes: list[JobNode], chance: random.Random
) -> None:
    jobs = make_jobs(nodes)
    told = [n for job in jobs for n in job.nodes]

    assert len(told) == len({n.name for n in told})
    assert {n.name for n in told} <= {n.name for n in nodes}
    assert {(n.job, n.host) for n in told} == {(n.job, n.host) for n in nodes}
    for job in jobs:
        assert job.nodes
        assert all(n.job == job.name for n in job.nodes)
        assert all(n.part.running for n in job.members)
        assert job.leader is None or job.leader in job.members
        assert len(job.notes) <= NOTES_MAX
        assert job.since is None or job.began is None or job.began <= job.since
        if len(job.members) != job.size and job.members:
            assert job.notes
    shuffled = list(nodes)
    chance.shuffle(shuffled)
    assert make_jobs(shuffled) == jobs


@settings(max_examples=100)
@given(strangers, st.integers(2, 3))
def test_no_single_record_changes_who_runs_a_round_of_others(stranger: JobNode, size: int) -> None:
    """It may pretend to be a member of it, which then contradicts the round's size, or of another one."""
    stranger = replace(stranger, host="gpu-node-9", address="10.77.0.9", id="9" * 16)
    true = in_round(*range(1, size + 1))

    job = next(j for j in make_jobs([*true, stranger]) if j.name == "llama" and len(j.members) >= size)

    assert set(true) <= set(job.members)
    assert job.leader == true[0]
    if stranger in job.members:
        assert job.notes
    assert job.since == START or stranger in job.members
