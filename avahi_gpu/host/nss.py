"""Ask glibc's name service in a process of its own: a look-up can hang, and must not hang us."""

from __future__ import annotations

import re
import sys

from avahi_gpu.host.exposure import lower
from avahi_gpu.host.process import NOT_FOUND
from avahi_gpu.host.system import System
from avahi_gpu.model import Lookup

# a dead name server costs 2 attempts of 5 s (resolv.conf(5)); who waits longer has told enough
LOOKUP_S = 11.0
MAX_ADDRESSES = 64
UNKNOWN = 2  # getent(1): one of the names was not found

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?")
# in a world without getent (a container of few files) this Python's own getaddrinfo is the same glibc
_ASK = """
import socket, sys
try:
    for entry in socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM):
        print(entry[4][0])
except socket.gaierror as fault:
    sys.exit(fault.strerror)
"""


def lookup(system: System, name: str, python: str | None = None, within_s: float = LOOKUP_S) -> Lookup:
    """Return what glibc answers for ``name`` as any program would be told (getaddrinfo(3)); never raises.

    Addresses come in glibc's order, each once. ``python`` is asked where there is no getent(1).
    """
    if not is_host_name(name):
        return Lookup(name, (), 0.0, "not a host name")
    done = system.run(["getent", "ahosts", name], within_s)
    if done.returncode == NOT_FOUND:
        argv = [python or sys.executable, "-c", _ASK, name]
        done = system.run(lower(system, argv) if python else argv, within_s)
    if done.returncode is None:
        return Lookup(name, (), done.elapsed_s, "timeout")
    addresses = parse_ahosts(done.stdout)
    if done.ok and addresses:
        return Lookup(name, addresses, done.elapsed_s)
    # getent(1) itself says nothing when it exits with 2: a name was not found
    why = "name not found" if done.returncode in (0, UNKNOWN) else done.reason
    return Lookup(name, (), done.elapsed_s, done.stderr.strip() or why)


def reverse(system: System, address: str, within_s: float) -> Lookup:
    """Return how long glibc looks for the name of an address (getnameinfo(3)), and whether it finds one."""
    done = system.run(["getent", "hosts", address], within_s)
    if done.returncode is None:
        return Lookup(address, (), done.elapsed_s, "no answer in time")
    return Lookup(address, (), done.elapsed_s, "" if done.ok else done.stderr.strip() or "no name found")


def is_host_name(name: str) -> bool:
    """Whether a name may be put to glibc, and to programs as an argument: it begins with no dash."""
    return bool(_NAME.fullmatch(name))


def parse_ahosts(text: str) -> tuple[str, ...]:
    """Return the addresses that ``getent ahosts`` printed, the first word of each line, each once.

    On a machine without IPv4 glibc writes an IPv4 address as ``::ffff:127.0.0.1``; it is one all the same.
    """
    words = (line.split()[0].removeprefix("::ffff:") for line in text.splitlines() if line.strip())
    return tuple(dict.fromkeys(words))[:MAX_ADDRESSES]
