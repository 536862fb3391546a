"""The grammar of nsswitch.conf: what glibc 2.36 was seen to do with each of these files.

tests/lab/test_nsswitch_glibc.py runs the same kinds of file through the machine's own glibc.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.nsswitch_grammar import BLANKS, decode, encode, parse, parse_line


def names(text: str) -> list[str] | None:
    hosts = parse(text).hosts
    return None if hosts is None else [service.name for service in hosts.services]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts: files dns\n", ["files", "dns"]),
        ("hosts:files dns\n", ["files", "dns"]),
        ("hosts : files\n", ["files"]),
        ("hosts :: : files\n", ["files"]),
        ("hosts files dns\n", ["files", "dns"]),
        (" \v\thosts:\ffiles\n", ["files"]),
        ("hosts: files dns\r\n", ["files", "dns"]),
        ("hosts:\n", []),
        ("hosts\n", []),
        ("hosts", None),
        ("Hosts: files\n", None),
        ("\ufeffhosts: files\n", None),
        ("#hosts: files\n", None),
        ("hostss: files\n", None),
        ("hosts:\u00a0files dns\n", ["\u00a0files", "dns"]),
        ("hosts: files # dns\n", ["files", "#", "dns"]),
        ("hosts: ]files ] dns\n", ["]files", "]", "dns"]),
        ("hosts: files\0 [X\n", ["files"]),
        ("hosts\0: files\n", None),
        ("hosts: a\nhosts: b\n", ["b"]),
        ("hosts: a\nhosts: b", ["a"]),
        ("hosts: a\nnetworks: b\n", ["a"]),
        ("", None),
    ],
)
def test_the_services_of_the_hosts_line(text: str, expected: list[str] | None) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("[NOTFOUND=return]", ("return", "return", "continue", "continue")),
        ("[notfound=Return]", ("return", "return", "continue", "continue")),
        ("[ NOTFOUND\t= return ]", ("return", "return", "continue", "continue")),
        ("[!UNAVAIL=return]", ("return", "return", "continue", "return")),
        ("[!SUCCESS=continue]", ("return", "continue", "continue", "continue")),
        ("[SUCCESS=merge TRYAGAIN=return]", ("merge", "continue", "continue", "return")),
        ("[UNAVAIL=return !UNAVAIL=continue]", ("continue", "continue", "return", "continue")),
        ("[!SUCCESS=return UNAVAIL=continue]", ("return", "return", "continue", "return")),
    ],
)
def test_actions_by_status(actions: str, expected: tuple[str, ...]) -> None:
    (service, other) = parse_line(f"hosts: x{actions}y").services

    found = service.actions
    assert (found.success, found.notfound, found.unavail, found.tryagain) == expected
    assert service.explicit
    assert not other.explicit


@pytest.mark.parametrize(
    ("text", "names", "unread"),
    [
        ("hosts: files [NOTFOUND=return] [SUCCESS=continue] dns", ["files"], 31),
        ("hosts: [SUCCESS=continue] files", [], 7),
        ("hosts: files[UNAVAIL=return][not an action", ["files"], 28),
        ("hosts: files [UNAVAIL=return]dns", ["files", "dns"], None),
    ],
)
def test_an_action_list_without_a_service_ends_the_reading(
    text: str, names: list[str], unread: int | None
) -> None:
    line = parse_line(text)

    assert [service.name for service in line.services] == names
    assert line.unread == unread
    assert not line.defect


@pytest.mark.parametrize(
    "actions",
    [
        "[]",
        "[ ]",
        "[X]",
        "[1]",
        "[NOT FOUND=return]",
        "[NOTFOUND return]",
        "[NOTFOUND=]",
        "[NOTFOUND=stop]",
        "[! NOTFOUND=return]",
        "[NOTFOUND=return",
        "[NOTFOUND=return;SUCCESS=return]",
        "[NOTFOUND=return=return]",
        "[RETURN=return]",
    ],
)
def test_a_malformed_action_is_a_defect_with_its_line(actions: str) -> None:
    parsed = parse(f"passwd: files\nhosts: files {actions} dns\n")

    assert [line.number for line in parsed.defects] == [2]
    assert parsed.defects[0].defect


@pytest.mark.parametrize(
    "database", ["passwd", "group", "initgroups", "gshadow", "passwd_compat", "publickey", "rpc"]
)
def test_a_defect_on_any_known_database_counts(database: str) -> None:
    assert parse(f"{database}: files [X]\nhosts: files\n").defects


@pytest.mark.parametrize("database", ["sudoers", "automount", "netmasks", "subid", "foo", "#hosts"])
def test_what_glibc_does_not_know_may_hold_anything(database: str) -> None:
    assert not parse(f"{database}: files [X]\nhosts: files\n").defects


def test_an_earlier_hosts_line_is_read_though_it_does_not_count() -> None:
    assert [line.number for line in parse("hosts: a [X]\nhosts: b\n").defects] == [1]


def test_a_last_line_without_a_newline_does_no_harm() -> None:
    assert not parse("hosts: files\nrpc: files [X]").defects


@given(st.binary(max_size=300))
def test_any_bytes_come_back_as_they_were(content: bytes) -> None:
    parsed = parse(decode(content))

    assert encode("".join(line.text + line.ending for line in parsed.lines)) == content
    assert [line.number for line in parsed.lines] == list(range(1, len(parsed.lines) + 1))


@given(st.text(alphabet=f"abhost:[]=!#\\{BLANKS}", max_size=80))
def test_services_lie_in_the_line_where_they_say(text: str) -> None:
    for line in parse(f"hosts: {text}\n").lines:
        at = 0
        for service in line.services:
            assert at <= service.start <= service.name_end <= service.end <= len(line.text)
            assert line.text[service.start : service.name_end] == service.name
            assert not service.explicit or line.text[service.end - 1] == "]"
            at = service.end
