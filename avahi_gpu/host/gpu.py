"""The GPUs by NVML, and the versions of torch, CUDA and NCCL by asking the Python that has them.

No GPU, no driver and no torch are normal. Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from avahi_gpu.errors import Misuse
from avahi_gpu.host.exposure import lower
from avahi_gpu.host.system import System
from avahi_gpu.model import Gpu, Versions

if TYPE_CHECKING:
    from avahi_gpu.files.settings import Settings

# without nvidia-persistenced the driver wakes every GPU for the first question: seconds on eight of them;
# beyond this a GPU has fallen off the bus and NVML hangs
NVML_S = 20.0
# a cold Python on a network file system, with thousands of packages to look through
VERSIONS_S = 9.0
TRY_S = 2.0  # what takes longer only to start is given the time above when it is asked in earnest
MAX_GPUS = 64  # more than any machine holds: a bound, not a wish
MAX_VERSION_CHARACTERS = 64

NVML = "libnvidia-ml.so.1"  # comes with the driver; where it is not, its binding need not be loaded

Answer = tuple[tuple[Gpu, ...], str, str, str]

# what the other Python runs: it imports nothing of torch, whose import takes seconds and wakes the GPUs
_ASK = r"""
import glob, importlib.metadata, importlib.util, json, os, platform, re, runpy, sys
sys.path = [p for p in sys.path if p]
found = {"python": platform.python_version()}
try:
    spec = importlib.util.find_spec("torch")
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
except Exception:
    folder = ""
if folder:
    try:
        told = runpy.run_path(os.path.join(folder, "version.py"))
    except Exception:
        told = {}
    try:
        found["torch"] = told.get("__version__") or importlib.metadata.version("torch")
    except Exception:
        pass
    found["cuda"] = told.get("cuda") or ""
    places = [folder + "/lib", folder + "/../nvidia/nccl/lib", sys.prefix + "/lib", "/usr/lib/*-linux-gnu"]
    files = [f for p in places for f in sorted(glob.glob(p + "/libnccl.so.2.*"))]
    found["nccl"] = files[0].rpartition(".so.")[2] if files else ""
    for package in importlib.metadata.distributions():
        name = package.metadata["Name"] or ""
        if re.fullmatch(r"nvidia-nccl-cu\d+", name):
            found["nccl"] = package.version
print(json.dumps({k: str(v) for k, v in found.items()}))
"""


def read_gpus(within_s: float = NVML_S) -> Answer:
    """Return ``(gpus, driver, cuda_driver, error)``; never raises and never hangs.

    ``driver`` is the kernel driver's version (``550.90.07``), ``cuda_driver`` the newest CUDA that it can run
    (``12.4``), '' where there is none. ``error`` is '' also where there simply is no GPU.
    """
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    # a daemon thread: where NVML hangs, nobody can end it, and the program must end all the same
    threading.Thread(target=lambda: answers.put(_ask_nvml()), name="nvml", daemon=True).start()
    try:
        return answers.get(timeout=within_s)
    except queue.Empty:
        return (), "", "", f"the NVIDIA driver did not answer within {within_s:.0f} s"


def read_versions(system: System, python: str | None = None) -> Versions:
    """Return the versions that ``python`` (None: the one that runs us) would train with.

    What is not installed, or could not be asked, is ''. ``driver`` is not asked here.
    """
    try:
        return ask_versions(system, python)
    except OSError:
        return Versions()


def ask_versions(system: System, python: str | None = None) -> Versions:
    """Do what ``read_versions`` does. Raises OSError where that Python does not answer in time."""
    ask = ["-c", _ASK]
    argv = lower(system, [python, *ask]) if python and python != sys.executable else [sys.executable, *ask]
    done = system.run(argv, VERSIONS_S)
    if done.returncode is None:
        raise OSError(done.reason)
    return parse_versions(done.stdout) if done.ok else Versions()


def parse_versions(text: str) -> Versions:
    """Return the versions of one JSON object of strings; whatever else another program prints is ''."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Versions()
    if not isinstance(found, dict):
        return Versions()
    return Versions(*(_version(found.get(key)) for key in ("python", "torch", "cuda", "nccl")))


def choose_python(system: System, settings: Settings) -> str | None:
    """Return the absolute path of the Python whose torch counts, None for our own.

    Raises Misuse where the one that is named by ``--python`` is none, MalformedConfiguration for another's.
    """
    python = settings.config.python
    if python is None:
        return None
    try:
        return find_python(system, python)
    except Misuse as fault:
        if settings.sources["python"].startswith("flag"):
            raise
        raise settings.wrong("python", fault.message, fault.hint) from None


def find_python(system: System, python: str) -> str:
    """Return the absolute path of the Python of that path or name. Raises Misuse where there is none."""
    # a link is not followed: a virtual environment's python is one, and is found by its place
    path = str(Path(python).expanduser().absolute()) if "/" in python else system.find_program(python)
    if not python or path is None or not system.exists(path):
        raise Misuse(
            f"there is no Python {python or repr(python)}",
            "give the path of one that is there, /opt/venv/bin/python for example",
        )
    trial = system.until(time.monotonic() + TRY_S)
    if trial.run(lower(system, [path, "-c", "import importlib.metadata"]), TRY_S).returncode not in (0, None):
        raise Misuse(f"{python} is not a Python that runs", "try it: " + path + " --version")
    return path


def _version(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and len(value) <= MAX_VERSION_CHARACTERS:
        return value.strip()
    return ""


def has_nvml() -> bool:
    """Return whether the library can be loaded, as its binding is going to."""
    try:
        ctypes.CDLL(NVML)
    except OSError:
        return False
    return True


def read_free_memory() -> Iterator[tuple[int, ...]]:
    """Yield the free MiB of each GPU, read anew each time; ends where NVML has nothing to tell.

    NVML stays open meanwhile: without nvidia-persistenced every opening wakes all GPUs for seconds. Blocks
    for as long as the driver does.
    """
    if not has_nvml():
        return
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            count = min(int(pynvml.nvmlDeviceGetCount()), MAX_GPUS)
            handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
            while handles:
                yield tuple(int(pynvml.nvmlDeviceGetMemoryInfo(handle).free) >> 20 for handle in handles)
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
    except Exception:  # no GPU, or a broken library: then nobody knows
        return


def _ask_nvml() -> Answer:
    if not has_nvml():
        return (), "", "", ""
    import pynvml  # 15 ms, which machines without a GPU need not wait for

    # answers that mean "no NVIDIA GPU here", not "broken"
    no_gpu = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_NOT_FOUND)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as fault:
        return (), "", "", "" if fault.value in no_gpu else f"NVML: {fault}"
    except Exception as fault:  # a broken library must not end us
        return (), "", "", f"NVML: {fault}"
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        cuda = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
        count = min(int(pynvml.nvmlDeviceGetCount()), MAX_GPUS)
        read = [_read_gpu(number) for number in range(count)]
        broken = [f"GPU {number}: {gpu}" for number, gpu in enumerate(read) if isinstance(gpu, str)]
        gpus = tuple(gpu for gpu in read if isinstance(gpu, Gpu))
        return gpus, driver, f"{cuda // 1000}.{cuda % 1000 // 10}", "; ".join(broken)
    except Exception as fault:
        return (), "", "", f"NVML: {fault}"
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _read_gpu(number: int) -> Gpu | str:
    import pynvml

    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        name = _text(pynvml.nvmlDeviceGetName(handle))
    except pynvml.NVMLError as fault:
        return str(fault)
    try:
        memory_mib = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
    except pynvml.NVMLError:
        memory_mib = 0  # machines with one memory for CPU and GPU do not tell
    try:
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        capability = f"{major}.{minor}"
    except pynvml.NVMLError:
        capability = ""
    return Gpu(name, memory_mib, capability)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
