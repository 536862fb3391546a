"""What the record of a running node says, and whose it is."""

from __future__ import annotations

from avahi_gpu.model import JOB_SERVICE, Service
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.record import candidate_from, cluster_apart, describe_apart, encode_record
from avahi_gpu.rendezvous.terms import Terms

OURS = Terms("train")


def service(terms: Terms) -> Service:
    own = Candidate("2" * 16, "gpu-node-2", "10.77.0.2", 29400)
    txt = encode_record(terms, own, state="look")
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
