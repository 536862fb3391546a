"""What the record of a running node says, and whose it is."""

from __future__ import annotations

import pytest

from avahi_gpu.model import JOB_SERVICE, JobPart, Service
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.record import candidate_from, cluster_apart, describe_apart, encode_record
from avahi_gpu.rendezvous.terms import Terms

OURS = Terms("train")


def service(terms: Terms) -> Service:
    own = Candidate("2" * 16, "gpu-node-2", "10.77.0.2", 29400)
    txt = encode_record(terms, own, JobPart())
    return Service("x", JOB_SERVICE, 2, 4, "gpu-node-2.local", own.address, own.port, txt)


def test_a_job_of_the_same_name_in_another_cluster_is_none_of_ours_and_is_told_of() -> None:
    other = service(Terms("train", "lab"))

    assert candidate_from(other, OURS) is None
    assert cluster_apart(other, OURS) == "lab"
    assert describe_apart(other, "lab", OURS).startswith(
        "gpu-node-2 runs a job of this name in cluster lab, this one is in default"
    )


def test_nodes_of_our_cluster_and_other_jobs_are_not_apart() -> None:
    assert cluster_apart(service(OURS), OURS) == ""
    assert cluster_apart(service(Terms("other", "lab")), OURS) == ""


OWN = Candidate("a" * 16, "gpu-node-1", "10.0.0.1", 29400, 0)


def found(published: Terms, looking: Terms) -> Candidate | None:
    txt = encode_record(published, OWN, JobPart(leader="\ud800" * 300))
    assert all(len(item) <= 255 for item in txt)
    service = Service(OWN.id, JOB_SERVICE, 2, 4, "gpu-node-1.local", OWN.address, OWN.port, txt)
    return candidate_from(service, looking)


@pytest.mark.parametrize("length", [1, 63, 199, 200, 201, 255])
@pytest.mark.parametrize("letter", ["x", "ü", "\ud800"])
def test_a_name_of_any_length_is_found_again(letter: str, length: int) -> None:
    terms = Terms(letter * length, letter * length)

    candidate = found(terms, terms)

    assert candidate is not None
    assert candidate.id == OWN.id
    assert found(terms, Terms("y" + letter * length, letter * length)) is None
