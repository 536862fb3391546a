"""Saying goodbye under plain torchrun, whose agent calls nobody when a signal ends it.

Without that the other nodes would notice by the end of the process: seconds later, as torch's modules take
their time to go, and after our workers, whose end they would take for a failure of the job.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading

from avahi_gpu.rendezvous.node import Node

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}  # what torch's agents end by


def promise_goodbye(node: Node) -> None:
    """Have the node say goodbye when a signal comes in, and at the latest when the process ends.

    Signals keep their handlers. Where something else listens to Python's wake-up descriptor, it stays so.
    """
    atexit.register(node.close, "left")
    if threading.current_thread() is not threading.main_thread():
        return  # only there signals can be listened to
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    before = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(ours)
        os.close(theirs)
        return
    threading.Thread(target=_listen, args=(ours, node), name="farewell", daemon=True).start()


def _listen(descriptor: int, node: Node) -> None:
    """Python writes the number of each signal that it is about to handle."""
    while number := os.read(descriptor, 1):
        if number[0] in ENDING:
            node.close("left", "interrupted")
            return
