"""AVAHI_GPU_LOG: which of the loggers ``avahi_gpu.…`` tell what, and that nothing is told unasked."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import logging, os, time
from avahi_gpu.rendezvous import log, steps
from avahi_gpu.rendezvous.agreement import Agreement
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.terms import Terms

for value in {values!r}:
    print(log.configure({{"AVAHI_GPU_LOG": value}} if value is not None else {{}}))
own = Candidate("5" * 16, "node-5", "10.77.0.5", 29400)
agreement, trace = Agreement(own, Terms("job", min_nodes=1, max_nodes=2)), log.start_trace(own, 0.0)
print("traced" if trace else "untraced")
event = steps.Seen(Candidate("1" * 16, "node-1", "10.77.0.1", 29400))
actions = agreement.handle(event, 0.5)
if trace:
    log.follow(trace, event, actions, agreement.core.candidates, 0.5)
logging.getLogger("avahi_gpu.rendezvous.channel").warning("something is odd")
"""


def run(*values: str | None, before: str = "") -> tuple[list[str], list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", before + SCRIPT.format(values=values)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_who_does_not_ask_is_told_nothing_and_nothing_is_followed() -> None:
    assert run(None) == (["", "untraced"], [])


def test_debug_tells_every_step() -> None:
    out, err = run("debug")

    assert out == ["", "traced"]
    assert err[0] == "avahi_gpu.rendezvous.agreement DEBUG +0.5000 in  seen node-1 at 10.77.0.1:29400"
    assert "avahi_gpu.rendezvous.agreement DEBUG +0.5000 out connect to node-1 at 10.77.0.1:29400" in err
    assert err[-1] == "avahi_gpu.rendezvous.channel WARNING something is odd"


def test_info_tells_the_choices_and_warning_what_is_odd() -> None:
    assert run("INFO")[1] == [
        "avahi_gpu.rendezvous.agreement INFO +0.5000 --  election: node-1 of 2: its name comes before node-5",
        "avahi_gpu.rendezvous.channel WARNING something is odd",
    ]
    assert run("warning") == (["", "untraced"], ["avahi_gpu.rendezvous.channel WARNING something is odd"])
    assert run("error") == (["", "untraced"], [])


def test_a_wrong_value_is_told_once() -> None:
    out, err = run("loud", "loud", "", None)

    sentence = "AVAHI_GPU_LOG=loud is not one of debug, info, warning, error: it changes nothing"
    assert out == [sentence, "", "", "", "untraced"]
    assert err == []


@pytest.mark.parametrize("value", ["debug", None])
def test_nothing_is_told_twice_where_the_program_logs_by_itself(value: str | None) -> None:
    _, err = run(value, value, before="import logging; logging.basicConfig(level='DEBUG')\n")

    seen = [line for line in err if "seen node-1" in line]
    assert len(seen) == 1
    assert seen[0].startswith("avahi_gpu.rend" if value else "DEBUG:avahi_gpu.rend")
