"""resolv.conf: who is asked, and how long a dead one costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.resolv_conf import parse


def test_the_first_three_servers_in_their_order() -> None:
    text = (
        "# nameserver 0\nnameserver 1.1.1.1\n nameserver 9\nnameserver\nnameserver ::1 x\r\n"
        + "nameserver 2\n" * 3
    )

    assert parse(text).nameservers == ("1.1.1.1", "::1", "2")
    assert parse("").nameservers == ("127.0.0.1",)


def test_the_last_search_counts_and_options_add_up() -> None:
    conf = parse("search a b\ndomain lan\noptions timeout:1 rotate\noptions attempts:9 timeout:2\n")

    assert conf.search == ("lan",)
    assert conf.options == ("timeout:1", "rotate", "attempts:9", "timeout:2")
    assert (conf.timeout_s, conf.attempts) == (2, 5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("nameserver 1\n", 10),
        ("nameserver 1\noptions timeout:1 attempts:1\n", 1),
        ("nameserver 1\nnameserver 2\n", 20),
        ("nameserver 1\noptions timeout:99\n", 60),
    ],
)
def test_how_long_silence_costs(text: str, seconds: int) -> None:
    """Ten seconds for one silent server were measured; the rest is res_send.c's arithmetic."""
    assert parse(text).longest_wait_s == seconds


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert 1 <= len(parse(text).nameservers) <= 3
    assert parse(f"options timeout:{text}\n").longest_wait_s >= 0


@pytest.mark.parametrize(
    ("servers", "options", "silent", "deciding", "seconds"),
    [
        ("a", "", "", "a", 0),
        ("a", "", "", "", 0),  # it refuses, at once
        ("a", "", "a", "", 10),
        ("a b", "", "a", "b", 5),
        ("a b", "", "b", "a", 0),
        ("a b", "rotate", "b", "a", 5),
        ("a b", "timeout:1 attempts:1", "a", "b", 1),
        ("a b c", "", "ab", "", 16),  # 5 + 10/3, twice
    ],
)
def test_how_long_one_question_waits(
    servers: str, options: str, silent: str, deciding: str, seconds: int
) -> None:
    conf = parse("".join(f"nameserver {s}\n" for s in servers.split()) + f"options {options}\n")

    assert conf.wait_s(set(silent), set(deciding)) == seconds
