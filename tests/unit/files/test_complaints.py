"""Why an installation failed, in the words of package managers, and what to do then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.complaints import BY_HAND, explain


@pytest.mark.parametrize(
    ("output", "why", "advice"),
    [
        (
            "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. ",
            "E: dpkg was interrupted",
            "run: dpkg --configure -a",
        ),
        (
            "Setting up broken (1) ...\ndpkg: error processing package broken (--configure):\n installed "
            "broken package post-installation script subprocess returned error exit status 1\nE: Sub-process "
            "/usr/bin/dpkg returned an error code (1)\n",
            "dpkg: error processing package broken",
            "mend that package",
        ),
        (
            "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages.",
            "E: Unmet",
            "--fix-broken",
        ),
        ("E: Unable to locate package libnss-mdns", "E: Unable to locate package libnss-mdns", "universe"),
        ("E: Package 'avahi-daemon' has no installation candidate", "E: Package 'avahi-daemon'", "universe"),
        (
            "W: Failed to fetch http://h/d  Temporary failure resolving 'h'\nE: Some index files failed to "
            "download",
            "E: Some index",
            "package archive",
        ),
        ("E: Release file for http://h/ is not valid yet (invalid for another 3d)", "E: Release", "clock"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "E: You don't", "free some"),
        (
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)",
            "E: Could not",
            "let it end",
        ),
        # dnf 4 and 5
        ("No match for argument: nss-mdns\nError: Unable to find a match: nss-mdns", "No match", "EPEL"),
        ("Failed to resolve the transaction:\nNo match for argument: nss-mdns", "No match", "EPEL"),
        ("Error: Failed to download metadata for repo 'baseos'", "Error: Failed", "package archive"),
        # zypper
        ("No provider of 'nss-mdns' found.", "No provider of 'nss-mdns' found.", "repository"),
        ("System management is locked by the application with pid 5 (zypper).", "System", "let it end"),
        # pacman
        ("error: target not found: nss-mdns", "error: target not found: nss-mdns", "pacman -Syu"),
        ("error: failed retrieving file 'x' from mirror", "error: failed retrieving", "package archive"),
        ("error: unable to lock database", "error: unable to lock database", "let it end"),
        ("something else\nE: odd", "E: odd", BY_HAND),
        ("", "", BY_HAND),
    ],
)
def test_each_complaint_has_its_advice(output: str, why: str, advice: str) -> None:
    found, hint = explain(output)

    assert found.startswith(why) and bool(found) == bool(why)
    assert advice in hint


@given(st.text())
def test_nothing_raises(output: str) -> None:
    assert explain(output)[1]
