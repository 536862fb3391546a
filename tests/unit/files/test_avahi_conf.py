"""avahi-daemon.conf: what keeps the daemon from starting, and what the settings do to discovery."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.avahi_conf import parse
from avahi_gpu.files.avahi_harms import Harm, breaks_discovery, effects, starts

LAN = ["eth0", "wlan0"]


def harms(text: str, interfaces: list[str] | None = None, **known: bool) -> list[Harm]:
    return effects(parse(text), interfaces or LAN, **known)


def server(text: str) -> list[Harm]:
    return harms(f"[server]\n{text}\n")


# --- the form --------------------------------------------------------------------------------------------


def test_an_empty_file_means_the_defaults() -> None:
    conf = parse("")

    assert conf.says_yes("server", "use-ipv4", default=True)
    assert conf.find("server", "use-ipv4") is None
    assert effects(conf, LAN) == []


def test_sections_keys_comments_and_what_is_kept() -> None:
    conf = parse(
        "# a comment\n%another\n \t\n  [SERVER] junk\n\tHost-Name= a b # c\r\nhost-name=second\n"
        "[publish]\n[server]\nuse-ipv6=no\nallow-interfaces= eth0 ,\twlan0\n"
    )

    host = conf.find("server", "host-name")
    assert host is not None
    assert (host.value, host.line) == (" a b # c", 5)
    assert not conf.says_yes("server", "use-ipv6", default=True)
    assert conf.names("server", "allow-interfaces") == ("eth0", "wlan0")


@pytest.mark.parametrize(
    ("value", "yes"),
    [
        *((value, True) for value in ("yes", "Y", "true", "1", "tick")),
        *((value, False) for value in ("no", "on", "", " yes", "enabled")),
    ],
)
def test_the_first_letter_decides(value: str, yes: bool) -> None:
    assert (
        parse(f"[server]\nuse-iff-running={value}\n").says_yes("server", "use-iff-running", default=not yes)
        is yes
    )


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("7", 7),
        ("0x10", 16),
        ("010", 8),
        (" 7", 7),
        ("+7", 7),
        ("", 0),
        ("0", 0),
        ("-0", 0),
        ("4294967295", 2**32 - 1),
    ],
)
def test_numbers_as_strtoul_reads_them(value: str, number: int) -> None:
    assert parse(f"[server]\nclients-max={value}\n").number("server", "clients-max") == number


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("use-ipv4=yes\n", 1, "before any section"),
        ("[server\n", 1, "no “]”"),
        ("[server]\n; a comment\n", 2, "no assignment"),
        ("[server]\nuse-ipv4\n", 2, "no assignment"),
        ("[server]\nuse-ipv4 =yes\n", 2, "no key"),
        ("[server]\n\nuse-ipv5=yes\n", 3, "no key of [server]"),
        ("[servers]\n", 1, "no section"),
        ("[]\n", 1, "no section"),
        ("[server]\nclients-max=7 \n", 2, "clients-max"),
        ("[server]\nclients-max=many\n", 2, "clients-max"),
        ("[server]\nclients-max=-1\n", 2, "clients-max"),
        ("[server]\nclients-max=4294967296\n", 2, "clients-max"),
        ("[server]\nclients-max=08\n", 2, "clients-max"),
        ("[server]\nbrowse-domains=a..b\n", 2, "browse-domains"),
        ("#" + "x" * 300 + "\n", 1, "no assignment"),
    ],
)
def test_what_keeps_the_daemon_from_starting(text: str, line: int, reason: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        parse(text, "a.conf")

    assert caught.value.where == f"a.conf:{line}"
    assert reason in caught.value.message
    assert caught.value.hint


def test_the_hint_knows_where_a_key_belongs() -> None:
    with pytest.raises(MalformedInput) as caught:
        parse("[server]\npublish-addresses=yes\n")

    assert "[publish]" in caught.value.hint


@given(st.text(max_size=200), st.sampled_from(["{}", "[server]\n{}", "[rlimits]\nrlimit-nproc={}\n"]))
def test_any_text_is_read_or_refused_in_words(text: str, frame: str) -> None:
    try:
        found = effects(parse(frame.format(text)), None)
    except MalformedInput as error:
        assert error.message
    else:
        assert all(harm.says and harm.hint for harm in found)


@given(
    st.dictionaries(
        st.sampled_from(["clients-max", "cache-entries-max", "use-ipv4", "allow-interfaces"]),
        st.text("019xyn, ", max_size=6),
    )
)
def test_any_values_are_judged(values: dict[str, str]) -> None:
    text = "[server]\n" + "".join(f"{key}={value}\n" for key, value in values.items())
    try:
        found = effects(parse(text), LAN)
    except MalformedInput:
        return
    assert starts(found) or breaks_discovery(found)


# --- the effects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["use-ipv4=no\nuse-ipv6=no", "host-name=", "host-name=a.b", "host-name=" + "a" * 64, "domain-name=a..b"],
)
def test_settings_that_stop_the_daemon(text: str) -> None:
    found = server(text)

    assert not starts(found)
    assert found[0].weight == "stops"
    assert found[0].line is not None


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("server", "use-ipv4=no"),
        ("server", "enable-dbus=no"),
        ("server", "enable-dbus=1"),
        ("server", "domain-name=lan"),
        ("server", "domain-name="),
        ("server", "cache-entries-max=0"),
        ("server", "cache-entries-max="),
        ("server", "allow-interfaces="),
        ("server", "allow-interfaces=eth1"),
        ("server", "allow-interfaces=eth0 wlan0"),
        ("server", "allow-interfaces=eth0 # the LAN"),
        ("server", "allow-interfaces=eth*"),
        ("server", "allow-interfaces=eth0\ndeny-interfaces=ETH0"),
        ("server", "deny-interfaces=eth0,wlan0"),
        ("server", "ratelimit-interval-usec=1000000\nratelimit-burst=1"),
        ("publish", "disable-publishing=yes"),
        ("publish", "publish-addresses=on"),
        ("rlimits", "rlimit-data=16"),
        ("rlimits", "rlimit-as=64"),
    ],
)
def test_settings_that_break_discovery(section: str, text: str) -> None:
    found = harms(f"[{section}]\n{text}\n")

    assert starts(found)
    assert breaks_discovery(found)


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("server", "use-ipv6=no"),
        ("server", "enable-dbus=warn"),
        ("server", "domain-name=LOCAL."),
        ("server", "allow-interfaces=ETH0"),
        ("server", "allow-interfaces=eth7,wlan0"),
        ("server", "deny-interfaces=docker0"),
        ("server", "clients-max=0"),
        ("server", "ratelimit-interval-usec=1000000\nratelimit-burst=1000"),
        ("server", "ratelimit-burst=0"),
        ("publish", "publish-workstation=yes\npublish-hinfo=yes\npublish-a-on-ipv6=yes"),
        ("reflector", "reflect-ipv=yes"),
        ("wide-area", "enable-wide-area=no"),
        ("rlimits", "rlimit-core=0\nrlimit-data=4194304\nrlimit-nofile=300\nrlimit-stack=4194304"),
    ],
)
def test_harmless_settings(section: str, text: str) -> None:
    assert harms(f"[{section}]\n{text}\n") == []


@pytest.mark.parametrize(
    ("section", "text", "weight"),
    [
        ("publish", "disable-user-service-publishing=yes", "bars"),
        ("reflector", "enable-reflector=yes", "hinders"),
        ("server", "cache-entries-max=20", "hinders"),
        ("server", "entries-per-entry-group-max=2", "hinders"),
        ("server", "clients-max=1", "hinders"),
        ("server", "objects-per-client-max=1", "breaks"),
        ("server", "objects-per-client-max=2", "hinders"),
        ("server", "host-name=other", "note"),
        ("server", "host-name-from-machine-id=yes", "note"),
        ("server", "disallow-other-stacks=yes", "note"),
        ("rlimits", "rlimit-nproc=3", "note"),
        ("rlimits", "rlimit-nproc=1", "stops"),
        ("rlimits", "rlimit-nofile=8", "stops"),
    ],
)
def test_how_much_a_setting_weighs(section: str, text: str, weight: str) -> None:
    (harm,) = harms(f"[{section}]\n{text}\n")

    assert (harm.weight, harm.line) == (weight, 2)


def test_a_second_owner_of_the_port_stops_a_daemon_that_wants_it_alone() -> None:
    assert not starts(harms("[server]\ndisallow-other-stacks=yes\n", port_shared=True))


def test_without_knowledge_of_the_interfaces_only_what_can_be_no_name_is_called_wrong() -> None:
    def judged(value: str) -> bool:
        return breaks_discovery(effects(parse(f"[server]\nallow-interfaces={value}\n")))

    assert [judged("anything0"), judged("eth0 eth1"), judged("")] == [False, True, True]


def test_the_worst_comes_first() -> None:
    found = harms("[server]\nhost-name=x\nenable-dbus=no\n[rlimits]\nrlimit-nproc=0\n")

    assert [harm.weight for harm in found] == ["stops", "breaks", "note"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4294967296", 4294967296),
        ("-1", -1),
        ("-0x10", -16),
        ("18446744073709551615", -1),
        ("18446744073709551616", None),
    ],
)
def test_the_time_of_the_rate_limit_is_read_in_64_bits(text: str, number: int | None) -> None:
    line = f"[server]\nratelimit-interval-usec={text}\n"

    if number is None:
        with pytest.raises(MalformedInput):
            parse(line)
    else:
        assert parse(line).number("server", "ratelimit-interval-usec") == number


@pytest.mark.parametrize("text", ["4294967296", "-1", "-4294967295"])
def test_other_numbers_have_32_bits(text: str) -> None:
    with pytest.raises(MalformedInput):
        parse(f"[server]\nratelimit-burst={text}\n")


@pytest.mark.parametrize(("burst", "weight"), [(1, "breaks"), (2, "hinders"), (9, "hinders"), (10, None)])
def test_how_many_packets_a_second_are_enough(burst: int, weight: str | None) -> None:
    found = server(f"ratelimit-interval-usec=1000000\nratelimit-burst={burst}")

    assert [harm.weight for harm in found] == ([weight] if weight else [])
