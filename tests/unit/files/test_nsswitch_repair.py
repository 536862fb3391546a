"""The repair of the hosts line: the smallest edit after which mDNS is asked before DNS."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from avahi_gpu.files.nsswitch import Machine, Repair, decode, encode, judge, modules, parse, repair
from avahi_gpu.files.nsswitch_chain import MDNS

ORDINARY = Machine()
INSERTED = "mdns4_minimal [NOTFOUND=return]"


def repaired(line: str, machine: Machine = ORDINARY) -> tuple[str, str | None]:
    """Return the verdict on a file with this hosts line, and what becomes of the line and those above it."""
    before, after = "passwd: files\n", "\nnetworks: files\n"
    result = repair(encode(before + line + after), machine)
    if result.content is None:
        return result.verdict, None
    text = decode(result.content)
    assert text.startswith(before)
    assert text.endswith(after)
    return result.verdict, text.removeprefix(before).removesuffix(after)


# --- right already, or good enough -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "hosts: files mdns4_minimal [NOTFOUND=return] dns",
        "hosts: mdns [NOTFOUND=return] files dns",
        "hosts: files mdns4 mdns [!UNAVAIL=return] resolve",
        "hosts: files mdns6_minimal [NOTFOUND=return] mdns4_minimal [NOTFOUND=return] dns",
        "hosts: mdns4_minimal [NOTFOUND=return]",
        "  hosts:files[SUCCESS=return]mdns4_minimal[notfound=RETURN]dns # mdns4_minimal",
    ],
)
def test_what_is_right_stays(line: str) -> None:
    assert repaired(line) == ("untouched", None)


@pytest.mark.parametrize(
    "line",
    [
        "hosts: files mdns4 dns",
        "hosts: mdns4_minimal [NOTFOUND=continue] dns",
        "hosts: mdns resolve dns mdns4_minimal",
    ],
)
def test_a_full_module_or_an_explicit_action_is_left_as_it_was_meant(line: str) -> None:
    assert repaired(line) == ("works", None)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hosts: files mdns4_minimal dns", "hosts: files mdns4_minimal [NOTFOUND=return] dns"),
        ("hosts: mdns4_minimal mdns4 dns", "hosts: mdns4_minimal [NOTFOUND=return] mdns4 dns"),
        ("hosts: mdns_minimal\tresolve", "hosts: mdns_minimal [NOTFOUND=return]\tresolve"),
        ("hosts: mdns6_minimal [NOTFOUND=return] dns", "hosts: mdns_minimal [NOTFOUND=return] dns"),
        ("hosts: files mdns6 dns", "hosts: files mdns dns"),
        ("hosts: mdns6_minimal dns mdns4_minimal", "hosts: mdns_minimal [NOTFOUND=return] dns mdns4_minimal"),
    ],
)
def test_an_improvement_is_offered_and_not_forced(line: str, offered: str) -> None:
    result = repair(encode(line + "\n"))

    assert (result.verdict, result.content) == ("works", encode(offered + "\n"))
    assert not result.wanted


# --- repairs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # nothing there: inserted before what can end the search
        ("hosts: files dns", "hosts: files @ dns"),
        ("hosts:\tfiles\tdns\t", "hosts:\tfiles\t@ dns\t"),
        ("hosts:dns", "hosts:@ dns"),
        ("hosts dns files", "hosts @ dns files"),
        ("hosts: files sss dns", "hosts: files sss @ dns"),
        ("hosts: files sss [NOTFOUND=return] dns", "hosts: files @ sss [NOTFOUND=return] dns"),
        ("hosts: files [UNAVAIL=return]", "hosts: @ files [UNAVAIL=return]"),
        ("hosts: files [!SUCCESS=return]dns", "hosts: @ files [!SUCCESS=return]dns"),
        # glibc reads nothing behind an action list without a service
        ("hosts: [NOTFOUND=return] x", "hosts: files @ dns [NOTFOUND=return] x"),
        ("hosts: files [SUCCESS=return] [X] dns", "hosts: files [SUCCESS=return] @ [X] dns"),
        # the full modules stay behind, and are a reason to ask for IPv6 too
        ("hosts: files dns mdns", "hosts: files mdns_minimal [NOTFOUND=return] dns mdns"),
        ("hosts: files dns mdns4", "hosts: files @ dns mdns4"),
        ("hosts: files dns mdns6_minimal", "hosts: files @ dns mdns6_minimal"),
        # a minimal module behind moves, with its own actions where they do no harm in front
        ("hosts: files dns mdns4_minimal", "hosts: files @ dns"),
        ("hosts: dns mdns_minimal [!UNAVAIL=return] nis", "hosts: mdns_minimal [!UNAVAIL=return] dns nis"),
        ("hosts: dns mdns4_minimal [NOTFOUND=continue]", "hosts: mdns4_minimal [NOTFOUND=continue] dns"),
        ("hosts: dns mdns4_minimal [UNAVAIL=return]", "hosts: @ dns"),
        ("hosts: dns mdns4_minimal [SUCCESS=continue] x", "hosts: @ dns x"),
        ("hosts: dns mdns4_minimal mdns_minimal", "hosts: @ dns mdns_minimal"),
        ("hosts: dns mdns4_minimal[NOTFOUND=return]x", "hosts: mdns4_minimal[NOTFOUND=return] dns x"),
        ("hosts: dns[TRYAGAIN=return]mdns4_minimal nis", "hosts: @ dns[TRYAGAIN=return] nis"),
        # moving would hand its neighbour the next action list: one is inserted instead
        (
            "hosts: dns mdns4_minimal [NOTFOUND=continue] [NOTFOUND=return] x",
            "hosts: @ dns mdns4_minimal [NOTFOUND=continue] [NOTFOUND=return] x",
        ),
        # capitals
        ("hosts: files MDNS4_minimal [NOTFOUND=return] dns", "hosts: files @ dns"),
        ("hosts: files mDNS4_Minimal dns", "hosts: files @ dns"),
        ("hosts: files MDNS dns", "hosts: files mdns dns"),
        ("hosts: files MDNS6 dns", "hosts: files mdns dns"),
        ("hosts: dns MDNS4", "hosts: @ dns MDNS4"),
        # an answer that glibc would throw away is none
        ("hosts: mdns4_minimal [SUCCESS=merge] dns", "hosts: @ dns"),
        ("hosts: mdns [SUCCESS=merge] x", "hosts: mdns_minimal [NOTFOUND=return] mdns [SUCCESS=merge] x"),
        ("hosts: mdns6 [UNAVAIL=return] dns", "hosts: @ mdns6 [UNAVAIL=return] dns"),
        # no barrier: appended
        ("hosts: files", "hosts: files @"),
        ("hosts: files sss ", "hosts: files sss @ "),
        ("hosts: files #x", "hosts: files @ #x"),
        # no service at all
        ("hosts:", "hosts: files @ dns"),
        ("hosts:  ", "hosts:  files @ dns"),
        ("hosts", "hosts files @ dns"),
        ("hosts:#off", "hosts: files @ dns #off"),
        # comments that glibc obeys move up, others stay
        ("hosts: files dns # sic", "hosts: files @ dns # sic"),
        ("hosts: files dns #mdns4", "hosts: files @ dns #mdns4"),
        ("hosts: files dns\t# was mdns4", "# was mdns4\nhosts: files @ dns"),
        ("hosts: dns # [NOTFOUND=return]", "# [NOTFOUND=return]\nhosts: @ dns"),
        ("hosts: dns # mdns4_minimal", "# mdns4_minimal\nhosts: @ dns"),
    ],
)  # fmt: skip
def test_the_repair(line: str, expected: str) -> None:
    """``@`` stands for what Debian inserts."""
    line, expected = line.replace("@", INSERTED), expected.replace("@", INSERTED)

    assert repaired(line) == ("repair", expected)


def test_the_last_hosts_line_is_the_one_that_is_edited() -> None:
    content = b"hosts: files mdns4_minimal [NOTFOUND=return] dns\nhosts: dns\n"

    assert repair(content).content == (
        b"hosts: files mdns4_minimal [NOTFOUND=return] dns\nhosts: mdns4_minimal [NOTFOUND=return] dns\n"
    )


@pytest.mark.parametrize("content", [None, b"", b"\n", b"passwd: files\n", b"Hosts: dns\n", b"passwd: files"])
def test_a_file_without_a_hosts_line_gets_one_at_its_end(content: bytes | None) -> None:
    result = repair(content)

    assert result.verdict == "repair"
    kept = (content or b"").removesuffix(b"\n")
    new = b"hosts:          files mdns4_minimal [NOTFOUND=return] dns\n"
    assert result.content == (kept + b"\n" if content else b"") + new


def test_windows_line_ends_stay_also_on_new_lines() -> None:
    assert repair(b"hosts: dns # dns\r\nrpc: x\r\n").content == (
        b"# dns\r\nhosts: mdns4_minimal [NOTFOUND=return] dns\r\nrpc: x\r\n"
    )
    assert repair(b"rpc: x\r\n").content == (
        b"rpc: x\r\nhosts:          files mdns4_minimal [NOTFOUND=return] dns\r\n"
    )


def test_only_the_newline_is_added_where_only_that_is_missing() -> None:
    content = b"rpc: files\nhosts: files mdns4_minimal [NOTFOUND=return] dns"

    result = repair(content)

    assert (result.verdict, result.content, result.line) == ("repair", content + b"\n", 2)
    assert "no newline" in result.says


def test_an_edited_file_ends_in_a_newline() -> None:
    assert repair(b"hosts: dns\nrpc: x").content == b"hosts: mdns4_minimal [NOTFOUND=return] dns\nrpc: x\n"


def test_a_missing_last_newline_elsewhere_is_no_reason_to_edit() -> None:
    assert repair(b"hosts: mdns4_minimal [NOTFOUND=return] dns\nrpc: files").content is None


def test_bytes_that_are_no_utf8_stay() -> None:
    content = b"# K\xf6nig\nhosts: dns # sch\xf6n\n"

    assert repair(content).content == (b"# K\xf6nig\nhosts: mdns4_minimal [NOTFOUND=return] dns # sch\xf6n\n")


# --- malformed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"passwd: files [X]\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n",
        b"hosts: files dns # see [1]\n",
        b"group: files [NOT FOUND=return]\nhosts: files dns\n",
        b"hosts: files [NOT FOUND=return] dns [X]\n",
    ],
)
def test_what_glibc_cannot_read_is_said_first_and_not_guessed_at(content: bytes) -> None:
    result = repair(content)

    assert (result.verdict, result.content, result.line) == ("critical", None, 1)
    assert "/etc/nsswitch.conf:1:" in result.says


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hosts: mdns4_minimal [NOT FOUND=return] dns", "hosts: mdns4_minimal [NOTFOUND=return] dns"),
        ("hosts: mdns4 [ not\tfound = return] dns", "hosts: mdns4 [ notfound = return] dns"),
        ("hosts: x [!NOT FOUND=return] mdns4", "hosts: x [!NOTFOUND=return] mdns4"),
        (
            "hosts: nis [NOT FOUND=return] dns",
            "hosts: mdns4_minimal [NOTFOUND=return] nis [NOTFOUND=return] dns",
        ),
    ],
)
def test_the_one_slip_that_is_certain_is_mended(line: str, expected: str) -> None:
    result = repair(encode(line + "\n"))

    assert result.verdict == "critical"
    assert result.wanted
    assert result.content is not None
    if "x [!" in line:  # mdns4 stands behind a barrier there, and the repair goes on
        expected = "hosts: mdns4_minimal [NOTFOUND=return] x [!NOTFOUND=return] mdns4"
    assert decode(result.content) == expected + "\n"


def test_services_that_would_wake_a_malformed_list_are_not_added() -> None:
    result = repair(b"hosts: [X] dns\n")

    assert (result.verdict, result.content, result.line) == ("critical", None, 1)


def test_a_newline_that_would_wake_a_malformed_line_is_not_added() -> None:
    result = repair(b"hosts: dns\nrpc: files [X]")

    assert (result.verdict, result.content, result.line) == ("critical", None, 2)


# --- whose file it is ------------------------------------------------------------------------------------

PLAIN = b"hosts: files dns\n"
RIGHT = b"hosts: files mdns4_minimal [NOTFOUND=return] dns\n"


@pytest.mark.parametrize(
    ("content", "machine", "hint"),
    [
        (PLAIN, Machine(link_target="/etc/authselect/nsswitch.conf"), "authselect enable-feature with-mdns4"),
        (b"# Generated by authselect\n" + PLAIN, ORDINARY, "authselect enable-feature with-mdns4"),
        (PLAIN, Machine(link_target="/nix/store/0-nsswitch.conf"), "services.avahi.nssmdns4 = true"),
        (PLAIN, Machine(distribution="nixos"), "services.avahi.nssmdns4 = true"),
        (b'hosts: files {if "with-mdns4":mdns4_minimal [NOTFOUND=return] }dns\n', ORDINARY, "template"),
        (b"hosts: {{ services }}\n", ORDINARY, "template"),
        (b"# $FreeBSD$\nhosts: files dns\n", ORDINARY, "each start"),
        (PLAIN, Machine(writable=False), "image"),
        (PLAIN, Machine(writable=False, immutable=True), "chattr -i /etc/nsswitch.conf"),
        (PLAIN, Machine(link_target="/etc/x", writable=False, immutable=True), "chattr -i /etc/x"),
        (b"", Machine(link_target="/etc/gone", dangling=True), "remove the link"),
        (PLAIN, Machine(link_target="/usr/share/factory/etc/nsswitch.conf"), "cp --remove-destination"),
        (PLAIN, Machine(link_target="/run/names/nsswitch.conf"), "find that program"),
        (b"# This file was generated by nsswitch-config.\n" + PLAIN, ORDINARY, "/etc/nsswitch.conf.d"),
    ],
)
def test_another_programs_file_is_refused_with_what_to_do_instead(
    content: bytes, machine: Machine, hint: str
) -> None:
    result = repair(content, machine)

    assert (result.verdict, result.content) == ("managed", None)
    assert hint in result.hint


@pytest.mark.parametrize("target", ["/etc/nsswitch.conf.mine", "/var/lib/site/nsswitch.conf", "/home/a/ns"])
def test_the_file_behind_an_administrators_link_is_edited(target: str) -> None:
    assert repair(PLAIN, Machine(link_target=target)).content == RIGHT


def test_a_right_line_is_right_whoever_wrote_it() -> None:
    assert repair(RIGHT, Machine(link_target="/etc/authselect/nsswitch.conf")).verdict == "untouched"
    assert repair(RIGHT, Machine(writable=False)).verdict == "untouched"
    bare = repair(b"# Generated by authselect\nhosts: files mdns4_minimal resolve [!UNAVAIL=return] dns\n")
    assert (bare.verdict, bare.content) == ("works", None)  # as version 1.3 writes it


def test_a_malformed_file_of_another_program_is_critical_and_not_ours_to_mend() -> None:
    result = repair(b"hosts: files [NOT FOUND=return] dns\n", Machine(distribution="nixos"))

    assert (result.verdict, result.content) == ("critical", None)
    assert "NixOS" in result.hint


@pytest.mark.parametrize(
    ("content", "machine"),
    [(PLAIN, Machine(glibc=False)), (b"passwd_compat: nis\npasswd: compat\nhosts: files dns\n", ORDINARY)],
)
def test_where_nothing_reads_the_file_as_glibc_does(content: bytes, machine: Machine) -> None:
    assert repair(content, machine).verdict == "not-applicable"


@pytest.mark.parametrize(
    ("content", "machine"),
    [
        (b"# hosts: files mdns4_minimal [NOTFOUND=return] dns\nhosts: files dns\n", ORDINARY),
        (b"# no avahi here: our domain is .local\nhosts: files dns\n", ORDINARY),
        (PLAIN, Machine(unicast_local=True)),
        (b"hosts: files # dns\n", ORDINARY),
    ],
)
def test_an_administrator_is_asked(content: bytes, machine: Machine) -> None:
    """mDNS taken out on purpose, or DNS that only a comment keeps alive."""
    result = repair(content, machine)

    assert result.verdict == "ask"
    assert result.content is not None
    assert not result.wanted


def test_an_old_line_in_a_comment_is_no_reason_to_ask_where_mdns_is_still_named() -> None:
    content = b"# hosts: files mdns4_minimal [NOTFOUND=return] dns\nhosts: files dns mdns4_minimal\n"

    assert repair(content).verdict == "repair"


# --- what else the machine knows -------------------------------------------------------------------------


def test_a_star_in_mdns_allow_behind_a_full_module_keeps_dns_from_being_asked() -> None:
    line = b"hosts: files mdns4 [NOTFOUND=return] dns\n"

    dead = repair(line, Machine(mdns_allow=b"# all\n*\n"))

    assert (dead.verdict, dead.content) == ("works", None)
    assert "DNS is never asked" in dead.says
    assert repair(line, Machine(mdns_allow=b".local\n")).verdict == "untouched"
    assert repair(RIGHT, Machine(mdns_allow=b"*\n")).verdict == "untouched"


def test_a_module_that_is_not_on_disk_is_named() -> None:
    assert "mdns4_minimal" in repair(PLAIN, Machine(modules={"mdns4_minimal": False})).hint
    assert repair(PLAIN, Machine(modules={"mdns4_minimal": True})).hint == ""


def test_the_modules_are_those_of_the_line_that_counts() -> None:
    assert modules("hosts: a\nhosts: b [NOTFOUND=return] mdns4 b # ../../x\n") == ("b", "mdns4")
    assert modules("passwd: files\n") == ("files", "dns")


# --- for any line ----------------------------------------------------------------------------------------

BLANK = st.sampled_from([" ", "\t", "  ", " \t "])
NAME = st.sampled_from(
    [*MDNS, "files", "dns", "resolve", "myhostname", "nis", "MDNS4", "mDNS_minimal", "#", "#x", "\\", "ü"]
)
CRITERION = st.builds(
    "{}{}={}".format,
    st.sampled_from(["", "!"]),
    st.sampled_from(["SUCCESS", "NOTFOUND", "UNAVAIL", "TRYAGAIN", "notfound"]),
    st.sampled_from(["return", "continue", "merge", "RETURN"]),
)
ACTIONS = st.lists(CRITERION, min_size=1, max_size=3).map(lambda items: f"[{' '.join(items)}]")
SERVICE = st.one_of(
    st.builds("{}{}".format, BLANK, NAME),
    st.builds("{}{}{}{}".format, BLANK, NAME, st.one_of(st.just(""), BLANK), ACTIONS),
    st.builds("{}{}".format, BLANK, ACTIONS),
)
HOSTS = st.builds(
    "{}hosts{}{}{}".format,
    st.one_of(st.just(""), BLANK),
    st.sampled_from([":", " :", ": ", " "]),
    st.lists(SERVICE, max_size=7).map("".join),
    st.one_of(st.just(""), BLANK),
)
OTHER = st.sampled_from(
    ["passwd: files", "# a comment", "", "networks:files", "nonsense [", "Hosts: dns", "ü"]
)
ENDING = st.sampled_from(["\n", "\r\n"])
FILE = st.builds(
    lambda lines, ending, last: ending.join(lines) + (ending if last else ""),
    st.lists(st.one_of(OTHER, HOSTS), max_size=5),
    ENDING,
    st.booleans(),
)


def check_promises(text: str, result: Repair) -> None:
    """What ``repair`` promises of any new content."""
    assert result.content is not None
    new = decode(result.content)
    parsed = parse(new)
    assert not parsed.defects
    judgement = judge(new)
    assert judgement.asks_first, judgement
    assert new.endswith("\n")
    again = repair(result.content)
    assert not again.wanted
    if result.verdict == "repair":
        assert again.content is None or again.verdict == "works"
    # every line but the hosts line is as it was, comments lifted off it aside
    old = parse(text)
    at = old.last_hosts.number - 1 if old.last_hosts else len(old.lines)
    behind = len(old.lines) - at - 1
    old_texts, new_texts = ([line.text for line in lines] for lines in (old.lines, parsed.lines))
    assert new_texts[:at] == old_texts[:at]
    assert behind <= 0 or new_texts[-behind:] == old_texts[-behind:]


@given(FILE)
def test_whatever_is_written_is_valid_and_asks_mdns_first_and_is_not_edited_again(text: str) -> None:
    result = repair(encode(text))

    assert result.verdict in ("untouched", "works", "repair", "ask")  # all generated actions are well-formed
    if result.content is not None:
        check_promises(text, result)
    elif result.verdict != "ask":
        assert judge(text).asks_first


@given(FILE)
def test_no_service_is_lost(text: str) -> None:
    """All words of the hosts line are still there, but for those that only a moved comment held."""
    result = repair(encode(text))
    assume(result.content is not None)
    assert result.content is not None
    line = parse(text).last_hosts
    new = decode(result.content)

    for service in line.services if line else ():
        assert service.name.lower().removeprefix("mdns6") in new.lower()


@given(st.binary(max_size=120))
def test_no_content_makes_it_fail(content: bytes) -> None:
    result = repair(content)

    if result.content is not None:
        assert not parse(decode(result.content)).defects
