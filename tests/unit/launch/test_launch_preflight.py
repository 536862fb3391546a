"""What is read of this node before a job starts, from real files."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from avahi_gpu.errors import LaunchFailed, Misuse
from avahi_gpu.host.system import System
from avahi_gpu.launch import preflight
from avahi_gpu.launch.command import Program

SERVICE = """<?xml version="1.0" standalone='no'?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name><service><type>_torch._tcp</type><port>29500</port>
<txt-record>txtvers=1</txt-record><txt-record>id=0123456789ab</txt-record>
<txt-record>cluster=attic</txt-record></service></service-group>
"""


@pytest.fixture
def machine(tmp_path: Path) -> System:
    return System(tmp_path)


def put(machine: System, path: str, text: str) -> None:
    file = machine.root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_script_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "package").mkdir()

    preflight.check_script(Program((), "train.py", ()), System())
    preflight.check_script(Program((), str(tmp_path / "train.py"), ()), System())
    for missing in ("trian.py", "package"):
        with pytest.raises(Misuse, match=f"no script {missing} in {tmp_path}") as error:
            preflight.check_script(Program((), missing, ()), System())
        assert "every node" in error.value.hint
    (tmp_path / "package" / "__main__.py").write_text("")
    preflight.check_script(Program((), "package", ()), System())


def test_a_program_is_looked_for_on_the_path_and_a_module_is_left_to_python() -> None:
    preflight.check_script(Program((), "sh", (), "program"), System())
    preflight.check_script(Program((), "no.such.module", (), "module"), System())
    with pytest.raises(Misuse, match="no program no-such-program"):
        preflight.check_script(Program((), "no-such-program", (), "program"), System())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("__version__ = '2.13.0+cu126'\ncuda: Optional[str] = '12.6'\n", ("2.13.0+cu126", "12.6")),
        ('__version__ = "2.5.1"\ncuda = None\n', ("2.5.1", "")),
        ("__version__: str = '2.9'\n", ("2.9", "")),
        ("nothing of use", ("", "")),
        ("__version__ = '" + "9" * 100 + "'", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_versions_of_torch_are_read_from_its_version_file(text: str, found: tuple[str, str]) -> None:
    assert preflight.read_versions(text) == found


@pytest.mark.torch
def test_the_installed_torch_is_found_without_importing_it() -> None:
    torch = pytest.importorskip("torch")

    assert preflight.find_torch(System())[0] == str(torch.__version__)


def test_a_missing_or_old_torch_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ModuleSpec | None] = [None]
    monkeypatch.setattr(preflight.importlib.util, "find_spec", lambda _: found[0])
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with pytest.raises(LaunchFailed, match="torch is not installed") as error:
        preflight.find_torch(System())
    assert "pip install" in error.value.hint
    monkeypatch.setenv("VIRTUAL_ENV", "/home/u/venv")  # it is active, and we are another one's program
    with pytest.raises(LaunchFailed) as elsewhere:
        preflight.find_torch(System())
    assert "/home/u/venv/bin/python -m pip install avahi-gpu" in elsewhere.value.hint
    assert error.value.exit_code == 125

    (tmp_path / "version.py").write_text("__version__ = '2.5.1+cpu'")
    found[0] = ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    with pytest.raises(LaunchFailed, match=r"torch 2\.5\.1"):
        preflight.find_torch(System())


def test_nccl_is_known_by_the_folder_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    assert preflight.find_nccl([str(tmp_path / "site"), str(tmp_path / "none")], System()) == ""
    (tmp_path / "site" / "nvidia_nccl_cu13-2.30.7.dist-info").mkdir()
    (tmp_path / "site" / "nvidia_nccl_evil.dist-info").mkdir()
    assert preflight.find_nccl([str(tmp_path / "none"), str(tmp_path / "site")], System()) == "2.30.7"


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("train.py", "train.py"),
        ("/srv/a b/train.py", "train.py"),
        ("x\udcff.py", "x?.py"),
        ("x" * 101, "x" * 100),
    ],
)
def test_a_scripts_name_for_others_has_no_folder_and_is_bounded(script: str, name: str) -> None:
    assert preflight.name_of(Program((), script, ())) == name


def test_the_digest_tells_scripts_apart(tmp_path: Path) -> None:
    one, other, same = (tmp_path / name for name in ("one.py", "other.py", "same.py"))
    one.write_text("print(1)")
    other.write_text("print(2)")
    same.write_text("print(1)")
    digests = [preflight.digest_of(Program((), str(p), ()), System()) for p in (one, other, same)]

    assert digests[0] == digests[2] != digests[1]
    assert len(digests[0]) == 16
    assert preflight.digest_of(Program((), "pkg", (), "module"), System()) == ""


@pytest.mark.torch
def test_preflight_does_not_import_torch() -> None:
    import subprocess

    code = (
        "import sys\nfrom avahi_gpu.launch import job, preflight\nfrom avahi_gpu.host.system import System\n"
        "preflight.find_torch(System()); sys.exit('torch' in sys.modules)"
    )
    pytest.importorskip("torch")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
