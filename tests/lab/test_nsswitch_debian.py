"""Debian's edit of nsswitch.conf and ours: alike where Debian's works, and ours works where it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from avahi_gpu.files.nsswitch import decode, encode, repair
from tests.contract.test_corpus_nsswitch import CASES, machine_of
from tests.lab.nsswitch_debian import edit, find_script
from tests.lab.nsswitch_oracle import Answer, Oracle, consult
from tests.lab.nsswitch_shapes import PAGE, measure, with_table

SCRIPT = find_script() or ""
# what is another program's, an administrator's who may have meant it, or nobody's who has glibc
OTHERS = frozenset({"managed", "ask", "not-applicable"})

pytestmark = pytest.mark.skipif(not SCRIPT, reason="Debian's libnss-mdns is not installed, or is an old one")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with consult(tmp_path_factory.mktemp("modules")) as oracle:
        if oracle.modules is None:
            pytest.skip("there is no C compiler (cc) to make the modules of other programs with")
        yield oracle


def test_the_page_tells_what_becomes_of_each_shape(oracle: Oracle) -> None:
    page = PAGE.read_text(encoding="utf-8")

    rows = measure(oracle, SCRIPT)

    assert page == with_table(page, rows), "run: python -m tests.lab.nsswitch_shapes"
    # where Debian's edit works ours does alike; where it leaves peers unfound, ours finds them or is offered
    assert [r.shape for r in rows if r.by_debian.finds and r.by_us != r.by_debian] == []
    offered = [r.shape for r in rows if not r.by_us.finds]
    assert offered == ["IPv6 alone"]


@pytest.mark.skipif(not CASES, reason="the corpus is not at hand")
def test_on_real_files_both_edits_resolve_alike_and_ours_where_debians_does_not(oracle: Oracle) -> None:
    texts = [str(case["text"]) for case in CASES]
    debians = edit(oracle.lab[0], SCRIPT, texts)
    repairs = [repair(encode(text), machine_of(case)) for text, case in zip(texts, CASES, strict=True)]
    ours = [
        decode(r.content) if r.content is not None and r.wanted else text
        for r, text in zip(repairs, texts, strict=True)
    ]
    # what neither touches needs no trial
    tried = [n for n, text in enumerate(texts) if not text == debians[n] == ours[n]]
    files = [*(debians[n] for n in tried), *(ours[n] for n in tried)]
    worlds = [oracle.ask(files, dns=True), oracle.ask(files, full=True, dns=True)]
    by_debian: dict[int, list[Answer]] = {n: [w[k] for w in worlds] for k, n in enumerate(tried)}
    by_us = {n: [w[len(tried) + k] for w in worlds] for k, n in enumerate(tried)}

    edited = [n for n in tried if debians[n] != texts[n]]
    assert len(edited) > 20
    fine = [n for n in edited if all(a.finds for a in by_debian[n])]
    unlike = [
        (CASES[n]["id"], by_debian[n], by_us[n])
        for n in fine
        if repairs[n].verdict not in OTHERS and by_us[n] != by_debian[n]
    ]
    assert unlike == []
    # a malformed action with more than one meaning is for a person to correct: said first, and not guessed
    by_hand = [n for n in tried if repairs[n].verdict == "critical" and repairs[n].content is None]
    left = {n for n in tried if repairs[n].verdict in OTHERS} | {*by_hand}
    broken = [n for n in tried if n not in fine and n not in left]
    assert len(broken) > 5
    assert [CASES[n]["id"] for n in broken if not all(a.finds and a.users for a in by_us[n])] == []
    # and none of ours loses what Debian's has
    assert [
        CASES[n]["id"]
        for n in broken
        for debian, us in zip(by_debian[n], by_us[n], strict=True)
        if (debian.localhost and not us.localhost) or (debian.dns and not us.dns)
    ] == []
