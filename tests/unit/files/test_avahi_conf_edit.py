"""Edits of avahi-daemon.conf: the daemon starts with the result, nothing else changes, twice is once."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.avahi_conf import KEYS, parse
from avahi_gpu.files.avahi_conf_edit import Wanted, change, drop, mend, set_value

DEBIAN = """# This file is part of avahi.

[server]
#host-name=foo
use-ipv4=yes
use-ipv6=yes
#allow-interfaces=eth0
#deny-interfaces=eth1

[wide-area]
enable-wide-area=yes

[publish]
publish-hinfo=no

[rlimits]
#rlimit-nproc=3
"""
PLACES = [(section, key) for section, keys in KEYS.items() for key in keys]


def added(before: str, after: str) -> list[str]:
    """Return the lines of ``after`` that are new, having shown that all others are still there in order."""
    rest = iter(after.split("\n"))
    new = []
    for line in before.split("\n"):
        for one in rest:
            if one == line:
                break
            new.append(one)
        else:
            raise AssertionError(f"{line!r} is gone")
    return [*new, *rest]


# --- setting and taking out ------------------------------------------------------------------------------


def test_a_key_is_set_where_it_stands() -> None:
    changed = set_value(DEBIAN, Wanted("server", "use-ipv4", "no"))

    assert changed == DEBIAN.replace("use-ipv4=yes", "use-ipv4=no")


def test_a_new_key_goes_beside_its_remark() -> None:
    changed = set_value(DEBIAN, Wanted("server", "allow-interfaces", "eno1"))

    assert changed == DEBIAN.replace(
        "#allow-interfaces=eth0\n", "#allow-interfaces=eth0\nallow-interfaces=eno1\n"
    )


def test_a_new_key_goes_into_its_own_section() -> None:
    changed = set_value(DEBIAN, Wanted("publish", "publish-addresses", "yes"))

    assert changed == DEBIAN.replace("publish-hinfo=no\n", "publish-hinfo=no\npublish-addresses=yes\n")


@pytest.mark.parametrize("text", ["", "# remark", "[server]\nuse-ipv4=yes\n"])
def test_a_missing_section_is_added_at_the_end(text: str) -> None:
    changed = set_value(text, Wanted("publish", "publish-addresses", "yes"))

    assert changed is not None and changed.endswith("[publish]\npublish-addresses=yes\n")
    assert added(text.rstrip("\n"), changed)


def test_every_line_that_sets_a_key_is_taken_out() -> None:
    text = "[server]\nallow-interfaces=a\n[publish]\n[SERVER]\n Allow-Interfaces=b\n"

    dropped = drop(text, Wanted("server", "allow-interfaces", None))

    assert dropped is not None
    assert dropped.count("#") == 2 and parse(dropped).find("server", "allow-interfaces") is None


def test_windows_line_ends_stay() -> None:
    text = "[server]\r\nuse-ipv4=no\r\n"

    assert set_value(text, Wanted("server", "use-ipv4", "yes")) == "[server]\r\nuse-ipv4=yes\r\n"
    assert set_value(text, Wanted("server", "enable-dbus", "yes")) == (
        "[server]\r\nuse-ipv4=no\r\nenable-dbus=yes\r\n"
    )


GOOD = st.one_of(
    st.builds(
        lambda place, value: f"{place[1]}={value}",
        st.sampled_from(PLACES),
        st.sampled_from(["yes", "no", "7", ""]),
    ),
    st.sampled_from([f"[{name}]" for name in KEYS]),
    st.sampled_from(["", " ", "# x", "%y", "#use-ipv4=yes", "[server]\r", "#" + "x" * 300]),
)
ODD = st.one_of(
    st.sampled_from(
        [
            *("; z", "// z", "[server", "[ publish ]", "[Server]", "[wide_area]", "[nonsense]", "x=y"),
            *("use-ipv4 =yes", "use-ipv4 = yes", "use-ipv4: yes", "use_ipv4=yes", "allow-interface=eth0"),
            *("ratelimit-burst=1000 # many", "cache-entries-max=lots", "browse-domains=a..b", "words"),
            *("\ufeff[server]", "host-name=" + "x" * 300, "a\0b", "a\rb", "use-ipv6=no\r"),
        ]
    ),
    st.text(max_size=20).filter(lambda t: "\n" not in t),
)
SOUND = st.lists(GOOD, max_size=12).map("\n".join)
FILES = st.lists(GOOD | ODD, max_size=12).map("\n".join)


@given(SOUND | FILES, st.sampled_from(PLACES), st.sampled_from(["yes", "1000", None]))
@example("[server]\n[server]\nuse-ipv4=yes", ("server", "use-ipv4"), None)
def test_what_is_wanted_comes_true_and_nothing_else_changes(
    text: str, place: tuple[str, str], value: str | None
) -> None:
    wanted = (Wanted(*place, value),)

    changed = change(text, wanted)

    if changed is None:
        return  # malformed, of lines too long, or no value for that key
    before, after = parse(text), parse(changed)
    found = after.find(*place)
    assert (found.value if found else None) == value
    rest = [{k: s.value for k, s in conf.settings.items() if k != place} for conf in (before, after)]
    assert rest[0] == rest[1]
    assert change(changed, wanted) == changed


# --- mending ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("[server]\nuse-ipv4 =yes\n", "[server]\nuse-ipv4=yes\n"),
        ("[server]\nuse-ipv4 = yes\n", "[server]\nuse-ipv4=yes\n"),
        ("[server]\nuse_ipv4=yes\n", "[server]\nuse-ipv4=yes\n"),
        ("[server]\nuse-ipv4: yes\n", "[server]\nuse-ipv4=yes\n"),
        ("[server]\nallow-interface=eth0\n", "[server]\nallow-interfaces=eth0\n"),
        ("[server]\n; remark\n", "[server]\n#; remark\n"),
        ("[server]\nnonsense=1\n", "[server]\n#nonsense=1\n"),
        ("[server]\nratelimit-burst=1000 # many\n", "[server]\nratelimit-burst=1000\n"),
        ("[server]\ncache-entries-max=lots\n", "[server]\n#cache-entries-max=lots\n"),
        ("[server\nuse-ipv4=yes\n", "[server]\nuse-ipv4=yes\n"),
        ("[ server ]\nuse-ipv4=yes\n", "[server]\nuse-ipv4=yes\n"),
        ("\ufeff[server]\nuse-ipv4=yes\n", "[server]\nuse-ipv4=yes\n"),
        ("use-ipv4=yes\n[server]\n", "[server]\nuse-ipv4=yes\n"),
        ("[server]\nuse-ipv4=yes\n[avahi]\nuse-ipv6=no\n", "[server]\nuse-ipv4=yes\nuse-ipv6=no\n#[avahi]\n"),
        (
            "[server]\nuse-ipv4=yes\n\n[rlimits]\ndeny-interfaces=docker0\n",
            "[server]\nuse-ipv4=yes\ndeny-interfaces=docker0\n\n[rlimits]\n",
        ),
        ("[server]\nuse-ipv4=yes\n[rlimits]\nuse-ipv4=no\n", "[server]\nuse-ipv4=yes\n[rlimits]\n"),
    ],
)
def test_what_has_one_meaning_is_mended(broken: str, mended: str) -> None:
    assert mend(broken) == mended
    parse(mended)


def test_a_comment_too_long_for_a_line_becomes_several() -> None:
    mended = mend("[server]\n# " + "long " * 70 + "\nuse-ipv4=yes\n")

    assert mended is not None and mended.replace("\n# ", "").count("long") == 70
    assert parse(mended).find("server", "use-ipv4") is not None


def test_a_setting_too_long_for_a_line_is_left_to_people() -> None:
    assert mend("[server]\nhost-name=" + "x" * 300 + "\n") is None


@given(FILES)
def test_mending_makes_a_file_that_the_daemon_takes_or_gives_up(text: str) -> None:
    mended = mend(text)

    try:
        parse(text)
    except MalformedInput:
        if mended is not None:
            parse(mended)
            assert mend(mended) == mended
    else:
        assert mended == text
