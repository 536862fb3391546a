"""What the environment says to torch: the same as torch itself would make of it."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.torch_environment import (
    MAX_VALUE,
    choose,
    endpoints,
    is_by_hand,
    is_host,
    matches_machine,
    nodes,
)

C10D = {"PET_RDZV_BACKEND": "c10d"}


def test_what_torch_does_not_read_is_left_out() -> None:
    chosen = choose({"MASTER_ADDR": "a", "HOME": "/root", "PET_X": "y" * 1000, "RANK": "0", "PATH": "/bin"})

    assert list(chosen) == ["MASTER_ADDR", "PET_X", "RANK"]
    assert len(chosen["PET_X"]) == MAX_VALUE


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        ({"PET_RDZV_ENDPOINT": "a.local:29500"}, [("a.local", 29500, "")]),
        ({"PET_RDZV_ENDPOINT": "a.local"}, [("a.local", 29400, "")]),
        ({"PET_RDZV_ENDPOINT": "[fd77::1]:29500"}, [("fd77::1", 29500, "")]),
        ({"PET_RDZV_ENDPOINT": "[fd77::1]"}, [("fd77::1", 29400, "")]),
        ({"PET_RDZV_ENDPOINT": "x:1", "PET_RDZV_BACKEND": "avahi"}, []),
        ({"PET_MASTER_ADDR": "a"}, [("a", 29500, "")]),
        ({"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29511"}, [("10.0.0.1", 29511, "")]),
        ({"MASTER_ADDR": ""}, [("", 29500, "there is no host")]),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "http"}, [("a", None, "'http' is not a port")]),
        ({"MASTER_ADDR": "a", "MASTER_PORT": "70000"}, [("a", None, "'70000' is not a port")]),
        ({"MASTER_ADDR": "tcp://a:1"}, [("tcp://a:1", 29500, "'tcp://a:1' is not a host")]),
        (
            {"MASTER_ADDR": "fe80::1%eth0"},
            [("fe80::1%eth0", 29500, "torchrun takes no zone: 'fe80::1%eth0'")],
        ),
    ],
)
def test_endpoints(environ: dict[str, str], expected: list[tuple[str, int | None, str]]) -> None:
    assert [(e.host, e.port, e.malformed) for e in endpoints(environ)] == expected


@pytest.mark.parametrize(
    ("environ", "by_hand"),
    [
        ({}, False),
        ({"MASTER_ADDR": "localhost"}, False),
        ({"MASTER_ADDR": "127.0.0.1"}, False),
        ({"MASTER_ADDR": "10.0.0.1"}, True),
        ({"MASTER_ADDR": "10.0.0.1", "PET_RDZV_BACKEND": "avahi"}, False),
        ({"MASTER_ADDR": "10.0.0.1", "PET_NNODES": "1"}, False),
        ({"MASTER_ADDR": "10.0.0.1", "PET_NNODES": "1:4"}, True),
        (C10D, True),
        ({**C10D, "PET_STANDALONE": "1"}, False),
    ],
)
def test_who_types_addresses_by_hand(environ: dict[str, str], by_hand: bool) -> None:
    assert is_by_hand(environ) == by_hand


@pytest.mark.parametrize(
    ("text", "told"),
    [("", None), ("is_host=1", True), ("timeout=3, is_host=false", False), ("is_host=0", False), ("x", None)],
)
def test_is_host(text: str, told: bool | None) -> None:
    assert is_host({"PET_RDZV_CONF": text}) is told


def test_nodes() -> None:
    assert [nodes({"PET_NNODES": n}) for n in ("2", "1:3", "", "x")] == [2, 3, None, None]


@pytest.mark.parametrize(
    ("host", "addresses", "expected"),
    [
        ("localhost", (), True),
        ("127.0.0.9", ("127.0.0.9",), True),
        ("node", (), True),
        ("node.lan", (), True),
        ("127.0.1.1", ("127.0.1.1",), True),
        ("node.local", ("10.0.0.1",), False),
        ("10.0.0.1", ("10.0.0.1",), False),
        ("alias", ("127.0.1.1",), True),
    ],
)
def test_the_guess_on_a_stock_debian(host: str, addresses: tuple[str, ...], expected: bool) -> None:
    found = (("node.lan", "127.0.1.1"),)

    assert matches_machine(host, addresses, "node", found) is expected


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.0.9.9", "10.99.0.1", "nosuch.invalid", "OWN"]
)
def test_the_guess_is_torchs_own(host: str) -> None:
    utils = pytest.importorskip("torch.distributed.elastic.rendezvous.utils")
    host = socket.gethostname() if host == "OWN" else host

    def ask(name: str) -> list[tuple[str, str]]:
        try:
            told = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
        except OSError:
            return []
        return [(entry[3], str(entry[4][0])) for entry in told]

    addresses = tuple(address for _, address in ask(host))
    mine = matches_machine(host, addresses, socket.gethostname(), tuple(ask(socket.gethostname())))
    assert mine == utils._matches_machine_hostname(host)


@given(
    st.dictionaries(
        st.sampled_from(["MASTER_ADDR", "MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_NNODES"]), st.text()
    )
)
def test_any_environment_is_read(environ: dict[str, str]) -> None:
    endpoints(environ)
    is_by_hand(environ)
    is_host(environ)
