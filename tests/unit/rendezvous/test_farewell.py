"""Under plain torchrun the node says goodbye by itself, whatever way its process is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# a process with torch's way of ending: the signal's handler raises, and what follows takes its time
SCRIPT = """
import signal, sys, time
from avahi_gpu.rendezvous.farewell import promise_goodbye

class Node:
    def close(self, outcome, detail=""):
        print(outcome, detail, flush=True)

def stop(number, frame):
    time.sleep(0.5)
    print("handled", flush=True)
    raise SystemExit(1)

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, stop)
promise_goodbye(Node())
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_goes_out_before_the_signal_is_handled(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)  # it waits for a line by then: a signal before that would be handled after it alone
    process.send_signal(number)
    process.wait(10)
    said, _ = process.communicate()
    assert said.splitlines()[:2] == ["left interrupted", "handled"]


def test_it_goes_out_at_the_end_of_the_process_at_the_latest() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input="\n", capture_output=True, text=True, timeout=10, check=True
    )
    assert done.stdout.splitlines() == ["ready", "left "]
