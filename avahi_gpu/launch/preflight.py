"""What can be known of a job on this node before anything is started: in milliseconds, without torch."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from avahi_gpu.errors import LaunchFailed, Misuse
from avahi_gpu.host.system import System
from avahi_gpu.launch.command import Program, Request
from avahi_gpu.model import TORCH_AT_LEAST
from avahi_gpu.rendezvous.messages import SCRIPT_MAX, Skills

DIGEST_DIGITS = 16

_VERSION = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]{1,64})['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda\s*(?::[^=]*)?=\s*['\"]([^'\"]{1,64})['\"]", re.MULTILINE)
_NCCL = re.compile(r"nvidia_nccl_cu\d+-([0-9][^-]{0,40})\.dist-info")


def inspect(request: Request, system: System) -> Skills:
    """Return what this node brings to the job. Raises Misuse or LaunchFailed where it cannot run it."""
    check_script(request.program, system)
    torch, cuda = find_torch(system)
    return Skills(
        min_nodes=request.min_nodes,
        max_nodes=request.max_nodes,
        processes=int(request.processes) if request.processes.isdigit() else 0,
        torch=torch,
        nccl=find_nccl(sys.path, system),
        cuda=cuda,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        digest=digest_of(request.program, system),
        script=name_of(request.program),
    )


def check_script(program: Program, system: System) -> None:
    """Raise Misuse where the script is not here. A module is left to Python, which knows where to look."""
    path = Path.cwd() / program.script  # the workers start in this folder, so it has to be there
    if program.kind == "module":
        return
    if program.kind == "program":
        if not (system.exists(path) if "/" in program.script else system.find_program(program.script)):
            raise Misuse(f"there is no program {program.script}", "it has to be on every node")
        return
    # python runs a folder that has a __main__.py, and a zip file
    if not system.exists(path / "__main__.py" if system.is_folder(path) else path):
        where = "" if Path(program.script).is_absolute() else f" in {Path.cwd()}"
        raise Misuse(
            f"there is no script {program.script}{where}",
            "it has to be on every node; torchrun's own options go between `--` and the script",
        )


def find_torch(system: System) -> tuple[str, str]:
    """Return the versions of torch and of its CUDA (``"2.13.0+cu126", "12.6"``). Raises LaunchFailed."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        says = f"torch is not installed in the Python that runs avahi-gpu ({sys.executable})"
        raise LaunchFailed(says, _where_to_install())
    content = system.read(Path(spec.origin).absolute().with_name("version.py")).content or b""
    torch, cuda = read_versions(content.decode("utf-8", "replace"))
    numbers = re.match(r"(\d+)\.(\d+)", torch)
    if numbers and (int(numbers[1]), int(numbers[2])) < TORCH_AT_LEAST:
        raise LaunchFailed(
            f"torch {torch} is too old for this: its torchrun knows no other backends",
            f"install torch {TORCH_AT_LEAST[0]}.{TORCH_AT_LEAST[1]} or later",
        )
    return torch, cuda


def _where_to_install() -> str:
    """Return the way to an avahi-gpu that has torch; in an active environment its own is meant, not ours."""
    active = os.environ.get("VIRTUAL_ENV", "")
    if active and Path(active) != Path(sys.prefix):
        return (
            f"this avahi-gpu ({sys.argv[0]}) is not that of the environment in {active}: "
            f"`{active}/bin/python -m pip install avahi-gpu`, then call {active}/bin/avahi-gpu"
        )
    return (
        "install avahi-gpu beside torch, `pip install avahi-gpu` in the training environment, "
        "or both with `pip install 'avahi-gpu[torch]'`"
    )


def read_versions(text: str) -> tuple[str, str]:
    """Return ``(torch, cuda)`` of the text of torch/version.py; '' for what it does not say."""
    torch, cuda = _VERSION.search(text), _CUDA.search(text)
    return torch[1] if torch else "", cuda[1] if cuda else ""


def find_nccl(folders: Sequence[str], system: System) -> str:
    """Return the version of the NCCL package beside torch, by its folder's name; '' without one."""
    for folder in folders:
        for name in system.list_folder(Path(folder or ".").absolute()):
            found = _NCCL.fullmatch(name)
            if found:
                return found[1]
    return ""


def digest_of(program: Program, system: System) -> str:
    """Return a short digest of the script, '' where there is no file of it to read."""
    if program.kind != "file":
        return ""
    content = system.read(Path(program.script).absolute()).content
    return "" if content is None else hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]


def name_of(program: Program) -> str:
    """Return the script's name as others are told it: without folders, and whatever its bytes are, UTF-8."""
    return Path(program.script).name.encode("utf-8", "replace").decode()[:SCRIPT_MAX]
