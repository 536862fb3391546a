"""What was measured so far, in a file that is whole at every moment: an interrupted run loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import Chapter, as_data, from_data

VERSION = 2


class Results:
    """The chapters by part. Parts that are measured again replace what the file had of them."""

    def __init__(self, file: Path | None, machine: dict[str, Any]) -> None:
        self.file = file
        self.machine = machine
        self.parts: dict[str, dict[str, Any]] = {}
        self.chapters: dict[str, dict[str, Chapter]] = {}
        if file is not None and file.exists():
            self._read(file)

    def _read(self, file: Path) -> None:
        data = json.loads(file.read_text())
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise ValueError(f"{file} is of another version of the bench: name a new file")
        self.parts = data["parts"]
        self.machine = self.machine or data["machine"]
        for chapter in data["chapters"]:
            self.chapters.setdefault(chapter["part"], {})[chapter["key"]] = from_data(chapter)

    def begin(self, part: str, **about: Any) -> None:
        """A part is measured from here on; what was known of it is dropped."""
        self.parts[part] = {"complete": False, **about}
        self.chapters[part] = {}

    def put(self, part: str, chapter: Chapter) -> None:
        """A chapter is new or has grown."""
        self.chapters[part][chapter.key] = chapter
        self.save()

    def end(self, part: str, **about: Any) -> None:
        """The part is complete."""
        self.parts[part] |= {"complete": True, **about}
        self.save()

    def of(self, part: str) -> list[Chapter]:
        """Return the chapters of a part."""
        return list(self.chapters.get(part, {}).values())

    def all(self, order: Sequence[str] = ()) -> list[Chapter]:
        """Return every chapter; the parts in ``order`` first, as they stand there."""
        parts = [*(p for p in order if p in self.chapters), *(p for p in self.chapters if p not in order)]
        return [chapter for part in parts for chapter in self.of(part)]

    def save(self) -> None:
        """Write the file, all or nothing."""
        if self.file is None:
            return
        chapters = [{"part": part, **as_data(c)} for part in self.chapters for c in self.of(part)]
        data = {"version": VERSION, "machine": self.machine, "parts": self.parts, "chapters": chapters}
        draft = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        draft.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        draft.replace(self.file)
