"""The libraries that the Debian package brings along: pinned by their digests, for every Python it may meet.

``python -m release.wheels`` pins the newest ones anew, which is a change to be read and committed.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.dist import REPOSITORY, NotBuilt, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PINS = Path(__file__).with_name("wheels.txt")
# Ubuntu 22.04, Debian 12, Ubuntu 24.04, Debian 13, and the next ones. One package serves them all: what is
# compiled has the Python that it is for in its file's name.
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # Debian's name -> the one in the names of wheels
MANYLINUX = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")  # glibc of Ubuntu 22.04 is 2.35
# typer needs pydantic since 0.26, two megabytes of machine code for each Python, to ask it about plain words
INSTEAD = {"typer": "typer>=0.12,<0.26"}
HEAD = "# Pinned by `python -m release.wheels`: what the Debian package brings along.\n"


def fetch(folder: Path, architecture: str) -> None:
    """Fetch the pinned wheels for one architecture into ``folder``. Raises NotBuilt."""
    for python in PYTHONS:
        _download(folder, python, architecture, ["--require-hashes", "--no-deps", "-r", str(PINS)])


def pin() -> None:
    """Write the newest wheels that fit, for all Pythons and architectures, into ``wheels.txt``."""
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        needed = [line.split(";")[0].strip() for line in tomllib.load(file)["project"]["dependencies"]]
    needed = [INSTEAD.get(re.split(r"[^\w.-]", line)[0], line) for line in needed]
    with tempfile.TemporaryDirectory() as scratch:
        folder, same = Path(scratch), Path(scratch, "same.txt")
        # all others take the versions that the oldest one can have
        for architecture in MACHINES:
            for python in PYTHONS:
                _download(
                    folder, python, architecture, [*needed, *(["-c", str(same)] if same.exists() else [])]
                )
                same.write_text("".join(f"{n}=={v}\n" for n, v in map(_project_of, folder.glob("*.whl"))))
        PINS.write_text(HEAD + lines_of(sorted(folder.glob("*.whl"))))


def lines_of(wheels: Sequence[Path]) -> str:
    """Return pip's requirements for these very files. Raises NotBuilt for two versions of one project."""
    found: dict[str, tuple[str, set[str]]] = {}
    for wheel in wheels:
        name, version = _project_of(wheel)
        known, digests = found.setdefault(name, (version, set()))
        if known != version:
            raise NotBuilt(f"{name}: both {known} and {version}")
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    return "".join(
        " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{d}" for d in sorted(digests))]) + "\n"
        for name, (version, digests) in sorted(found.items())
    )


def _project_of(wheel: Path) -> tuple[str, str]:
    project, version = wheel.name.split("-")[:2]
    return re.sub(r"[-_.]+", "-", project).lower(), version


def _download(folder: Path, python: str, architecture: str, what: Sequence[str]) -> None:
    machine = MACHINES[architecture]
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"]
    options += ["--implementation=cp", f"--python-version={python}"]
    options += [f"--platform={kind}_{machine}" for kind in MANYLINUX]
    run([sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), *what])


if __name__ == "__main__":
    try:
        pin()
    except NotBuilt as problem:
        sys.exit(str(problem))
