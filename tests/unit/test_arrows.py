"""The walls between the folders: who may import whom, what is pure, and which library lives in which room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "avahi_gpu"

WORDS = {"errors", "result", "__init__"}  # modules of the package itself: everyone speaks them

# folder -> the other folders that it may import
ARROWS = {
    "model": set(),
    "files": set(),
    "avahi": {"files"},
    "host": {"files", "avahi"},
    "checks": {"files"},
    "changes": {"files", "host"},
    "rendezvous": {"files", "avahi", "host"},
    "launch": {"files", "avahi", "host", "rendezvous"},
    "gauge": {"files", "avahi", "host", "rendezvous", "launch"},
    "survey": {"files", "avahi", "host", "rendezvous"},
    "render": {"files", "changes"},
    "cli": {
        "files",
        "avahi",
        "host",
        "checks",
        "changes",
        "rendezvous",
        "launch",
        "gauge",
        "survey",
        "render",
    },
}

# single arrows beyond these, each with its reason
EXCEPTIONS = {
    # under plain torchrun there is no command line of ours: the backend itself tells people what happens
    ("rendezvous/voice.py", "avahi_gpu.render.text"),
    ("rendezvous/voice.py", "avahi_gpu.render.waiting"),
}

# these take data and give data: no file, process, socket, clock, chance or environment
PURE = (
    "model/*.py",
    "errors.py",
    "result.py",
    "files/*.py",
    "checks/*.py",
    "changes/change.py",
    "changes/plan.py",
    "rendezvous/*.py",
    "gauge/figures.py",
    "gauge/messages.py",
    "gauge/schedule.py",
    "gauge/verdict.py",
    "survey/limits.py",
    "survey/messages.py",
    "survey/record.py",
)
# … except the thin edges of the rendezvous, which hold its sockets, clocks and D-Bus
EDGES = (
    "rendezvous/around.py",
    "rendezvous/channel.py",
    "rendezvous/farewell.py",
    "rendezvous/handler.py",
    "rendezvous/hangup.py",
    "rendezvous/log.py",
    "rendezvous/mesh.py",
    "rendezvous/node.py",
    "rendezvous/plugin.py",
    "rendezvous/seek.py",
    "rendezvous/presence.py",
    "rendezvous/scout.py",
    "rendezvous/seating.py",
    "rendezvous/sightings.py",
    "rendezvous/store.py",
    "rendezvous/surroundings.py",
    "rendezvous/voice.py",
    "rendezvous/wire.py",
)
EFFECTS = {
    "asyncio", "concurrent", "datetime", "fcntl", "glob", "http", "io", "multiprocessing", "os", "platform",
    "random", "secrets", "select", "selectors", "shutil", "signal", "socket", "subprocess", "tempfile",
    "threading", "time", "urllib", "uuid",
}  # fmt: skip
EFFECT_CALLS = {"open", "input", "print", "exec", "eval", "__import__"}
PATH_READS = {
    "exists", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir", "open", "read_bytes",
    "read_text", "readlink", "rename", "resolve", "stat", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip

# library -> the only places that may import it
ROOMS = {
    "dbus_next": ("avahi/bus.py",),
    "torch": ("rendezvous/handler.py", "rendezvous/store.py", "launch/*.py", "gauge/collective.py"),
    "pyroute2": ("host/kernel.py",),
    "pynvml": ("host/gpu.py",),
    "jinja2": ("files/service_template.py",),
    "subprocess": ("host/process.py", "host/guard.py", "launch/*.py"),
    "typer": ("cli/*.py",),
    "rich": ("cli/*.py", "render/*.py"),
}


def is_one_of(place: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(place, pattern) for pattern in patterns)


def is_pure(place: str) -> bool:
    return is_one_of(place, PURE) and place not in EDGES


def imports(tree: ast.AST, place: str) -> Iterator[tuple[int, str]]:
    """Yield line and absolute name of every module, or thing in a module, that a file imports anywhere."""
    package = ["avahi_gpu", *place.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, str(a.value)) for a in node.args if isinstance(a, ast.Constant))


def wrong_arrow(place: str, name: str) -> str:
    """Say what is wrong with importing ``name`` of ours at ``place``, '' if nothing is."""
    parts = name.split(".")
    if parts[0] != "avahi_gpu" or len(parts) == 1:
        return ""
    source, target = place.split("/", maxsplit=1)[0].removesuffix(".py"), parts[1]
    if target not in ARROWS:  # a word of the package, or something of its __init__
        return ""
    allowed = {source, "model"} | ARROWS.get(source, set())  # its words are everyone's
    if target in allowed or any(place == p and name.startswith(n) for p, n in EXCEPTIONS):
        return ""
    return f"{source} must not know {target}"


def impurities(tree: ast.AST, place: str) -> Iterator[tuple[int, str]]:
    """Yield line and sentence of everything in a pure file that could reach the outer world."""
    for line, name in imports(tree, place):
        parts = name.split(".")
        if parts[0] in EFFECTS:
            yield line, f"a pure module imports {parts[0]}"
        if parts[0] == "avahi_gpu" and len(parts) > 2:
            inner = PACKAGE.joinpath(*parts[1:3]).with_suffix(".py")
            if parts[1] in ARROWS and inner.exists() and not is_pure("/".join(parts[1:3]) + ".py"):
                yield line, f"a pure module imports {'.'.join(parts[1:3])}, which is not"
        if parts[0] == "sys" and len(parts) > 1:
            yield line, f"a pure module imports {name}"
    for node in ast.walk(tree):
        # which Python this is may be asked; arguments, streams and the import path may not
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) == "sys"
            and node.attr != "version_info"
        ):
            yield node.lineno, f"a pure module uses sys.{node.attr}"
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in EFFECT_CALLS:
            yield node.lineno, f"a pure module calls {node.func.id}"
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in PATH_READS
            and "Path" in ast.dump(node.func)
        ):
            yield node.lineno, f"a pure module calls Path.{node.func.attr}"


def violations(place: str, source: str) -> list[str]:
    """Return ``line: sentence`` for every wall that the file at ``place`` (``files/txt.py``) breaks."""
    tree = ast.parse(source)
    found = []
    for line, name in imports(tree, place):
        if sentence := wrong_arrow(place, name):
            found.append((line, sentence))
        library = name.split(".")[0]
        if library in ROOMS and not is_one_of(place, ROOMS[library]):
            found.append((line, f"{library} belongs into {' or '.join(ROOMS[library])}"))
    if is_pure(place):
        found += impurities(tree, place)
    return [f"{line}: {sentence}" for line, sentence in sorted(set(found))]


FILES = sorted(str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("place", FILES)
def test_the_walls_stand(place: str) -> None:
    assert violations(place, (PACKAGE / place).read_text()) == []


def test_every_folder_is_on_the_map() -> None:
    folders = {file.split("/")[0] for file in FILES if "/" in file}
    modules = {file.removesuffix(".py") for file in FILES if "/" not in file}

    assert folders == set(ARROWS)
    assert modules <= WORDS | {"__main__"}


@pytest.mark.parametrize("pattern", [*PURE, *EDGES, *(room for rooms in ROOMS.values() for room in rooms)])
def test_no_rule_speaks_of_a_file_that_is_gone(pattern: str) -> None:
    assert any(fnmatch(place, pattern) for place in FILES)


@pytest.mark.parametrize(
    ("place", "source", "sentence"),
    [
        ("files/txt.py", "from avahi_gpu.host import system", "files must not know host"),
        ("files/txt.py", "from ..host.system import System", "files must not know host"),
        ("checks/names.py", "def f():\n    import avahi_gpu.render.text", "checks must not know render"),
        ("avahi/browse.py", "from avahi_gpu.host.net import probe", "avahi must not know host"),
        (
            "rendezvous/node.py",
            "from avahi_gpu.render.text import printable",
            "rendezvous must not know render",
        ),
        ("host/facts.py", "from avahi_gpu import cli", "host must not know cli"),
        ("model/words.py", "from avahi_gpu.files import txt", "model must not know files"),
        ("avahi/browse.py", "from dbus_next.aio import MessageBus", "dbus_next belongs into avahi/bus.py"),
        ("cli/launch.py", "import torch.distributed as d", "torch belongs into"),
        ("cli/launch.py", "import importlib\nimportlib.import_module('torch')", "torch belongs into"),
        ("checks/host.py", "import os.path", "a pure module imports os"),
        ("checks/host.py", "from time import monotonic", "a pure module imports time"),
        ("files/config.py", "def f(path):\n    return open(path).read()", "a pure module calls open"),
        (
            "files/config.py",
            "from pathlib import Path\nPath('/etc/hosts').read_text()",
            "calls Path.read_text",
        ),
        ("changes/plan.py", "from avahi_gpu.changes import journal", "changes.journal, which is not"),
        ("changes/plan.py", "from avahi_gpu.host.system import System", "host.system, which is not"),
        ("files/txt.py", "import sys\nprint(sys.argv)", "a pure module uses sys.argv"),
        ("files/txt.py", "from sys import stdin", "a pure module imports sys.stdin"),
        ("rendezvous/roster.py", "import random", "a pure module imports random"),
        ("rendezvous/roster.py", "from avahi_gpu.rendezvous.channel import Channel", "channel, which is not"),
    ],
)
def test_a_broken_wall_is_seen(place: str, source: str, sentence: str) -> None:
    found = violations(place, source)

    assert any(sentence in each for each in found), found


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("files/txt.py", "import re, hashlib, msgspec\nfrom avahi_gpu.model import NodeFacts"),
        ("checks/names.py", "from avahi_gpu.files import nsswitch\nfrom pathlib import PurePosixPath"),
        ("cli/doctor.py", "from avahi_gpu.checks.registry import run_checks\nimport sys, os"),
        (
            "rendezvous/voice.py",
            "def f():\n    from avahi_gpu.render.text import printable\n    import sys",
        ),
        ("avahi/bus.py", "import dbus_next"),
        ("files/config.py", "import sys\nnew = sys.version_info >= (3, 11)"),
    ],
)
def test_what_is_allowed_passes(place: str, source: str) -> None:
    assert violations(place, source) == []


# what tells the time of day, which differs from host to host and may jump
CLOCKS = {"time", "time_ns", "localtime", "gmtime", "ctime", "now", "utcnow", "today", "CLOCK_REALTIME"}


@pytest.mark.parametrize("room", ["rendezvous", "launch", "gauge", "avahi"])
def test_no_time_of_day_decides_anything_in_a_job(room: str) -> None:
    """Clocks may be hours apart: only monotonic time is used, and never another host's."""
    asked = []
    for path in sorted((PACKAGE / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
                if ast.unparse(node.value) in ("time", "datetime", "date", "datetime.datetime"):
                    asked.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
                names = {alias.name for alias in node.names} - {"timedelta"}
                asked += [f"{path.name}:{node.lineno}: {node.module}.{name}" for name in names]
    assert asked == []
