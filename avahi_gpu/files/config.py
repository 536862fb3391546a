"""/etc/avahi-gpu/config.toml: what an administrator may say about this node. The file need not be there."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, fields
from typing import Any

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.txt import MAX_PRIORITY, MAX_VALUE_BYTES
from avahi_gpu.model import CONFIG_FOLDER, DEFAULT_CLUSTER, DEFAULT_PORT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = str(CONFIG_FOLDER / "config.toml")
MAX_PEERS = 64  # a typing error, not a cluster of two to ten nodes, is beyond it
MAX_INTERFACE_BYTES = 15  # IFNAMSIZ less the final zero

_PEER = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})|[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9._-]{1,15})?")
SIZE_MAX = 32 << 10  # bytes; the parser of TOML takes time with the square of a key's length
_INTERFACE = re.compile(r"[^\s/:%,\x00-\x1f]+")
_AT_LINE = re.compile(r"\(at line ([0-9]+), column [0-9]+\)")


@dataclass(frozen=True)
class Config:
    """The settings. ``interface``, ``python``, ``key_file``: None leaves the choice to avahi-gpu.

    ``peers``: nodes to ask where multicast does not get through.
    """

    cluster: str = DEFAULT_CLUSTER
    priority: int = 0
    port: int = DEFAULT_PORT
    interface: str | None = None
    python: str | None = None
    peers: tuple[str, ...] = ()
    key_file: str | None = None


def parse(content: bytes | str, where: str = PATH) -> Config:
    """Return the settings. Raises MalformedConfiguration (``where:line``) for a wrong key or value."""
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
        raise MalformedConfiguration(f"{where}:{line}", f"not TOML: {says}", hint) from None
    except RecursionError:
        raise MalformedConfiguration(
            f"{where}:1", "not TOML: nested too deep", "remove the nesting"
        ) from None
    known = [field.name for field in fields(Config)]
    for key, value in values.items():
        here = f"{where}:{_line_of(text, key)}"
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise MalformedConfiguration(here, f"“{key}” is not a setting", hint)
        wanted = _complain(key, value)
        if wanted:
            raise MalformedConfiguration(here, f"the value of {key} is {_show(value)}", f"write {wanted}")
    if "peers" in values:
        values["peers"] = tuple(values["peers"])
    return Config(**values)


def _decode(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MalformedConfiguration(f"{where}:{line}", "not UTF-8", "save the file in UTF-8") from None


def _complain(key: str, value: object) -> str:
    """Return what should stand there where ``value`` is not fit for ``key``, '' where it is."""
    if key == "cluster":
        limit = MAX_VALUE_BYTES["cluster"]
        fit = isinstance(value, str) and value.isprintable() and value == value.strip()
        fit = fit and isinstance(value, str) and 0 < len(value.encode()) <= limit
        return "" if fit else f"a name in quotes, of at most {limit} bytes, without blanks around it"
    if key == "priority":
        fit = type(value) is int and abs(value) <= MAX_PRIORITY
        return "" if fit else f"a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}"
    if key == "port":
        return "" if type(value) is int and 0 < value < 65536 else "a whole number from 1 to 65535"
    if key == "interface":
        fit = isinstance(value, str) and _INTERFACE.fullmatch(value) is not None
        fit = fit and isinstance(value, str) and len(value.encode()) <= MAX_INTERFACE_BYTES
        return "" if fit else 'the name of one interface in quotes, as “ip link” shows it: "eth0"'
    if key == "python":
        fit = isinstance(value, str) and value.startswith("/") and value.isprintable()
        return "" if fit else 'the full path of a Python in quotes: "/opt/venv/bin/python"'
    if key == "key_file":
        fit = isinstance(value, str) and value.startswith(("/", "~/")) and value.isprintable()
        return "" if fit else 'the full path of a file in quotes: "/etc/avahi-gpu/key"'
    fit = isinstance(value, list) and len(value) <= MAX_PEERS
    fit = fit and isinstance(value, list) and all(isinstance(p, str) and _PEER.fullmatch(p) for p in value)
    return "" if fit else f'a list of at most {MAX_PEERS} names or addresses: ["gpu-node-2", "10.0.0.3"]'


def _show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "…"


def _line_of(text: str, key: str) -> int:
    """Return the line that sets ``key`` (the first that could), 1 where it is written in an unusual way."""
    pattern = re.compile(rf"""^[ \t]*(?:\[+[ \t]*)?["']?{re.escape(key)}["']?[ \t]*[=.\]]""", re.MULTILINE)
    found = pattern.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 1
