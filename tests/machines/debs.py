"""The project's Debian package for machines, of the working tree as it is now."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from release import deb, dist, wheels
from tests.machines.cache import BRIEFLY_S, NotMade, key_of, made
from tests.machines.wheels import digest_of

EPOCH = 1_700_000_000
QUICK = 0  # five seconds less each time than xz's best
PARTS = ("release/deb.py", "release/debian", "release/wheels.txt", *dist.SOURCES)


def architecture() -> str:
    """Return Debian's name of this machine's kind."""
    return dist.run(["dpkg", "--print-architecture"]).strip()


def libraries() -> Path:
    """Return a folder with the wheels that the package brings along, fetched once. Raises NotMade."""

    def fetch(folder: Path) -> None:
        try:
            wheels.fetch(folder, architecture())
        except dist.NotBuilt as problem:
            raise NotMade(str(problem)) from None

    return made("libraries", key_of(wheels.PINS.read_text(), architecture()), fetch)


def package(version: str = "") -> Path:
    """Return the package, with another version of the project if one is named. Raises NotMade."""

    def build(folder: Path) -> None:
        copy = source(folder / "source", version)
        try:
            deb.build(copy, libraries(), folder, architecture(), EPOCH, QUICK)
        except dist.NotBuilt as problem:
            raise NotMade(str(problem)) from None
        shutil.rmtree(copy)

    return next(made("deb", key_of(digest_of(PARTS), version), build, kept_s=BRIEFLY_S).glob("*.deb"))


def source(folder: Path, version: str = "") -> Path:
    """Return a copy of the sources, of another version if one is named."""
    for name in dist.SOURCES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (dist.REPOSITORY / name).is_dir():
            shutil.copytree(dist.REPOSITORY / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(dist.REPOSITORY / name, target)
    if version:
        file = folder / "avahi_gpu/__init__.py"
        file.write_text(re.sub(r'(__version__ = )"[^"]+"', rf'\1"{version}"', file.read_text()))
    return folder
