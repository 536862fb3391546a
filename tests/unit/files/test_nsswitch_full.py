"""Full modules on the hosts line: put in place of a minimal one, or taken off where one is too many."""

from __future__ import annotations

import pytest

from avahi_gpu.files.nsswitch import Machine
from avahi_gpu.files.nsswitch_full import answer_ipv6, drop_surplus, find_surplus, use_full_module

HERE = Machine()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("files mdns4_minimal [NOTFOUND=return] dns", "files mdns4 dns"),
        ("mdns_minimal [NOTFOUND=return] resolve [!UNAVAIL=return]", "mdns resolve [!UNAVAIL=return]"),
        ("files mdns4 [NOTFOUND=return] dns", "files mdns4 dns"),
        ("files mdns4_minimal[NOTFOUND=return] dns # x", "files mdns4 dns # x"),
    ],
)  # fmt: skip
def test_a_full_module_takes_the_place_and_lets_the_search_go_on(before: str, after: str) -> None:
    text = f"passwd: files\r\nhosts:\t{before}\nrpc: db\n"

    repair = use_full_module(text.encode(), HERE)

    assert (repair.verdict, repair.content) == ("repair", text.replace(before, after).encode())


def test_a_line_that_does_not_ask_mdns_or_belongs_to_others_is_left_alone() -> None:
    good = b"hosts: files mdns4_minimal dns\n"

    assert use_full_module(b"hosts: files dns mdns4\n", HERE).content is None
    assert use_full_module(good, Machine(link_target="/etc/authselect/nsswitch.conf")).verdict == "managed"
    assert drop_surplus(good.replace(b"dns\n", b"dns mdns4\n"), Machine(distribution="nixos")).content is None


@pytest.mark.parametrize(
    ("services", "surplus"),
    [
        ("files mdns4_minimal [NOTFOUND=return] dns mdns4", "mdns4"),
        ("files mdns_minimal dns mdns", "mdns"),
        ("files mdns4 dns mdns4", "mdns4"),
        ("files mdns4_minimal [NOTFOUND=return] dns", None),
        ("files mdns4 [NOTFOUND=return] dns", None),  # it does the work itself
        ("files dns mdns4", None),
        ("files mdns4_minimal dns [!UNAVAIL=return] mdns4", None),  # never asked once DNS answers
        ("files mdns4_minimal [UNAVAIL=return] dns mdns4", None),
    ],
)
def test_what_is_one_too_many(services: str, surplus: str | None) -> None:
    found = find_surplus(f"hosts: {services}\n".encode())

    assert (found.module if found else None) == surplus


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("hosts: mdns4_minimal [NOTFOUND=return] dns mdns\n", "hosts: mdns4_minimal [NOTFOUND=return] dns\n"),
        ("hosts: mdns_minimal dns mdns [TRYAGAIN=return]  nis\r\n", "hosts: mdns_minimal dns nis\r\n"),
    ],
)  # fmt: skip
def test_it_is_taken_off_and_nothing_else(before: str, after: str) -> None:
    assert drop_surplus(before.encode(), HERE).content == after.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("files mdns4_minimal [NOTFOUND=return] dns", "files mdns_minimal [NOTFOUND=return] dns"),
        ("mdns4 dns mdns4", "mdns dns mdns4"),
        ("files mdns_minimal [NOTFOUND=return] dns mdns4", None),
        ("files mdns4_minimal mdns_minimal dns", None),
        ("files dns mdns4_minimal", None),
    ],
)
def test_a_module_of_both_families_keeps_the_actions(before: str, after: str | None) -> None:
    repair = answer_ipv6(f"hosts: {before}\n".encode(), HERE)

    assert repair.content == (None if after is None else f"hosts: {after}\n".encode())
