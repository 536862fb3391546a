"""Call one of glibc's modules for one name, as getaddrinfo(3) does: ``python nss_call.py MODULE NAME``.

Prints a word and its value on each line: ``loaded`` 0 or 1, ``status`` (enum nss_status, nss.h),
``elapsed_s``, ``address`` for each, ``error``. A module may hang or crash, so this is a process of its own;
it imports nothing of the package and little else: half of its 15 ms is the start of Python.
"""

from __future__ import annotations

import _socket as socket  # what the module of that name is made of, without the rest
import ctypes
import errno
import sys
import time
from typing import Any

TRYAGAIN, UNAVAIL, NOTFOUND, SUCCESS = -2, -1, 0, 1
BUFFER_BYTES = (4096, 65536, 1 << 20)  # as glibc grows it when a module says ERANGE
MAX_ADDRESSES = 64


class Tuple(ctypes.Structure):
    """struct gaih_addrtuple (nss.h)."""


Tuple._fields_ = [
    ("next", ctypes.POINTER(Tuple)),
    ("name", ctypes.c_char_p),
    ("family", ctypes.c_int),
    ("address", ctypes.c_uint32 * 4),
    ("scope", ctypes.c_uint32),
]


class Host(ctypes.Structure):
    """struct hostent (netdb.h)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("aliases", ctypes.c_void_p),
        ("family", ctypes.c_int),
        ("length", ctypes.c_int),
        ("addresses", ctypes.POINTER(ctypes.c_void_p)),
    )


def load(module: str) -> Any:
    """Return the library that holds the module; since glibc 2.34 files and dns are in libc itself."""
    built_in = ctypes.CDLL(None)
    if function_of(built_in, module) is not None:
        return built_in
    return ctypes.CDLL(f"libnss_{module}.so.2")


def function_of(library: Any, module: str) -> Any:
    """Return the module's look-up for all families, else that for one family, else None."""
    names = ("gethostbyname4_r", "gethostbyname3_r", "gethostbyname2_r")
    return next((f for n in names if (f := getattr(library, f"_nss_{module}_{n}", None)) is not None), None)


def call_all(function: Any, name: bytes) -> tuple[int, list[str]]:
    """Call gethostbyname4_r."""
    status = UNAVAIL
    for size in BUFFER_BYTES:
        buffer = ctypes.create_string_buffer(size)
        first = ctypes.POINTER(Tuple)()
        fault, host_fault, ttl = ctypes.c_int(), ctypes.c_int(), ctypes.c_int32()
        status = function(
            ctypes.c_char_p(name),
            ctypes.byref(first),
            buffer,
            ctypes.c_size_t(size),
            ctypes.byref(fault),
            ctypes.byref(host_fault),
            ctypes.byref(ttl),
        )
        if status == TRYAGAIN and fault.value == errno.ERANGE:
            continue
        found: list[str] = []
        while status == SUCCESS and first and len(found) < MAX_ADDRESSES:
            entry = first.contents
            found.append(show(entry.family, bytes(entry.address), entry.scope))
            first = entry.next
        return status, found
    return status, []


def call_one(function: Any, name: bytes, family: int) -> tuple[int, list[str]]:
    """Call gethostbyname3_r or gethostbyname2_r for one family (the former's last two may be NULL)."""
    status = UNAVAIL
    for size in BUFFER_BYTES:
        buffer = ctypes.create_string_buffer(size)
        host = Host()
        fault, host_fault = ctypes.c_int(), ctypes.c_int()
        status = function(
            ctypes.c_char_p(name),
            ctypes.c_int(family),
            ctypes.byref(host),
            buffer,
            ctypes.c_size_t(size),
            ctypes.byref(fault),
            ctypes.byref(host_fault),
            None,
            None,
        )
        if status == TRYAGAIN and fault.value == errno.ERANGE:
            continue
        found: list[str] = []
        while status == SUCCESS and len(found) < MAX_ADDRESSES and host.addresses[len(found)]:
            raw = ctypes.string_at(host.addresses[len(found)], host.length)
            found.append(show(host.family, raw, 0))
        return status, found
    return status, []


def show(family: int, raw: bytes, scope: int) -> str:
    """Return an address as text, a link-local one with its interface."""
    text = socket.inet_ntop(family, raw[: 4 if family == socket.AF_INET else 16])
    if not scope or not text.startswith("fe80:"):
        return text
    try:
        return f"{text}%{socket.if_indextoname(scope)}"
    except OSError:
        return f"{text}%{scope}"


def ask(module: str, name: str) -> dict[str, Any]:
    """Return what the module answers; never raises for what a module is or is not."""
    answer: dict[str, Any] = {
        "loaded": False,
        "status": UNAVAIL,
        "addresses": [],
        "elapsed_s": 0.0,
        "error": "",
    }
    try:
        library = load(module)
    except OSError as fault:
        return {**answer, "error": str(fault)}
    function = function_of(library, module)
    if function is None:
        return {**answer, "loaded": True, "error": "it looks no host names up"}
    started = time.monotonic()
    if function.__name__.endswith("4_r"):
        status, found = call_all(function, name.encode())
    else:
        both = [call_one(function, name.encode(), f) for f in (socket.AF_INET6, socket.AF_INET)]
        status, found = join(both[0][0], both[1][0]), both[1][1] + both[0][1]
    elapsed_s = time.monotonic() - started
    return {**answer, "loaded": True, "status": status, "addresses": found, "elapsed_s": elapsed_s}


def join(six: int, four: int) -> int:
    """Return the one status that getaddrinfo makes of two (glibc sysdeps/posix/getaddrinfo.c)."""
    if SUCCESS in (six, four):
        return SUCCESS
    if six == TRYAGAIN:
        return TRYAGAIN
    return six if four == UNAVAIL else four


def show_answer(answer: dict[str, Any]) -> str:
    """Return an answer as lines."""
    lines = [f"{word} {answer[word]:d}" for word in ("loaded", "status")]
    lines += [f"elapsed_s {answer['elapsed_s']:.6f}", *(f"address {a}" for a in answer["addresses"])]
    return "\n".join([*lines, f"error {' '.join(answer['error'].split())}", ""])


if __name__ == "__main__":
    sys.stdout.write(show_answer(ask(sys.argv[1], sys.argv[2])))
