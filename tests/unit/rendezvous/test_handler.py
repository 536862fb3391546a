"""The agents' store on the socket that the node has opened for it, with the installed torch."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.host.system import System
from avahi_gpu.rendezvous.messages import Seat, Token
from avahi_gpu.rendezvous.steps import Round

pytestmark = pytest.mark.torch


@pytest.fixture
def handler() -> Any:
    from avahi_gpu.rendezvous import handler

    return handler


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        yield ours


def formed(handler: Any, store: socket.socket | None, port: int) -> Any:
    """Return a round of this host alone whose store is said to be at ``port``."""
    seat = Seat(id="a" * 16, host="gpu-node-1", address="127.0.0.1", mesh_port=1)
    return handler.Formed(Round(Token(epoch=1, leader="a" * 16), (seat,), 0, port, 29500), "", store)


def test_the_leaders_store_takes_the_socket_over_and_others_reach_it(
    handler: Any, listening: socket.socket
) -> None:
    port = listening.getsockname()[1]
    rendezvous = handler.AvahiRendezvous(None, "job")
    server = rendezvous.open_store(formed(handler, listening, port))
    client = rendezvous.open_store(formed(handler, None, port))
    client.set("here", "1")

    server.wait(["here"], timedelta(seconds=5))
    assert listening.fileno() == -1  # the one descriptor left is torch's
    del client, server
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)


def test_where_torch_does_not_take_the_socket_whoever_waits_for_the_store_is_let_go(
    handler: Any, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:  # as torch 2.6 does for its libuv store
        raise NotImplementedError("no listen fd")

    monkeypatch.setattr(handler, "TCPStore", refuse)
    port = listening.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), 5) as early:
        with pytest.raises(NotImplementedError):
            handler.AvahiRendezvous(None, "job").open_store(formed(handler, listening, port))
        with pytest.raises(ConnectionResetError):
            early.recv(1)


@pytest.mark.parametrize(
    ("version", "is_so"),
    [
        ("2.6.0+cu124", False),
        ("2.7.1", False),
        ("2.8.0", True),
        ("2.13.0+cpu", True),
        ("3.0", True),
        ("x", True),
    ],
)
def test_older_torches_are_known_by_their_version(handler: Any, version: str, is_so: bool) -> None:
    assert handler.mended(version) is is_so


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"allow_skew": "maybe"}, "allow_skew=maybe is neither yes nor no"),
        ({"master": ".."}, "master=.. names nothing"),
        ({"lost_after": "soon"}, "lost_after=soon is not a number of seconds"),
        ({"lost_after": "0"}, "lost_after=0 is too short"),
    ],
)
def test_a_wrong_value_in_rdzv_conf_is_a_sentence_and_no_traceback(
    handler: Any, conf: dict[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    with pytest.raises(SystemExit) as end:
        handler.create(RendezvousParameters("avahi", "", "wrong", 1, 1, **conf))

    assert end.value.code == 2
    what, hint = capsys.readouterr().err.splitlines()
    assert what.startswith("avahi-gpu: --rdzv-conf ") and says in what
    assert hint.startswith("avahi-gpu: ")


@pytest.mark.parametrize("job", ["x" * 201, "a\nb"])
def test_a_job_that_the_records_cannot_name_is_a_sentence_and_no_traceback(
    handler: Any, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    with pytest.raises(SystemExit) as end:
        handler.create(RendezvousParameters("avahi", "", job, 1, 1))

    assert end.value.code == 2
    what, _ = capsys.readouterr().err.splitlines()
    assert what.startswith("avahi-gpu: the job's name ")


def test_a_launcher_that_passes_no_name_of_the_job_leaves_it_to_the_environment(
    handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate does not; torchrun itself says none then."""
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    def job(run_id: str) -> str:
        return str(handler.settings_of(RendezvousParameters("avahi", "", run_id, 1, 1)).terms.job)

    assert job("none") == "none" and job("llama") == "llama"
    monkeypatch.setenv("AVAHI_GPU_JOB", "mistral")
    assert job("none") == "mistral" and job("llama") == "llama"


def test_the_settings_of_the_machine_hold_for_torchrun_and_its_own_words_before_them(
    handler: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    monkeypatch.setattr(handler, "System", lambda: System(tmp_path))
    (tmp_path / "etc/avahi-gpu").mkdir(parents=True)
    (tmp_path / "etc/avahi-gpu/config.toml").write_text(
        'cluster = "lab"\npriority = 7\ninterfaces = ["eth0", "eth1"]\npeers = ["10.0.0.2"]\n'
    )

    settings = handler.settings_of(RendezvousParameters("avahi", "", "job", 1, 1))
    assert (settings.terms.cluster, settings.priority, settings.peers) == ("lab", 7, ("10.0.0.2",))
    assert settings.interfaces == ("eth0", "eth1")
    assert settings.interface_words == "interfaces eth0,eth1 of /etc/avahi-gpu/config.toml:3"

    monkeypatch.setenv("AVAHI_GPU_PRIORITY", "-1")
    own = RendezvousParameters(
        "avahi", "", "job", 1, 1, cluster="loft", interface="eth2", peers="10.0.0.3+10.0.0.4"
    )
    settings = handler.settings_of(own)
    assert (settings.terms.cluster, settings.priority) == ("loft", -1)
    assert (settings.interface, settings.interfaces, settings.interface_words) == ("eth2", (), "")
    assert settings.peers == ("10.0.0.3", "10.0.0.4")


def test_a_mistake_in_the_settings_ends_torchrun_with_2_and_a_sentence(
    handler: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    monkeypatch.setenv("AVAHI_GPU_PRIORITY", "\x1b[31mhigh")
    with pytest.raises(SystemExit) as end:
        handler.create(RendezvousParameters("avahi", "", "job", 1, 1))

    assert end.value.code == 2
    what, _ = capsys.readouterr().err.splitlines()
    assert "AVAHI_GPU_PRIORITY: the value of priority is '\\x1b[31mhigh'" in what


def test_a_cluster_in_the_environment_that_is_no_text_is_refused_and_an_empty_one_is_none(
    handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    asked = RendezvousParameters("avahi", "", "job", 1, 1)
    monkeypatch.setenv("AVAHI_GPU_CLUSTER", "")
    assert handler.settings_of(asked).terms.cluster == "default"
    monkeypatch.setenv("AVAHI_GPU_CLUSTER", "\udcff")
    with pytest.raises(MalformedConfiguration, match="AVAHI_GPU_CLUSTER"):
        handler.settings_of(asked)
