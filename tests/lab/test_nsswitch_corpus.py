"""Real and made-up nsswitch.conf files under real glibc: our judgement is what it does, our repair works.

``nsswitch_oracle`` tells how it is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from avahi_gpu.files.nsswitch import decode, encode, judge, parse, repair
from tests.contract.corpus import load
from tests.contract.test_corpus_nsswitch import machine_of, wanted
from tests.lab.nsswitch_oracle import Oracle, consult
from tests.lab.nsswitch_variants import make_variants

CASES = load("nsswitch.jsonl")
SEED = int(os.environ.get("FUZZ_SEED", "2033"))
VARIANTS = int(os.environ.get("FUZZ_NSSWITCH", "150"))


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with consult(tmp_path_factory.mktemp("modules")) as oracle:
        yield oracle


@pytest.fixture
def judges(oracle: Oracle) -> Oracle:
    """Whether a line asks mDNS first shows in both worlds only."""
    if oracle.modules is None:
        pytest.skip("there is no C compiler (cc) to make the modules of other programs with")
    return oracle


def text_of(case: dict[str, Any]) -> str:
    return str(case["text"])


@pytest.mark.skipif(not CASES, reason="the corpus is not at hand")
def test_the_judgement_of_every_case_is_what_glibc_does(judges: Oracle) -> None:
    texts = [text_of(case) for case in CASES]

    answers = judges.ask_everywhere(texts)

    wrong = [
        (case["id"], answer)
        for case, answer in zip(CASES, answers, strict=True)
        if answer.finds != judge(text_of(case)).asks_first
    ]
    assert wrong == []
    assert {answer.finds for answer in answers} == {True, False}


@pytest.mark.skipif(not CASES, reason="the corpus is not at hand")
def test_every_case_that_can_run_resolves_peers_by_its_expected_file(oracle: Oracle) -> None:
    """The expected file, and ours, which the contract test holds to be the same bytes."""
    cases = [case for case in CASES if wanted(case) is not None]
    files = [decode(repair(text_of(case).encode(), machine_of(case)).content or b"") for case in cases]
    right = [text_of(case) for case in CASES if case["untouched"]]
    assert len(files) > 30 and len(right) > 20

    answers = oracle.ask_everywhere([*files, *right])

    names = [*(case["id"] for case in cases), *(case["id"] for case in CASES if case["untouched"])]
    assert [n for n, a in zip(names, answers, strict=True) if not (a.finds and a.users)] == []


@pytest.mark.timeout(900)  # with the long list of make fuzz
def test_files_of_every_kind_are_judged_and_repaired_as_glibc_reads_them(judges: Oracle) -> None:
    texts = make_variants(VARIANTS, SEED)
    repairs = [repair(encode(text)) for text in texts]
    mended = {n: decode(r.content) for n, r in enumerate(repairs) if r.content is not None}

    before = judges.ask_everywhere(texts)
    after = dict(zip(mended, judges.ask_everywhere(list(mended.values())), strict=True))

    misjudged = [(t, a) for t, a in zip(texts, before, strict=True) if a.finds != judge(t).asks_first]
    assert misjudged == []
    assert [(t, a) for t, a in zip(texts, before, strict=True) if a.users == bool(parse(t).defects)] == []
    vain = [(texts[n], repairs[n].says, mended[n]) for n, a in after.items() if not (a.finds and a.users)]
    assert vain == []
    # a line that is read only once it ends in a newline may do without files: that is its owner's will
    read = {n for n in after if (p := parse(texts[n])).hosts is p.last_hosts}
    lost = [mended[n] for n, a in after.items() if n in read and before[n].localhost > a.localhost]
    assert lost == []
    right = [(t, r) for t, r, a in zip(texts, repairs, before, strict=True) if r.wanted and a.finds]
    assert right == []  # what works in every world is not touched unasked
    assert len(mended) > VARIANTS // 4
