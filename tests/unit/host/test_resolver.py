"""A slow name server is noticed, and only our children's environment tells of it. The lab has a dead one."""

from __future__ import annotations

import os
import socket
import time

import pytest

from avahi_gpu.host.resolver import IMPATIENT, OPTIONS, SLOW_S, NameProbe


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTIONS, "")  # so that it is put back as it was
    monkeypatch.delenv(OPTIONS)


def test_where_names_are_answered_quickly_children_get_nothing() -> None:
    probe = NameProbe("127.0.0.1")
    assert os.environ[OPTIONS] == IMPATIENT  # this process is impatient from its first question on
    assert probe.settle() is False
    assert OPTIONS not in os.environ


@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "long after"])
def test_where_they_are_not_children_are_made_impatient(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getnameinfo", lambda *_: time.sleep(SLOW_S + 0.2))
    began = time.monotonic()
    probe = NameProbe("10.77.0.1")
    if late:
        time.sleep(SLOW_S + 0.4)
    assert probe.settle() is True
    assert probe.settle() is False  # it is said once
    assert os.environ[OPTIONS] == IMPATIENT
    assert time.monotonic() - began < 2 * SLOW_S + 0.5


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTIONS, "timeout:3")
    assert NameProbe("127.0.0.1").settle() is False
    assert os.environ[OPTIONS] == "timeout:3"
