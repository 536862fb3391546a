"""``avahi-gpu --version``: of avahi-gpu, and of what it stands between, this machine's Avahi and torch."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import platform
import sys
from pathlib import Path

import typer

from avahi_gpu import __version__
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import AvahiGpuError, MalformedConfiguration
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.gpu import choose_python, read_versions
from avahi_gpu.host.system import System
from avahi_gpu.launch import preflight
from avahi_gpu.model import Versions
from avahi_gpu.render.text import printable
from avahi_gpu.result import Result

AVAHI_S = 1.0  # a daemon that runs answers in milliseconds, and a version is not worth a wait
COMMAND = "version"  # its name in the JSON


def tell_versions(python: str | None) -> Result:
    """Return the versions of avahi-gpu, of Avahi, and of the Python, torch, CUDA and NCCL that count here.

    Those are of ``--python``, else of the Python that config.toml names, else of our own. ``avahi`` is ''
    where no daemon answers; what is not installed is '' too. Raises Misuse for a ``--python`` that is none.
    """
    system = System()
    other = _choose(system, python)
    found = read_versions(system, other) if other else own_versions(system)
    data = {
        "avahi_gpu": __version__,
        "avahi": asyncio.run(ask_avahi()),
        "interpreter": other or sys.executable,
        "python": found.python,
        "torch": found.torch,
        "cuda": found.cuda,
        "nccl": found.nccl,
    }
    return Result(COMMAND, data)


def show(result: Result) -> None:
    """Print the versions, avahi-gpu's alone on the first line."""
    told = {key: printable(str(value)) for key, value in result.data.items()}
    torch = told["torch"] or "not installed there"
    for name, version in (("CUDA", told["cuda"]), ("NCCL", told["nccl"])):
        torch += f", {name} {version}" if version else ""
    typer.echo(f"avahi-gpu {told['avahi_gpu']}")
    typer.echo(f"Avahi     {told['avahi'] or 'does not answer: not running, or no D-Bus'}")
    typer.echo(f"Python    {told['python'] or 'does not answer'} ({told['interpreter']})")
    typer.echo(f"torch     {torch}")


def own_versions(system: System) -> Versions:
    """Return those of the Python that runs us, from files: neither torch nor another process is started."""
    torch = cuda = ""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.origin is not None:
            content = system.read(Path(spec.origin).absolute().with_name("version.py")).content or b""
            torch, cuda = preflight.read_versions(content.decode("utf-8", "replace"))
    nccl = preflight.find_nccl(sys.path, system) if torch else ""
    return Versions(platform.python_version(), torch, cuda, nccl)


async def ask_avahi() -> str:
    """Return the daemon's version (``0.8``), '' where it does not answer in time. Never raises."""
    with contextlib.suppress(AvahiGpuError, asyncio.TimeoutError):
        return (await asyncio.wait_for(_ask_avahi(), AVAHI_S)).removeprefix("avahi ")
    return ""


async def _ask_avahi() -> str:
    async with connect() as avahi:
        return await avahi.version()


def _choose(system: System, python: str | None) -> str | None:
    """Return the path of another Python, None for our own. Mistakes in config.toml are not told here."""
    try:
        return choose_python(system, read_settings(system, os.environ, {"python": ("--python", python)}))
    except MalformedConfiguration:
        return None
