"""Build the wheel and the source archive: the same bytes from the same sources, whoever builds them.

``make dist`` runs it and puts both into dist/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD_WITHIN_S = 300.0  # two seconds
# all that the wheel and the source archive are made of
SOURCES = (
    "pyproject.toml",
    ".gitignore",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "avahi_gpu",
    "templates",
    "docs/findings",
    "man",
    "completion",
    "ansible",
)
# of a source tree without git, and what its archive was packed at: any time that stays
NO_COMMIT = 1577836800


class NotBuilt(Exception):
    """A package could not be built; says why."""


def build(
    source: Path, out: Path, kinds: Sequence[str] = ("sdist", "wheel"), epoch: int | None = None
) -> None:
    """Build these kinds of packages of a source tree into ``out``; times in them are ``epoch``."""
    when = time_of(source) if epoch is None else epoch
    out.mkdir(parents=True, exist_ok=True)
    options = [word for kind in kinds for word in ("-t", kind)]
    run(
        [sys.executable, "-m", "hatchling", "build", *options, "-d", str(out.absolute())],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(when), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def time_of(source: Path) -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the commit that is checked out, in seconds since 1970."""
    if said := os.environ.get("SOURCE_DATE_EPOCH", ""):
        return int(said)
    ask = ["git", "-C", str(source), "log", "-1", "--format=%ct"]
    if not (source / ".git").exists() or shutil.which("git") is None:
        return NO_COMMIT
    return int(run(ask).strip() or NO_COMMIT)


def is_as_committed(source: Path) -> bool:
    """Whether what is built is what git knows under the commit that is checked out."""
    if not (source / ".git").exists():
        return True
    return run(["git", "-C", str(source), "status", "--porcelain", "--", *SOURCES]).strip() == ""


def run(argv: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a program to its end and return what it prints. Raises NotBuilt with its last words."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NotBuilt(f"{argv[0]}: {fault}") from None
    if done.returncode != 0:
        raise NotBuilt(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Build both into dist/ and name them."""
    out = REPOSITORY / "dist"
    try:
        if not is_as_committed(REPOSITORY):
            print("note: there are changes that are not committed: do not publish this", file=sys.stderr)
        build(REPOSITORY, out)
    except NotBuilt as problem:
        sys.exit(str(problem))
    for path in sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")]):
        print(path.relative_to(REPOSITORY))


if __name__ == "__main__":
    main()
