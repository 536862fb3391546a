"""The hosts line and /etc/hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.nsswitch import Machine
from avahi_gpu.files.nsswitch_files import ask_files, find_unasked

HERE = Machine()
MDNS = "mdns4_minimal [NOTFOUND=return]"


@pytest.mark.parametrize(
    "services",
    [
        f"files {MDNS} dns",
        "mymachines files dns",
        f"files [NOTFOUND=return] {MDNS} dns",
        "dns files",
    ],
)
def test_a_line_that_reaches_files_is_not_to_blame(services: str) -> None:
    content = f"hosts: {services}\n".encode()

    assert find_unasked(content) is None and ask_files(content, HERE).content is None


@pytest.mark.parametrize(
    ("before", "after", "because"),
    [
        (f"{MDNS} dns", f"files {MDNS} dns", "is not on the hosts line"),
        ("files, dns", "files files, dns", "is not on the hosts line"),
        (f"files [SUCCESS=merge] {MDNS} dns", f"files {MDNS} dns", "forgets"),
        (f"files[SUCCESS=continue] {MDNS} dns", f"files {MDNS} dns", "forgets"),
        ("dns [NOTFOUND=return] files", "files dns [NOTFOUND=return] ", "can end the search"),
        ("resolve [!UNAVAIL=return] files myhostname", "files resolve [!UNAVAIL=return] myhostname", "end"),
    ],
)  # fmt: skip
def test_files_is_put_first(before: str, after: str, because: str) -> None:
    text = f"passwd: files\nhosts:\t{before}\nrpc: db\n"

    found, repair = find_unasked(text.encode()), ask_files(text.encode(), HERE)

    assert found is not None and because in found.says and found.line == 2
    assert (repair.verdict, repair.content) == ("repair", text.replace(before, after).encode())


def test_a_file_of_another_program_is_left_to_it() -> None:
    repair = ask_files(b"hosts: dns\n", Machine(link_target="/etc/authselect/nsswitch.conf"))

    assert repair.verdict == "managed" and repair.content is None and repair.hint


@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda t: f"hosts: {t}\n".encode()))
def test_what_was_repaired_is_not_repaired_again(content: bytes) -> None:
    repair = ask_files(content, HERE)

    assert repair.content is None or find_unasked(repair.content) is None
