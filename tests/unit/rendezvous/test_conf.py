"""``--rdzv-conf``: what is a slip of the finger is said, and what names nothing is refused."""

from __future__ import annotations

import pytest

from avahi_gpu.errors import Misuse
from avahi_gpu.rendezvous.conf import KEYS, check_names, check_published, check_seconds, complain, read_flag


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


@pytest.mark.parametrize("name", ["", "a\nb", "\udcff", "x" * 201, "ü" * 101])
def test_a_name_that_the_records_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(Misuse, match="the job's name") as error:
        check_published("the job's name", name)
    assert error.value.hint
    assert error.value.message.isprintable()


@pytest.mark.parametrize("name", ["none", "x" * 200, "ü" * 100, "my job: 3/4"])
def test_any_other_name_goes(name: str) -> None:
    assert check_published("the job's name", name) == name


@pytest.mark.parametrize("value", ["0", "-1", "nan", "1e9", "soon", "1.9"])
def test_a_time_that_makes_no_sense_is_refused(value: str) -> None:
    with pytest.raises(Misuse, match=f"lost_after={value}"):
        check_seconds("lost_after", value, 5.0, 2.0)
    assert check_seconds("lost_after", "2", 5.0, 2.0) == 2.0
    assert check_seconds("last_call_timeout", "0", 3.0) == 0.0
