"""A line for whoever waits at a terminal, and nothing for anybody else."""

from __future__ import annotations

import io
import os
import pty
import time
from contextlib import suppress

from avahi_gpu.render.progress import CLEAR, describe, progress


def test_the_line_names_what_is_awaited_in_words() -> None:
    pending = {"names.servers", "gpus", "lan", "/etc/hosts", "host.own_name"}

    assert describe(pending, 3.2) == "… 3 s, waiting for /etc/hosts, GPUs, own name and 2 more"
    assert describe(set(), 2.0) == "… 2 s"


def test_a_pipe_hears_nothing() -> None:
    stream = io.StringIO()

    with progress(stream, {"lan"}):
        time.sleep(1.2)

    assert stream.getvalue() == ""


def on_a_terminal(seconds: float) -> str:
    """Return what a terminal is sent while a block takes so long."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, progress(stream, {"lan"}):
        time.sleep(seconds)
    seen = b""
    with suppress(OSError):  # EIO: all that was written is read, and the other end is closed
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    return seen.decode()


def test_a_terminal_sees_a_line_that_goes_away() -> None:
    seen = on_a_terminal(1.8)

    assert "waiting for answers from the LAN" in seen
    assert seen.endswith(CLEAR)
    assert "\n" not in seen


def test_what_is_fast_needs_no_word() -> None:
    assert on_a_terminal(0.1) == ""
