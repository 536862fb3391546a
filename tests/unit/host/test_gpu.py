"""GPUs by NVML, and versions asked of another Python. Without a GPU the absence is what is tested."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pynvml
import pytest

from avahi_gpu.errors import Misuse
from avahi_gpu.host import gpu
from avahi_gpu.host.system import System
from avahi_gpu.model import Versions


def fake_torch(folder: Path, version: str) -> None:
    """Make a package torch that must not be imported, with the version file of the real one."""
    (folder / "torch").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text("raise SystemExit('torch was imported')\n")
    (folder / "torch/version.py").write_text(version)


def test_no_gpu_is_no_error() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")

    gpus, driver, cuda, error = gpu.read_gpus()

    assert (gpus, driver, cuda, error) == ((), "", "", "")


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="this machine has no GPU")
def test_a_gpu_is_read_whole() -> None:
    gpus, driver, cuda, error = gpu.read_gpus()

    assert error == ""
    assert gpus
    assert all(g.name and g.vram_mib > 1000 and g.cc.count(".") == 1 for g in gpus)
    assert driver.split(".")[0].isdigit()
    assert cuda.count(".") == 1


def test_a_driver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "has_nvml", lambda: True)
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: time.sleep(5))
    started = time.monotonic()

    gpus, _, _, error = gpu.read_gpus(within_s=0.1)

    assert gpus == ()
    assert "did not answer" in error
    assert time.monotonic() - started < 3


def test_a_driver_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of the driver without a restart, NVML and the kernel do not fit."""

    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(gpu, "has_nvml", lambda: True)
    monkeypatch.setattr(pynvml, "nvmlInit", fail)

    assert gpu.read_gpus()[3].startswith("NVML: ")


def test_versions_are_asked_without_importing_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch(tmp_path, "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n")
    nccl = tmp_path / "nvidia_nccl_cu12-2.21.5.dist-info"
    nccl.mkdir()
    (nccl / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: 2.21.5\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    found = gpu.read_versions(System(), sys.executable)

    python = ".".join(str(n) for n in sys.version_info[:3])
    assert found == Versions(python=python, torch="2.6.0+cu124", cuda="12.4", nccl="2.21.5")


def test_nccl_beside_torch_is_known_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conda and vendors' builds bring no package for it."""
    fake_torch(tmp_path, "__version__ = '2.5.1'\ncuda = '12.1'\n")
    (tmp_path / "torch/lib").mkdir()
    (tmp_path / "torch/lib/libnccl.so.2.20.5").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert gpu.read_versions(System(), sys.executable).nccl == "2.20.5"


def test_a_broken_torch_is_a_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch(tmp_path, "this is no Python\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    found = gpu.read_versions(System(), sys.executable)

    assert found.python
    assert found.cuda == ""


def test_no_python_tells_nothing() -> None:
    assert gpu.read_versions(System(), "/no/such/python") == Versions()
    assert gpu.read_versions(System(), "/bin/false") == Versions()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", '{"torch": 2}', '{"torch": "\\u001b[31m"}', '{"torch": "' + "9" * 65 + '"}', "{", "\x00"],
)
def test_what_another_program_prints_is_not_believed(text: str) -> None:
    assert gpu.parse_versions(text) == Versions()


def test_a_python_is_found_by_path_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link is kept: the python of a virtual environment is one, and is found by its place."""
    monkeypatch.chdir(Path(sys.executable).parent)

    assert gpu.find_python(System(), sys.executable) == sys.executable
    assert gpu.find_python(System(), f"./{Path(sys.executable).name}") == sys.executable
    assert gpu.find_python(System(), "python3").startswith("/")


@pytest.mark.parametrize("python", ["/no/such/python", "no-such-python", "/bin/false", "/etc/passwd", ""])
def test_what_is_no_python_is_refused(python: str) -> None:
    with pytest.raises(Misuse):
        gpu.find_python(System(), python)
