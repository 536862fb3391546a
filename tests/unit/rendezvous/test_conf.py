"""``--rdzv-conf``: what is a slip of the finger is said, and what names nothing is refused."""

from __future__ import annotations

import pytest

from avahi_gpu.errors import Misuse
from avahi_gpu.rendezvous.conf import KEYS, check_names, complain, read_flag


def test_a_key_that_means_nothing_is_told_with_the_one_that_was_meant() -> None:
    assert list(complain({"lost_aftr": "3"})) == [
        "warning: --rdzv-conf lost_aftr means nothing to this backend; did you mean lost_after?"
    ]
    (told,) = complain({"is_host": "1"})
    assert all(key in told for key in KEYS)


def test_what_is_known_and_what_torch_adds_by_itself_is_no_news() -> None:
    assert list(complain({**dict.fromkeys(KEYS, "1"), "timeout": 900, "rank": 0})) == []


@pytest.mark.parametrize("config", [{"master": ".."}, {"peers": "+"}, {"cluster": ""}, {"interface": " "}])
def test_a_value_that_names_nothing_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(Misuse, match=next(iter(config))) as error:
        check_names(config)
    assert error.value.hint
    check_names({"master": "gpu-node-1.local", "peers": "10.0.0.1+10.0.0.2", "lost_after": ""})


@pytest.mark.parametrize(
    ("value", "flag"), [("1", True), ("Yes", True), (True, True), ("0", False), ("n", False)]
)
def test_a_flag_is_read_as_torch_reads_it(value: object, flag: bool) -> None:
    assert read_flag({"allow_skew": value}, "allow_skew") is flag


def test_a_flag_that_is_none_is_a_sentence() -> None:
    assert read_flag({}, "allow_skew") is False
    with pytest.raises(Misuse, match="allow_skew=maybe is neither yes nor no"):
        read_flag({"allow_skew": "maybe"}, "allow_skew")
