"""What may stand in torchrun's ``--rdzv-conf``, and what is wrong with what stands there. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from avahi_gpu.errors import Misuse
from avahi_gpu.rendezvous.record import VALUE_MAX

KEYS = (
    "cluster",
    "master",
    "peers",
    "interface",
    "lost_after",
    "last_call_timeout",
    "join_timeout",
    "allow_skew",
    "key_file",
)
NAMES = ("cluster", "master", "peers", "interface", "key_file")  # whose values are words
# what torch and accelerate add by themselves, whatever the backend
ADDED = ("timeout", "rank")
SECONDS_END = 1e7  # a third of a year; whoever waits longer does not watch
YES, NO = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")  # as torch reads them


def complain(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about each key that means nothing to this backend: torch itself says nothing."""
    for key in config:
        if key not in (*KEYS, *ADDED):
            near = difflib.get_close_matches(key, KEYS, 1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS)}"
            yield f"warning: --rdzv-conf {key} means nothing to this backend; {meant}"


def check_names(config: Mapping[str, Any]) -> None:
    """Raise Misuse for a value that names nothing."""
    for key in NAMES:
        if key in config and not str(config[key]).strip(" .+"):
            raise Misuse(f"--rdzv-conf {key}={config[key]} names nothing", f"leave {key} out, or give a name")


def check_published(what: str, name: str) -> str:
    """Return the name of a job or cluster. Raises Misuse for one that the LAN's records cannot hold.

    ``--rdzv-id`` may be anything for torch, so more is allowed here than for ``launch``.
    """
    if not name.isprintable():  # nor is a byte of the environment that is no UTF-8
        raise Misuse(f"{what} {name[:40]!a} is not printable text", "give a name of letters and digits")
    if not 1 <= len(name.encode()) <= VALUE_MAX:
        size = f"{len(name.encode())} bytes long" if name else "empty"
        raise Misuse(f"{what} {name[:40]!r} is {size}", f"give a name of 1 to {VALUE_MAX} bytes")
    return name


def check_seconds(key: str, value: object, default: float, smallest: float = 0.0) -> float:
    """Return a number of seconds, not below ``smallest``. Raises Misuse."""
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0 <= number < SECONDS_END:
        raise Misuse(
            f"--rdzv-conf {key}={value} is not a number of seconds", f"write for example {key}={default:g}"
        )
    if number < smallest:
        raise Misuse(f"--rdzv-conf {key}={value} is too short", f"give {smallest:g} seconds or more")
    return number


def read_flag(config: Mapping[str, Any], key: str) -> bool:
    """Return a yes or no, no where it is not given. Raises Misuse."""
    word = str(config.get(key, "0")).strip().lower()
    if word not in (*YES, *NO):
        raise Misuse(f"--rdzv-conf {key}={config[key]} is neither yes nor no", f"write {key}=1 or {key}=0")
    return word in YES
