"""What Python is told of the own name, and the names that /etc/hosts pins."""

from __future__ import annotations

import socket

from avahi_gpu.host.own_name import MAX_PINNED, list_pinned, parse_answer, read_own_name
from avahi_gpu.host.system import System
from avahi_gpu.model import OwnName, PinnedName


def test_python_is_asked_in_a_process_of_its_own() -> None:
    own = read_own_name(System())

    assert own.name == socket.gethostname()
    assert own.fqdn and (own.addresses or own.error)


def test_an_answer_is_read() -> None:
    text = '{"name": "a", "fqdn": "a.lan", "found": [["a.lan", "10.0.0.1"], ["", "10.0.0.1"]], "error": ""}'

    own = parse_answer(text)

    assert own == OwnName("a", "a.lan", (("a.lan", "10.0.0.1"), ("", "10.0.0.1")))
    assert own.addresses == ("10.0.0.1",)


def test_each_pinned_name_is_listed_with_its_line() -> None:
    text = "127.0.0.1 localhost\n10.0.0.2 B.local. c.local b x.y.local\n"

    assert list_pinned(text) == (
        PinnedName(2, "b.local", "10.0.0.2"),
        PinnedName(2, "c.local", "10.0.0.2"),
    )


def test_a_file_of_thousands_asks_few_questions() -> None:
    assert len(list_pinned("".join(f"10.0.0.1 n{i}.local\n" for i in range(5000)))) == MAX_PINNED
