"""The proof of the cluster key: who holds it gets through, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous.proof import (
    PROOF_LINE_MAX,
    Handshake,
    NotProven,
    Pass,
    Prove,
    Session,
    Unproven,
    decode_or_none,
    describe_unproven,
    encode,
    plain_address,
    refusal,
)

KEY, OTHER = ClusterKey(b"k" * 32), ClusterKey(b"K" * 32)
A = Pass("a" * 16, "gpu-node-1", "llama", "lab", KEY)
B = Pass("b" * 16, "gpu-node-2", "llama", "lab", KEY)
AT_A, AT_B = "10.0.0.1", "10.0.0.2"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=255)


def sides(a: Pass = A, b: Pass = B, *, nonces: bytes = b"12") -> tuple[Handshake, Handshake]:
    """Return the initiator's and the responder's side of a connection from A to B."""
    return (
        Handshake(a, nonces[:1] * 32, AT_A, AT_B),
        Handshake(b, nonces[1:] * 32, AT_B, AT_A),
    )


def talk(one: Handshake, other: Handshake) -> tuple[Session, Session]:
    """Let them prove themselves to each other."""
    assert other.hear(one.hear(other.hear(one.begin()))) == b""
    assert one.session is not None
    assert other.session is not None
    return one.session, other.session


def fails(side: Handshake, line: bytes) -> NotProven:
    with pytest.raises(NotProven) as caught:
        side.hear(line)
    assert side.session is None
    return caught.value


@given(names, names, names, names)
def test_two_that_hold_the_key_prove_it_whatever_their_names_are(
    host: str, other_host: str, job: str, cluster: str
) -> None:
    a = replace(A, host=host, job=job, cluster=cluster)
    b = replace(B, host=other_host, job=job, cluster=cluster)
    one, other = sides(a, b)

    first, second = talk(one, other)

    assert (one.host, other.host) == (other_host, host)
    for n in range(3):
        line = f'{{"n":{n}}}\n'.encode()
        assert second.open(first.seal(line), "a") == line
        assert first.open(second.seal(line), "b") == line


def test_the_longest_names_fit_into_a_line() -> None:
    a = replace(A, host="\x01" * 255, job="\x01" * 255, cluster="\x01" * 255)

    assert len(sides(a)[0].begin()) <= PROOF_LINE_MAX


def test_no_line_of_a_proof_holds_the_key() -> None:
    one, other = sides()
    lines = [one.begin()]
    lines.append(other.hear(lines[0]))
    lines.append(one.hear(lines[1]))

    for line in lines:
        assert KEY.secret not in line
        assert KEY.secret.hex().encode() not in line


@given(st.data())
@settings(max_examples=300)
def test_no_bit_of_a_proof_can_be_changed_on_its_way(data: st.DataObject) -> None:
    """Whatever is changed, by the end nobody takes the other side for proven who has heard other words."""
    one, other = sides()
    which = data.draw(st.integers(0, 2))

    def pass_on(number: int, line: bytes) -> bytes:
        if number != which:
            return line
        bit = data.draw(st.integers(0, 8 * (len(line) - 1) - 1))
        changed = bytearray(line)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    with pytest.raises(NotProven):
        other.hear(pass_on(2, one.hear(pass_on(1, other.hear(pass_on(0, one.begin()))))))

    assert other.session is None
    assert one.session is None or which == 2  # it has seen the proof of an untouched answer


@given(st.binary(max_size=200))
def test_garbage_proves_nothing(line: bytes) -> None:
    one, other = sides()
    one.begin()

    fails(one, line)
    fails(other, line)


def test_another_key_is_found_out_by_the_initiator_which_proves_nothing_itself() -> None:
    one, other = sides(b=replace(B, key=OTHER))
    answer = other.hear(one.begin())

    failure = fails(one, answer)

    assert (failure.why, failure.host) == ("other-key", "gpu-node-2")
    told = fails(other, failure.answer)
    assert (told.why, told.host) == ("other-key", "gpu-node-1")


def test_who_has_another_key_gets_nowhere_by_going_on() -> None:
    one, other = sides(a=replace(A, key=OTHER))
    fake, _ = sides(a=replace(A, key=OTHER), b=replace(B, key=OTHER))
    _, accomplice = sides(a=replace(A, key=OTHER), b=replace(B, key=OTHER))
    other.hear(one.begin())

    failure = fails(other, fake.hear(accomplice.hear(fake.begin())))

    assert failure.why == "other-key"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"job": "mistral"}, "other-job"),
        ({"cluster": "office"}, "other-job"),
        ({"id": "b" * 16}, "no-proof"),
    ],
)
def test_another_job_and_our_own_echo_are_refused_before_any_proof(change: dict[str, str], why: str) -> None:
    one, other = sides(a=replace(A, **change))

    assert fails(other, one.begin()).why == why


def test_an_answer_under_our_own_name_is_refused() -> None:
    one, other = sides(b=replace(B, id=A.id))
    _, mirror = sides(a=replace(A, id="c" * 16), b=replace(B, id=A.id))
    one.begin()
    asked = replace(A, id="c" * 16)
    answer = mirror.hear(Handshake(asked, b"1" * 32, AT_A, AT_B).begin())

    assert fails(one, answer).why == "no-proof"
    assert other.session is None


def test_whoever_passes_a_proof_on_from_elsewhere_is_found_out() -> None:
    """A stranger at 10.0.0.9 that lies between the two has another address than either."""
    one = Handshake(A, b"1" * 32, AT_A, "10.0.0.9")
    other = Handshake(B, b"2" * 32, AT_B, "10.0.0.9")

    assert fails(other, one.begin()).why == "other-address"


def test_a_stranger_that_also_mends_the_addresses_changes_the_proof() -> None:
    one = Handshake(A, b"1" * 32, AT_A, "10.0.0.9")
    other = Handshake(B, b"2" * 32, AT_B, "10.0.0.9")
    asked = decode_or_none(one.begin())
    assert isinstance(asked, Prove)
    forged = encode(msgspec.structs.replace(asked, here="10.0.0.9", there=AT_B))

    assert fails(one, other.hear(forged)).why == "other-key"


def test_a_reflected_proof_is_refused() -> None:
    """A stranger sends the challenge of A back to A on a second connection, and its answer on the first."""
    first = Handshake(A, b"1" * 32, AT_A, "10.0.0.9")
    second = Handshake(A, b"2" * 32, AT_A, "10.0.0.9")
    challenge = decode_or_none(first.begin())
    assert isinstance(challenge, Prove)
    for said in (
        challenge,
        msgspec.structs.replace(challenge, here="10.0.0.9", there=AT_A),
        msgspec.structs.replace(challenge, here="10.0.0.9", there=AT_A, id="c" * 16),
    ):
        second = Handshake(A, b"2" * 32, AT_A, "10.0.0.9")
        try:
            answer = second.hear(encode(said))
        except NotProven:
            continue
        fails(first, answer)


def test_a_recorded_exchange_is_worth_nothing_later() -> None:
    one, other = sides()
    begin = one.begin()
    answer = other.hear(begin)
    confirm = one.hear(answer)
    later, responder = sides(nonces=b"34")
    later.begin()

    fails(later, answer)
    responder.hear(begin)
    fails(responder, confirm)


@pytest.mark.parametrize("order", [(0, 0), (1,), (2,), (0, 1), (0, 2, 2)])
def test_lines_out_of_their_order_prove_nothing(order: tuple[int, ...]) -> None:
    one, other = sides()
    begin = one.begin()
    lines = [
        begin,
        Handshake(B, b"5" * 32, AT_B, AT_A).hear(begin),
        b'{"type":"confirm","proof":"%s"}' % (b"0" * 64),
    ]
    with pytest.raises(NotProven):
        for number in order:
            other.hear(lines[number])
    assert other.session is None


def sessions() -> tuple[Session, Session]:
    return talk(*sides())


lines = st.binary(max_size=60).map(lambda b: b.replace(b"\n", b"") + b"\n")


@given(st.lists(lines, min_size=2, max_size=5), st.data())
def test_sealed_lines_come_once_in_their_order_and_unchanged(said: list[bytes], data: st.DataObject) -> None:
    one, other = sessions()
    sealed = [one.seal(line) for line in said]
    count = data.draw(st.integers(0, len(said) - 1))
    for line, seal in zip(said[:count], sealed, strict=False):
        assert other.open(seal, "a") == line
    due = sealed[count]
    wrong = data.draw(
        st.one_of(
            st.sampled_from([s for i, s in enumerate(sealed) if i != count]),  # repeated, or too early
            st.integers(0, 8 * len(due) - 1).map(lambda bit: flip(due, bit)),
            lines,
            st.just(other.seal(said[count])),  # their own line, sent back
            st.just(due[33:]),  # without its seal
        )
    )

    with pytest.raises(MalformedInput) as caught:
        other.open(wrong, "10.0.0.1")

    assert caught.value.where == "10.0.0.1"
    assert other.open(due, "a") == said[count]  # and the right one is still the next


def flip(line: bytes, bit: int) -> bytes:
    changed = bytearray(line)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_lines_of_another_connection_are_strange() -> None:
    one, _ = sessions()
    _, other = talk(*sides(nonces=b"34"))

    with pytest.raises(MalformedInput):
        other.open(one.seal(b"{}\n"), "a")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("FD00::0:1", "fd00::1"),
        ("nonsense", "nonsense"),
    ],
)
def test_addresses_are_compared_in_one_form(one: str, other: str) -> None:
    assert plain_address(one) == plain_address(other)


@pytest.mark.parametrize(
    "why", ["no-key", "key-wanted", "other-key", "other-job", "other-version", "other-address", "no-proof"]
)
def test_every_reason_is_a_sentence_that_names_host_and_address(why: str) -> None:
    said = decode_or_none(refusal(why, "gpu-node-2"))  # type: ignore[arg-type]
    assert isinstance(said, Unproven)

    sentence = describe_unproven(said.why, said.host, AT_B)

    assert "gpu-node-2 (10.0.0.2)" in sentence
    assert AT_B in describe_unproven(said.why, "", AT_B)
