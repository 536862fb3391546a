"""``make pictures``: play the scenes on virtual hosts and write docs/pictures. Root only."""

from __future__ import annotations

import sys
from pathlib import Path

from pictures.architecture import draw_architecture
from pictures.scenes import play

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    only = set(sys.argv[1:])
    if not only or "architecture" in only:
        write("architecture", draw_architecture())
    if not only or only - {"architecture"}:
        for name, text in play():
            if not only or name in only:
                write(name, text)
    return 0


def write(name: str, text: str) -> None:
    """Write one picture and say so."""
    path = FOLDER / f"{name}.svg"
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(text)} bytes")


if __name__ == "__main__":
    sys.exit(main())
