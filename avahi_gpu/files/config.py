"""/etc/avahi-gpu/config.toml: what an administrator may say about this node. The file need not be there."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.etc_hosts import is_address
from avahi_gpu.files.txt import MAX_PRIORITY, MAX_VALUE_BYTES
from avahi_gpu.model import CONFIG_FOLDER, DEFAULT_CLUSTER, DEFAULT_PORT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = str(CONFIG_FOLDER / "config.toml")
MAX_PEERS = 64  # a typing error, not a cluster of two to ten nodes, is beyond it
MAX_INTERFACES = 16  # as many networks as a node may tell the others of
MAX_INTERFACE_BYTES = 15  # IFNAMSIZ less the final zero

_PEER = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})|[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9._-]{1,15})?")
_NUMBERS = re.compile(r"[0-9.]+")
MAX_PATH_BYTES = 4095  # PATH_MAX less the final zero
SHOWN_MAX = 60  # characters of a value or key in a sentence
SIZE_MAX = 32 << 10  # bytes; the parser of TOML takes time with the square of a key's length
_INTERFACE = re.compile(r"[^\s/:%,\x00-\x1f]+")
_AT_LINE = re.compile(r"\(at line ([0-9]+), column [0-9]+\)")


@dataclass(frozen=True)
class Config:
    """The settings. ``interface``, ``python``, ``key_file``: None leaves the choice to avahi-gpu.

    ``peers``: nodes to ask where multicast does not get through. ``interfaces``: the cards that count, for
    jobs and for the doctor; none: all of them. ``interface``: the one that jobs run on.
    """

    cluster: str = DEFAULT_CLUSTER
    priority: int = 0
    port: int = DEFAULT_PORT
    interface: str | None = None
    python: str | None = None
    peers: tuple[str, ...] = ()
    key_file: str | None = None
    interfaces: tuple[str, ...] = ()


NAMES = tuple(field.name for field in fields(Config))
LISTS = ("peers", "interfaces")
NUMBERS = ("priority", "port")


def parse(content: bytes | str, where: str = PATH) -> Config:
    """Return the settings. Raises MalformedConfiguration (``where:line``) for a wrong key or value."""
    return Config(**{name: value for name, (value, _) in parse_said(content, where).items()})


def parse_said(content: bytes | str, where: str = PATH) -> dict[str, tuple[Any, str]]:
    """Return each setting that the file makes: name -> (value, ``where:line``). Raises as ``parse`` does."""
    if len(content) > SIZE_MAX:
        says = f"not TOML as we take it: larger than {SIZE_MAX} bytes"
        raise MalformedConfiguration(f"{where}:1", says, "a dozen lines are enough")
    text = _decode(content, where) if isinstance(content, bytes) else content
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError is one; a number of thousands of digits raises another
        found = _AT_LINE.search(str(error))
        line = found[1] if found else text.count("\n") + 1
        says = _AT_LINE.sub("", str(error)).replace("(at end of document)", "at the end").strip()
        hint = 'write key = value, with names in quotes: cluster = "lab"'
        if says == "Cannot overwrite a value":  # tomllib's words
            says, hint = f"the setting stands twice: {says}", "leave one of the two out"
        raise MalformedConfiguration(f"{where}:{line}", f"not TOML: {says}", hint) from None
    except RecursionError:
        raise MalformedConfiguration(
            f"{where}:1", "not TOML: nested too deep", "remove the nesting"
        ) from None
    said = {}
    for key, value in values.items():
        here = f"{where}:{_line_of(text, key)}"
        if key not in NAMES:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(NAMES)}"
            raise MalformedConfiguration(here, f"“{_cut(key)}” is not a setting", hint)
        wanted = complain(key, tuple(value) if isinstance(value, list) else value)
        if wanted:
            hint = f"write {wanted}, for example {key} = {EXAMPLES[key]}"
            raise MalformedConfiguration(here, f"the value of {key} is {show_value(value)}", hint)
        said[key] = (tuple(value) if key in LISTS else value, here)
    demand_agreement(said)
    return said


def demand_agreement(said: dict[str, tuple[Any, str]]) -> None:
    """Raise MalformedConfiguration where ``interface`` is none of ``interfaces``, said in one place."""
    if "interface" in said and "interfaces" in said and said["interface"][0] not in said["interfaces"][0]:
        name, where = said["interface"]
        raise MalformedConfiguration(
            where,
            f"the value of interface is {show_value(name)}, which is none of interfaces",
            f"add it to interfaces ({said['interfaces'][1]}), or leave one of the two out",
        )


def _decode(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MalformedConfiguration(f"{where}:{line}", "not UTF-8", "save the file in UTF-8") from None


# --- what a value may be -----------------------------------------------------------------------------------


def complain(name: str, value: object) -> str:
    """Return what is wanted where ``value`` is not fit for the setting ``name``, '' where it is."""
    fit, wanted = _RULES[name]
    return "" if fit(value) else wanted


def _is_word(value: object, limit: int) -> bool:
    """Whether it is printable text of 1 to ``limit`` bytes without blanks around it."""
    fit = isinstance(value, str) and value.isprintable() and value == value.strip()
    return fit and isinstance(value, str) and 0 < len(value.encode()) <= limit


def _is_path(value: object, starts: tuple[str, ...]) -> bool:
    return _is_word(value, MAX_PATH_BYTES) and isinstance(value, str) and value.startswith(starts)


def _is_peer(value: object) -> bool:
    if not isinstance(value, str) or _PEER.fullmatch(value) is None:
        return False
    return _NUMBERS.fullmatch(value) is None or is_address(value)  # no name is numbers and dots


def _is_interface(value: object) -> bool:
    fit = _is_word(value, MAX_INTERFACE_BYTES) and isinstance(value, str)
    return fit and _INTERFACE.fullmatch(str(value)) is not None


def _is_list(value: object, most: int, fit: Callable[[object], bool]) -> bool:
    return isinstance(value, tuple) and len(value) <= most and all(map(fit, value))


_RULES: dict[str, tuple[Callable[[object], bool], str]] = {
    "cluster": (
        lambda v: _is_word(v, MAX_VALUE_BYTES["cluster"]) and "," not in str(v),
        f"a name of at most {MAX_VALUE_BYTES['cluster']} bytes, without commas, and without blanks around it",
    ),
    "priority": (
        lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) <= MAX_PRIORITY,
        f"a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}",
    ),
    "port": (
        lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 < v < 65536,
        "a whole number from 1 to 65535",
    ),
    "interface": (_is_interface, "the name of one interface as `ip link` shows it"),
    "python": (lambda v: _is_path(v, ("/",)), "the full path of a Python"),
    "peers": (
        lambda v: _is_list(v, MAX_PEERS, _is_peer),
        f"a list of at most {MAX_PEERS} names or addresses",
    ),
    "key_file": (lambda v: _is_path(v, ("/", "~/")), "the full path of a file"),
    "interfaces": (
        lambda v: _is_list(v, MAX_INTERFACES, _is_interface),
        f"a list of at most {MAX_INTERFACES} names of interfaces as `ip link` shows them",
    ),
}
# as the file wants them written
EXAMPLES = {
    "cluster": '"lab"',
    "priority": "10",
    "port": "29500",
    "interface": '"eth0"',
    "python": '"/opt/venv/bin/python"',
    "peers": '["gpu-node-2", "10.0.0.3"]',
    "key_file": '"/etc/avahi-gpu/key"',
    "interfaces": '["eth0", "eth1"]',
}


def show_value(value: object) -> str:
    """Return a value as a sentence shows it, safe to print and not longer than a line."""
    return _cut(repr(list(value) if isinstance(value, tuple) else value))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"


def _line_of(text: str, key: str) -> int:
    """Return the line that sets ``key`` (the first that could), 1 where it is written in an unusual way."""
    pattern = re.compile(rf"""^[ \t]*(?:\[+[ \t]*)?["']?{re.escape(key)}["']?[ \t]*[=.\]]""", re.MULTILINE)
    found = pattern.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 1
