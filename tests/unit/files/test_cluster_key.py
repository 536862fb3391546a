"""The cluster key as text: one form alone, and never shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.cluster_key import ClusterKey, encode_key, parse_key

secrets = st.binary(min_size=32, max_size=32)


@given(secrets)
def test_a_key_comes_back_as_it_was_written(secret: bytes) -> None:
    assert parse_key(encode_key(ClusterKey(secret)), "key") == ClusterKey(secret)


@given(secrets)
def test_neither_the_key_nor_its_fingerprint_shows_the_secret(secret: bytes) -> None:
    key = ClusterKey(secret)

    for shown in (repr(key), str(key), f"{key}", key.fingerprint):
        assert secret.hex()[:12] not in shown.replace("-", "")
        assert repr(secret) not in shown


@given(secrets, secrets)
def test_other_keys_have_other_fingerprints(one: bytes, other: bytes) -> None:
    assert (ClusterKey(one).fingerprint == ClusterKey(other).fingerprint) == (one == other)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"abcd\n", "too short"),
        (b"0" * 63, "too short"),
        (b"0" * 65, "not a cluster key"),
        (b"0" * 63 + b"g", "not a cluster key"),
        (b"0" * 32 + b"\n" + b"0" * 32, "not a cluster key"),
        (b"\xff" * 64, "not a cluster key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n", "not a cluster key"),
    ],
)
def test_anything_else_is_refused_without_showing_it(content: bytes, word: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        parse_key(content, "/etc/avahi-gpu/key")

    assert word in caught.value.message
    assert "avahi-gpu key new" in caught.value.hint
    told = caught.value.message + caught.value.hint
    assert not content.strip() or content.strip().decode("ascii", "replace") not in told
