"""The wheel and the source archive: the same bytes wherever they are built, and nothing in them by chance."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from avahi_gpu import __version__
from release import dist

REPOSITORY = Path(__file__).resolve().parents[2]
EPOCH = 1_700_000_000
STRAYS = (
    "avahi_gpu/notes.txt",
    "avahi_gpu/cli/app.py.orig",
    "avahi_gpu/__pycache__/old.cpython-311.pyc",
    "docs/findings/draft.md",
    "templates/.torch.service.j2.swp",
    "tests/test_x.py",
    ".env",
)
COMPLETION = (
    "bash-completion/completions/avahi-gpu",
    "zsh/site-functions/_avahi-gpu",
    "fish/vendor_completions.d/avahi-gpu.fish",
)
WHEEL, SDIST = f"avahi_gpu-{__version__}-py3-none-any.whl", f"avahi_gpu-{__version__}.tar.gz"
INFO = f"avahi_gpu-{__version__}.dist-info"


def files_below(folder: str, *patterns: str) -> Iterator[str]:
    for pattern in patterns:
        yield from (str(p.relative_to(REPOSITORY)) for p in (REPOSITORY / folder).rglob(pattern))


def copy_of(folder: Path, umask: int, time: float) -> Path:
    """Return the sources in a folder of another name, mode and time, with what a working tree gathers."""
    before = os.umask(umask)
    try:
        for name in dist.SOURCES:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (REPOSITORY / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(REPOSITORY / name, target, copy_function=shutil.copyfile, ignore=ignored)
            else:
                shutil.copyfile(REPOSITORY / name, target)
        for name in STRAYS:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x")
    finally:
        os.umask(before)
    for path in folder.rglob("*"):
        os.utime(path, (time, time))
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both as they are built of a tree with strays."""
    folder = tmp_path_factory.mktemp("one")
    dist.build(copy_of(folder / "tree", 0o022, 1e9), folder / "dist", epoch=EPOCH)
    return folder / "dist"


def test_another_folder_umask_and_time_make_the_same_bytes(built: Path, tmp_path: Path) -> None:
    dist.build(copy_of(tmp_path / "elsewhere/b", 0o077, 1.6e9), tmp_path / "out", epoch=EPOCH)

    for name in (WHEEL, SDIST):
        assert (tmp_path / "out" / name).read_bytes() == (built / name).read_bytes(), name


def test_the_source_archive_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / SDIST) as archive:
        archive.extractall(tmp_path)  # the filters came to Python 3.11 with 3.11.4
    dist.build(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path / "out", ["wheel"], epoch=EPOCH)

    assert (tmp_path / "out" / WHEEL).read_bytes() == (built / WHEEL).read_bytes()


def test_the_wheel_holds_what_is_run_and_shown_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        names = [n.filename for n in wheel.infolist()]
        modes = {n.external_attr >> 16 & 0o7777 for n in wheel.infolist()}

    wanted = {
        *files_below("avahi_gpu", "*.py", "py.typed"),
        *(f"avahi_gpu/_shipped/templates/{p.name}" for p in (REPOSITORY / "templates").glob("*.*")),
        *(f"avahi_gpu/_shipped/findings/{p.name}" for p in (REPOSITORY / "docs/findings").glob("AG*.md")),
        *(f"{INFO[:-10]}.data/data/share/{name}" for name in files_below("man", "*.[15]")),
        *(f"avahi_gpu/_shipped/completion/avahi-gpu.{shell}" for shell in ("bash", "zsh", "fish")),
        *(f"{INFO[:-10]}.data/data/share/{name}" for name in COMPLETION),
        *(f"{INFO}/{n}" for n in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")),
    }
    assert sorted(names) == sorted(wanted)
    assert modes == {0o644}
    assert "avahi_gpu/_shipped/templates/torch.service.j2" in names and "avahi_gpu/py.typed" in names


def test_the_source_archive_holds_the_wheels_sources_and_the_role(built: Path) -> None:
    with tarfile.open(built / SDIST) as archive:
        members = archive.getmembers()
    names = {m.name.partition("/")[2] for m in members if m.isfile()}

    assert {(m.uid, m.gid, m.uname, m.mtime) for m in members} == {(0, 0, "", EPOCH)}
    assert names >= {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert names >= {*files_below("avahi_gpu", "*.py"), *files_below("man", "*.[15]")}
    assert names >= {*files_below("ansible", "*.py", "*.yml", "*.j2"), "ansible/inventory/avahi_gpu"}
    assert not [n for n in names if n in STRAYS or n.startswith(("tests/", "bench/")) or "__pycache__" in n]


def test_the_metadata_is_what_an_index_takes(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        raw = wheel.read(f"{INFO}/METADATA")
    told = Metadata.from_email(raw, validate=True)  # raises for whatever an index would refuse

    assert (told.name, str(told.version), told.license_expression) == (
        "avahi-gpu",
        __version__,
        "Apache-2.0",
    )
    assert told.description_content_type == "text/markdown"
    assert told.description == (REPOSITORY / "README.md").read_text()
    assert told.summary and len(told.summary) <= 512 and "\n" not in told.summary
    assert email.message_from_bytes(raw)["License-File"] == "LICENSE"


def test_the_wheels_code_runs_without_the_source_tree(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        wheel.extractall(tmp_path / "wheel")
    first = f"import sys; sys.path.insert(0, {str(tmp_path / 'wheel')!r}); "
    program = "from avahi_gpu.cli.app import main; main()"
    ask = "from avahi_gpu.host import node; print(node._find_shipped('torch.service.j2'))"

    def run(code: str, *words: str) -> str:
        return subprocess.run(
            [sys.executable, "-I", "-c", first + code, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    assert run(program, "--version").startswith(f"avahi-gpu {__version__}\n")
    assert "AG104" in run(program, "explain", "AG104")
    assert run(ask).startswith(str(tmp_path / "wheel"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_leaves_no_files_in_somebodys_environment(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "site-packages"
    with zipfile.ZipFile(built / WHEEL) as wheel:
        wheel.extractall(place)
    for path in (place, *place.rglob("*")):
        os.chown(path, 1000, 1000)
    code = f"import sys; sys.path.insert(0, {str(place)!r}); from avahi_gpu.cli.app import main; main()"

    command = [sys.executable, "-I", "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.startswith(f"avahi-gpu {__version__}\n")
    assert [str(path) for path in place.rglob("*") if path.lstat().st_uid == 0] == []
