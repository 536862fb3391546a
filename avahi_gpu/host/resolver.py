"""Keep torch from waiting for a dead name server: for its log lines, it asks for the name of every peer."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

SLOW_S = 0.5  # a name server on the LAN answers in a millisecond, one far away in 0.1 s
OPTIONS = "RES_OPTIONS"
SLOW_NAMES = "the name server does not answer: RES_OPTIONS keeps torch from waiting for it"
IMPATIENT = "timeout:1 attempts:1"  # one question of a second instead of two of five (resolv.conf(5))


class NameProbe:
    """Asks for the name of an address in a thread, as torch's c10d does, and sees how long it takes.

    c10d asks by the IPv4-mapped address, which neither /etc/hosts nor mDNS answers. glibc reads RES_OPTIONS
    once, when a process asks for the first time: so this process is made impatient at once, and those that it
    starts later only where the name server turns out to be slow. What the user has set stays.
    """

    def __init__(self, address: str) -> None:
        self.address = address if ":" in address else f"::ffff:{address}"
        self.ours = OPTIONS not in os.environ
        if self.ours:
            os.environ[OPTIONS] = IMPATIENT
        self.slow = True
        self._began = time.monotonic()
        self._done = threading.Event()
        threading.Thread(target=self._ask, name="name-probe", daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError):  # that nobody knows the name is an answer
            socket.getnameinfo((self.address, 0), 0)
        self.slow = time.monotonic() - self._began > SLOW_S
        self._done.set()

    def settle(self) -> bool:
        """Decide, after SLOW_S at most, what our children get; return whether they are made impatient."""
        if not self.ours:
            return False
        self.ours = False
        self._done.wait(max(0.0, self._began + SLOW_S - time.monotonic()))
        if not self.slow:
            os.environ.pop(OPTIONS, None)
        return self.slow
