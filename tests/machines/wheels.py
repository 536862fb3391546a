"""The project as a wheel, the wheels it needs, and an environment with all of it for machines.

``python -m tests.machines.wheels`` makes all that machines need, if it is not there yet: a minute or two.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from release import dist
from tests.machines.cache import BRIEFLY_S, NotMade, key_of, made, step
from tests.machines.image import RELEASES, root_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
SOURCES = tuple(name for name in dist.SOURCES if name not in ("ansible", "CHANGELOG.md"))  # of the wheel

# the environment is made where it will be used, in the release's own system: scripts name its Python by path
_INSTALL_NEEDED = """set -eu
root=$1 wheels=$2 venv=$3
mkdir -p "$venv"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
mkdir -p /mnt/root/opt/avahi-gpu
mount --bind "$wheels" /mnt/root/srv/wheels
mount --bind "$venv" /mnt/root/opt/avahi-gpu
mount -t proc proc /mnt/root/proc
in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot /mnt/root "$@"; }
"""
_MAKE = """
in_root apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
in_root python3 -m venv /opt/avahi-gpu
in_root sh -c '/opt/avahi-gpu/bin/pip install -q --no-index -f /srv/wheels $(cat /srv/wheels/needed)'
"""
_ADD = """
in_root sh -c '/opt/avahi-gpu/bin/pip install -q --no-index --no-deps /srv/wheels/avahi_gpu-*.whl'
"""


def _project() -> dict[str, list[str]]:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        data = tomllib.load(file)
    return {"needed": data["project"]["dependencies"], "to build": data["build-system"]["requires"]}


def _for_release(release: str) -> list[str]:
    """Return what pip needs to be told to fetch wheels for another Python than its own."""
    tags = [f"{kind}_{platform.machine()}" for kind in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    options = ["--only-binary=:all:", "--implementation=cp", f"--python-version={RELEASES[release]}"]
    return options + [f"--platform={tag}" for tag in tags]


def needed_wheels(release: str) -> Path:
    """Return a folder with the wheels of what the project needs at run time, fetched once. Raises NotMade."""
    needed = [line.split(";")[0].strip() for line in _project()["needed"]]

    def fetch(folder: Path) -> None:
        step([*PIP, "download", "-q", "-d", folder, *_for_release(release), *needed], "fetching wheels")
        (folder / "needed").write_text(" ".join(needed) + "\n")

    return made(f"needed-{release}", key_of(release, *needed), fetch)


def torch_wheels(release: str) -> Path:
    """Return a folder with the wheels of the torch that runs here, and of what it needs. Raises NotMade."""
    wanted = [f"{name}=={version(name)}" for name in ("torch", "numpy")]

    def fetch(folder: Path) -> None:
        step([*PIP, "download", "-q", "-d", folder, *_for_release(release), *wanted], "fetching torch")

    return made(f"torch-{release}", key_of(release, *wanted), fetch)


def _tools() -> Path:
    wanted = _project()["to build"]
    return made(
        "tools",
        key_of(*wanted, sys.version),
        lambda folder: step([*PIP, "download", "-q", "-d", folder, *wanted], "fetching build tools"),
    )


def digest_of(names: Sequence[str]) -> str:
    """Return a digest of files and folders of the working tree."""
    digest = hashlib.sha256()
    for name in names:
        top = REPOSITORY / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(REPOSITORY)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def project_wheel() -> Path:
    """Return a wheel of the working tree as it is now. Raises NotMade."""

    def build(folder: Path) -> None:
        copy = folder / "source"  # nothing is written into the working tree
        copy.mkdir()
        for name in SOURCES:
            source, target = REPOSITORY / name, copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        options = ["--no-index", "--find-links", _tools(), "--no-deps", "-w", folder]
        step([*PIP, "wheel", "-q", *options, copy], "building the wheel")
        shutil.rmtree(copy)

    return next(made("wheel", key_of(digest_of(SOURCES)), build, kept_s=BRIEFLY_S).glob("*.whl"))


def all_wheels(release: str) -> Path:
    """Return a folder with the project's wheel and those of what it needs: all that pip wants."""
    wheel, needed = project_wheel(), needed_wheels(release)

    def collect(folder: Path) -> None:
        for file in (wheel, *needed.iterdir()):
            shutil.copy(file, folder)

    return made(f"offline-{release}", key_of(str(wheel.parent), str(needed)), collect, kept_s=BRIEFLY_S)


def environment(release: str) -> Path:
    """Return a virtual environment with the project, whose place in a machine is /opt/avahi-gpu."""
    root, needed, wheels = root_of(release), needed_wheels(release), all_wheels(release)

    def make(folder: Path) -> None:
        words = [root, needed, folder / "venv"]
        step(["sh", "-c", _INSTALL_NEEDED + _MAKE, "sh", *words], "making an environment", apart=True)

    base = made(f"base-{release}", key_of(str(root), str(needed), _INSTALL_NEEDED, _MAKE), make)

    def add(folder: Path) -> None:
        # files that both have are the same file on disk: pip writes new ones only
        step(["cp", "-al", base / "venv", folder / "venv"], "copying an environment")
        words = [root, wheels, folder / "venv"]
        step(["sh", "-c", _INSTALL_NEEDED + _ADD, "sh", *words], "installing the wheel", apart=True)

    return made(f"venv-{release}", key_of(str(base), str(wheels), _ADD), add, kept_s=BRIEFLY_S) / "venv"


if __name__ == "__main__":
    try:
        print(environment(*(sys.argv[1:] or ["bookworm"])))
    except NotMade as problem:
        sys.exit(str(problem))
