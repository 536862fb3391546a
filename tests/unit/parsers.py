"""Every function of ours that reads raw text or bytes, found by its form, ready to be fed with anything."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.avahi_conf_edit import Wanted
from avahi_gpu.files.nsswitch import Machine
from avahi_gpu.host.process import Completed
from avahi_gpu.model import NodeFacts, Service
from avahi_gpu.rendezvous.proof import Pass

PACKAGE = Path(__file__).resolve().parents[2] / "avahi_gpu"
# names of first parameters that hold what somebody else wrote
RAW = frozenset({"text", "content", "line", "table", "message", "data", "output", "raw", "template"})
PREFIXES = ("parse", "decode")

Feed = Callable[[bytes], Any]

# not readers of foreign text: they print, or take what has been read already
EXEMPT = frozenset(
    {
        "checks.name_servers.parsed",
        "rendezvous.voice.tell",
        "files.nsswitch_edit.parse_again",
        "files.unit_file.render_boot_unit",
    }
)


def as_text(data: bytes) -> str:
    """Return the data as the readers of files make text of it: bytes that are no UTF-8 survive."""
    return data.decode("utf-8", "surrogateescape")


def as_shown(data: bytes) -> str:
    """Return the data as the output of a program is read."""
    return data.decode("utf-8", "replace")


# for each annotation of a parameter that must be given: what to give
ARGUMENTS: dict[str, Callable[[bytes], Any]] = {
    "bytes": lambda data: data,
    "bytes | None": lambda data: data,
    "bytes | str": lambda data: data,
    "str": as_shown,
    "list[str]": lambda data: as_shown(data).split("\0"),
    "Iterable[bytes]": lambda data: data.split(b"\n"),
    "Sequence[bytes]": lambda data: data.split(b"\n"),
    "Collection[str]": lambda data: as_shown(data[:64]).split(),
    "Sequence[str]": lambda data: as_shown(data[:64]).split(),
    "Collection[int]": lambda data: range(2, 2 + len(data) % 3),
    "int": lambda data: 4,
    "float": lambda data: 1e9,
    "NodeFacts": lambda data: NodeFacts("0123456789ab"),
    "int | None": lambda data: None,
    "Literal[4, 6]": lambda data: 4,
    "bool": lambda data: len(data) % 2 == 0,
    "tuple[str, str, str]": lambda data: ("inet", "filter", "input"),
    "Wanted": lambda data: Wanted("server", "use-ipv4", ("yes", None)[len(data) % 2]),
    "tuple[Wanted, ...]": lambda data: (Wanted("server", "use-ipv4", "yes"), Wanted("publish", "x", None)),
    "Machine": lambda data: Machine(),
    "Completed": lambda data: Completed(("x",), len(data) % 3, as_shown(data), as_shown(data), 0.1),
    "Pass": lambda data: Pass("a", "gpu-node-1", "job", "default"),
    "Service": lambda data: Service(as_shown(data), "_x._tcp", 2, 4, "h.local", "10.0.0.1", 1, (data,)),
}
# a second string is a name, a sender, a host: not the data again
FURTHER = {
    "str": "gpu-node-1",
    "bytes": b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05local\x00\x00\x06\x00\x01",
}
# files are read so that every byte survives
WHOLE = (
    "files.nsswitch",
    "files.etc_hosts",
    "host.own_name.list_pinned",
    "files.avahi_conf",
    "files.resolv_conf",
)


def find_parsers() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Return name and definition of every public function that reads raw text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _is_reader(node):
                yield f"{module}.{node.name}", node


def _is_reader(node: ast.FunctionDef) -> bool:
    if not node.args.args:
        return False
    first = node.args.args[0]
    annotation = ast.unparse(first.annotation) if first.annotation else ""
    raw = first.arg in RAW and any(word in annotation for word in ("str", "bytes"))
    return node.name.startswith(PREFIXES) or raw


def feed_of(name: str, node: ast.FunctionDef) -> Feed | None:
    """Return what calls the function with any data; None where a parameter is of a kind unknown here."""
    arguments = node.args.args
    required = arguments[: len(arguments) - len(node.args.defaults)] or arguments[:1]
    kinds = [ast.unparse(a.annotation) if a.annotation else "" for a in required]
    if any(kind not in ARGUMENTS for kind in kinds):
        return None
    named = [
        a for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
    ]
    named_kinds = {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in named}
    if any(kind not in ARGUMENTS for kind in named_kinds.values()):
        return None
    module, _, function = name.rpartition(".")
    call = getattr(import_module(f"avahi_gpu.{module}"), function)

    def give(data: bytes) -> Any:
        first = as_text(data) if kinds[0] == "str" and name.startswith(WHOLE) else ARGUMENTS[kinds[0]](data)
        more = [FURTHER.get(kind) or ARGUMENTS[kind](data) for kind in kinds[1:]]
        return call(first, *more, **{name: ARGUMENTS[kind](data) for name, kind in named_kinds.items()})

    return give


def faults_of(node: ast.FunctionDef) -> tuple[type[Exception], ...]:
    """Return what the function may raise: errors of ours, and what its docstring promises."""
    promised = (ast.get_docstring(node) or "").partition("Raises")[2]
    return (AvahiGpuError, *(kind for kind in (ValueError, IndexError) if kind.__name__ in promised))


PARSERS: dict[str, ast.FunctionDef] = {n: node for n, node in find_parsers() if n not in EXEMPT}
