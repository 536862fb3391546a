"""Which nodes can work together, and what is said where they cannot."""

from __future__ import annotations

import pytest

from avahi_gpu.rendezvous.messages import PROTOCOL, TEXT_MAX, Skills
from avahi_gpu.rendezvous.terms import (
    Terms,
    refuse_mismatch,
    refuse_stranger,
    release,
    show_nodes,
    warn_minority,
    warn_mismatch,
)
from tests.unit.rendezvous.desk import hello, node

OURS = Terms(
    "job",
    min_nodes=2,
    max_nodes=3,
    skills=Skills(
        min_nodes=2, max_nodes=3, torch="2.13.0+cu126", nccl="2.27.3", cuda="12.6", python="3.11", digest="aa"
    ),
)


def mismatch(*, terms: Terms = OURS, version: int = PROTOCOL, **skills: object) -> str | None:
    return refuse_mismatch(terms, hello(node(7), version=version, skills=Skills(**skills)), "node-1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.13.0+cu126", "2.13"), ("2.5", "2.5"), ("2.13.0a0+git1", "2.13"), ("2", "2"), ("", "")],
)
def test_the_release_of_a_version(version: str, expected: str) -> None:
    assert release(version) == expected


def test_another_patch_release_or_build_of_torch_is_fine() -> None:
    assert mismatch(torch="2.13.1+cpu", nccl="2.27.9") is None


def test_versions_that_are_not_told_are_fine() -> None:
    assert mismatch() is None


@pytest.mark.parametrize(
    ("skills", "words"),
    [
        ({"torch": "2.12.1"}, ("node-7", "2.12.1", "node-1", "2.13.0")),
        ({"nccl": "2.26.2"}, ("node-7", "NCCL 2.26.2", "2.27.3")),
        ({"cuda": "12.8"}, ("node-7", "CUDA 12.8", "node-1", "12.6")),
        ({"python": "3.10"}, ("node-7", "Python 3.10", "node-1", "3.11")),
        ({"min_nodes": 3, "max_nodes": 3}, ("node-7", "--nnodes 3", "node-1", "--nnodes 2:3")),
    ],
)
def test_a_mismatch_names_both_hosts_and_both_values(
    skills: dict[str, object], words: tuple[str, ...]
) -> None:
    refusal = mismatch(**skills)

    assert refusal is not None
    assert all(word in refusal for word in words), refusal


def test_another_version_of_the_protocol_is_refused() -> None:
    refusal = mismatch(version=PROTOCOL + 1)

    assert refusal is not None
    assert "the same avahi-gpu" in refusal


def test_skew_of_versions_can_be_allowed_but_not_of_numbers() -> None:
    allowed = Terms("job", min_nodes=2, max_nodes=3, allow_skew=True, skills=OURS.skills)

    assert mismatch(terms=allowed, torch="1.0", nccl="1.0", cuda="9", python="3.9") is None
    assert mismatch(terms=allowed, min_nodes=2, max_nodes=2) is not None


def test_a_node_of_another_job_or_cluster_is_a_stranger() -> None:
    assert refuse_stranger(OURS, hello(node(7))) is None
    assert "'other'" in str(refuse_stranger(OURS, hello(node(7), job="other")))
    assert "'lab'" in str(refuse_stranger(OURS, hello(node(7), cluster="lab")))


def test_another_script_is_only_warned_of() -> None:
    assert warn_mismatch(OURS, hello(node(7), skills=Skills(digest="aa")), "node-1") == ""
    assert warn_mismatch(OURS, hello(node(7), skills=Skills()), "node-1") == ""
    assert "node-7" in str(warn_mismatch(OURS, hello(node(7), skills=Skills(digest="bb")), "node-1"))


@pytest.mark.parametrize(
    ("there", "here", "says"),
    [
        ("train.py", "train.py", "the training script on node-7 differs from the one on node-1"),
        ("", "train.py", "the training script on node-7 differs from the one on node-1"),
        ("train.py", "allreduce.py", "node-7 runs train.py, node-1 allreduce.py"),
    ],
)
def test_another_script_is_named_with_what_may_follow(there: str, here: str, says: str) -> None:
    ours, theirs = Terms("job", skills=Skills(digest="aa", script=here)), Skills(digest="bb", script=there)
    assert (
        warn_mismatch(ours, hello(node(7), skills=theirs), "node-1") == f"warning: {says}: the job may hang"
    )


def test_a_warning_of_scripts_fits_into_a_message() -> None:
    ours, theirs = (
        Terms("job", skills=Skills(digest="a", script="a" * 100)),
        Skills(digest="b", script="b" * 100),
    )
    assert len(warn_mismatch(ours, hello(node(7), skills=theirs), "h" * 400)) == TEXT_MAX


def test_a_majority_is_more_than_half() -> None:
    assert [Terms("j", min_nodes=a, max_nodes=b).majority for a, b in ((1, 1), (1, 2), (2, 3), (2, 4))] == [
        True,
        False,
        True,
        False,
    ]


def test_a_minority_is_warned_of_with_what_to_give_instead() -> None:
    assert warn_minority(Terms("j", min_nodes=2, max_nodes=3)) == ""
    assert "--nnodes 3:4 only one can" in warn_minority(Terms("j", min_nodes=2, max_nodes=4))


def test_numbers_are_shown_as_the_flag_takes_them() -> None:
    assert (show_nodes(3, 3), show_nodes(2, 3)) == ("3", "2:3")
