"""Files that are shipped beside the code: in a wheel below the package, in a checkout where they are kept."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_KEPT = {"findings": "docs/findings", "completion": "completion"}


def folder_of(name: str) -> Path | None:
    """Return the folder of the ``findings`` or the ``completion``; None where the installation lacks it."""
    places = (_PACKAGE / "_shipped" / name, _PACKAGE.parent / _KEPT[name])
    return next((place for place in places if place.is_dir()), None)
