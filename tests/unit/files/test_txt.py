"""The TXT of a node: what we write comes back, and what anybody else writes does no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import txt
from avahi_gpu.model import DEFAULT_CLUSTER, Gpu, NodeFacts, Versions

ID = "0123456789ab"
ID_ITEM = b"id=0123456789ab"

words = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12
)  # what comes back as it was: visible, short
# three of them fit into the item even where every byte has to be escaped
# short enough that three of them fit even with every character escaped
names = st.lists(words, min_size=1, max_size=3).map(" ".join).filter(lambda name: len(name.encode()) <= 20)
versions = st.builds(
    Versions,
    **dict.fromkeys(
        ("python", "torch", "cuda", "nccl", "driver"), st.just("") | st.from_regex(r"\A[0-9.+a-z]{1,24}\Z")
    ),
)
models = st.builds(Gpu, names, st.integers(0, 10**6), st.sampled_from(["", "8.9", "9.0", "12.0"]))
nodes = st.builds(
    NodeFacts,
    id=st.from_regex(r"\A[0-9a-f]{12}\Z"),
    cluster=words,
    gpus=st.lists(st.tuples(models, st.integers(1, 4)), max_size=3).map(
        lambda groups: tuple(gpu for gpu, count in groups for _ in range(count))
    ),
    versions=versions,
    priority=st.integers(-txt.MAX_PRIORITY, txt.MAX_PRIORITY),
    calls_itself=st.just("") | words,
)
anything = st.builds(
    NodeFacts,
    id=st.just(ID),
    cluster=st.text(max_size=300),
    gpus=st.lists(
        st.builds(Gpu, st.text(max_size=300), st.integers(), st.text(max_size=300)), max_size=300
    ).map(tuple),
    versions=st.builds(Versions, *[st.text(max_size=300)] * 5),
    priority=st.integers(),
    calls_itself=st.text(max_size=300),
)
KEYS = [
    "txtvers",
    "id",
    "cluster",
    "gpus",
    "gpu",
    "vram",
    "cc",
    "driver",
    "cuda",
    "torch",
    "nccl",
    "python",
    "prio",
    "host",
]
items = st.one_of(
    st.binary(max_size=300),
    st.builds(
        lambda key, value: key.encode() + b"=" + value,
        st.sampled_from(KEYS),
        st.binary(max_size=260) | st.from_regex(r"\A[A-Za-z0-9,*%. -]{0,60}\Z").map(str.encode),
    ),
)


@given(nodes, st.randoms())
def test_what_is_encoded_comes_back_in_any_order(node: NodeFacts, random: object) -> None:
    encoded = list(txt.encode(node))
    random.shuffle(encoded)  # type: ignore[attr-defined]

    assert txt.decode(encoded) == node


@given(anything)
def test_everything_fits_into_the_limits(node: NodeFacts) -> None:
    encoded = txt.encode(node)

    assert all(0 < len(item) <= txt.MAX_ITEM_BYTES for item in encoded)
    assert sum(len(item) + 1 for item in encoded) <= txt.MAX_TOTAL_BYTES
    assert [item.split(b"=")[0].decode() for item in encoded] == [
        key for key in KEYS if any(item.startswith(key.encode() + b"=") for item in encoded)
    ]
    assert len(txt.decode(encoded).gpus) == min(len(node.gpus), txt.MAX_GPUS)


@given(anything)
def test_encoding_what_was_decoded_changes_nothing_more(node: NodeFacts) -> None:
    once = txt.decode(txt.encode(node))

    assert txt.decode(txt.encode(once)) == once


@given(st.lists(items, max_size=100))
def test_hostile_items_give_bounded_printable_facts(hostile: list[bytes]) -> None:
    facts = txt.read(hostile)

    texts = [
        facts.cluster,
        facts.calls_itself,
        *vars(facts.versions).values(),
        *(g.name for g in facts.gpus),
        *(g.cc for g in facts.gpus),
    ]
    assert all(text.isprintable() and len(text.encode()) <= txt.MAX_ITEM_BYTES for text in texts)
    assert facts.id == "" or len(facts.id) == 12
    assert len(facts.gpus) <= txt.MAX_GPUS
    assert all(0 <= gpu.vram_mib <= txt.MAX_VRAM_MIB for gpu in facts.gpus)
    assert abs(facts.priority) <= txt.MAX_PRIORITY


def test_different_gpus_take_few_bytes() -> None:
    ada, ampere = Gpu("NVIDIA GeForce RTX 4090", 24564, "8.9"), Gpu("NVIDIA GeForce RTX 3090", 24576, "8.6")

    encoded = txt.encode(NodeFacts(ID, gpus=(ada, ada, ampere)))

    assert encoded[3:7] == (
        b"gpus=3",
        b"gpu=NVIDIA GeForce RTX 4090*2,NVIDIA GeForce RTX 3090",
        b"vram=24564*2,24576",
        b"cc=8.9*2,8.6",
    )


def test_eight_equal_gpus_are_named_once() -> None:
    encoded = txt.encode(NodeFacts(ID, gpus=(Gpu("NVIDIA H100 80GB HBM3", 81559, "9.0"),) * 8))

    assert encoded[3:7] == (b"gpus=8", b"gpu=NVIDIA H100 80GB HBM3", b"vram=81559", b"cc=9.0")


def test_a_node_without_gpu_and_torch_says_little() -> None:
    assert txt.encode(NodeFacts(ID)) == (b"txtvers=1", ID_ITEM, b"cluster=default", b"gpus=0", b"prio=0")


def test_models_that_do_not_fit_are_unknown_rather_than_wrong() -> None:
    gpus = tuple(Gpu(f"A model with a long name, number {n}", 1000 + n) for n in range(40))

    back = txt.decode(txt.encode(NodeFacts(ID, gpus=gpus))).gpus

    assert len(back) == 40
    told = [gpu.name for gpu in back if gpu.name]
    assert 3 <= len(told) < 40
    assert told == [gpu.name for gpu in gpus[: len(told)]]


def test_the_first_of_a_repeated_key_wins_whatever_its_case() -> None:
    facts = txt.decode([b"ID=0123456789AB", b"cluster=one", b"CLUSTER=two", b"id=ffffffffffff"])

    assert (facts.id, facts.cluster) == (ID, "one")


@pytest.mark.parametrize(
    "item",
    [b"", b"=x", b"cluster", b"cluster=", b"cluster=\xff\xfe", b"\xc3\xa4=x", b"cluster=" + b"x" * 248],
    ids=["empty", "no key", "no value", "empty value", "not UTF-8", "key not ASCII", "256 bytes"],
)
def test_an_item_without_sense_is_as_if_not_there(item: bytes) -> None:
    assert txt.decode([item, ID_ITEM]) == NodeFacts(ID, cluster=DEFAULT_CLUSTER)


def test_control_characters_are_left_out() -> None:
    facts = txt.decode([ID_ITEM, "cluster=\x1b[2Jlab\u202e\r\n".encode()])

    assert facts.cluster == "[2Jlab"


@pytest.mark.parametrize("value", [b"1e3", b"0x10", b"-5", b"99999999999999999999", "٣".encode(), b""])
def test_a_count_that_is_no_sane_number_gives_no_crash_and_no_flood(value: bytes) -> None:
    assert len(txt.decode([ID_ITEM, b"gpus=" + value]).gpus) == 0


def test_a_multiplier_does_not_make_more_gpus_than_there_are() -> None:
    assert len(txt.decode([ID_ITEM, b"gpus=2", b"gpu=A*999999999"]).gpus) == 2
    assert len(txt.decode([ID_ITEM, b"gpu=A*999999999"]).gpus) == txt.MAX_GPUS


def test_a_file_written_by_hand_needs_no_count() -> None:
    facts = txt.decode([ID_ITEM, b"gpu=RTX 4090*2,RTX 3090", b"vram=24564"])

    assert [g.name for g in facts.gpus] == ["RTX 4090", "RTX 4090", "RTX 3090"]
    assert [g.vram_mib for g in facts.gpus] == [24564] * 3


@pytest.mark.parametrize("bad", [[], [b"id="], [b"id=xyz"], [b"id=0123456789abc"], [b"gpus=1"]])
def test_without_an_id_it_is_nobody(bad: list[bytes]) -> None:
    with pytest.raises(MalformedInput, match=r"gpu-node-9: .*no node id") as caught:
        txt.decode(bad, "gpu-node-9")
    assert caught.value.hint
    assert txt.read(bad).id == ""
