"""What the workers of a job have written down, read while they run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Mark = tuple[int, int]  # (generation, step) of a checkpoint
Group = tuple[int, tuple[str, ...]]  # generation and members by rank


@dataclass(frozen=True)
class Step:
    """One step as one worker saw it; ``begin`` before it gave its part, ``end`` once the sum had come."""

    step: int
    loss: float
    begin: float
    end: float


@dataclass
class Life:
    """One start of a worker: what it wrote until it ended, whatever way."""

    host: str
    start: float
    rank: int
    size: int
    restarts: int = 0
    group: Group | None = None
    source: Mark = (0, 0)
    held: Mark = (0, 0)
    steps: list[Step] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    finished: bool = False
    last: float = 0.0  # when it wrote its last line


def take_in(life: Life | None, host: str, line: dict[str, Any]) -> Life:
    """Return the life with one more line of its journal; the first line makes it."""
    if life is None:
        life = Life(host, line["at"], line["rank"], line["size"], line["restarts"])
    life.last = line["at"]
    match line["kind"]:
        case "group":
            life.group = (line["generation"], tuple(line["members"]))
            life.source, life.held = tuple(line["source"]), tuple(line["held"])
        case "step":
            life.steps.append(Step(line["step"], line["loss"], line["begin"], line["end"]))
        case "saved":
            life.saved.append(line["step"])
        case "committed":
            life.committed.append(line["step"])
        case "finished":
            life.finished = True
    return life


class Journals:
    """All journals of a job; ``read`` takes in what has come since."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lives: dict[str, Life] = {}
        self._read: dict[str, int] = {}

    def read(self) -> list[Life]:
        """Return all lives by their start. A line that was cut off by the worker's death is no line."""
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._read[path.name] = self._read.get(path.name, 0) + len(whole) + 1
            for line in whole.splitlines():
                host = path.name.partition(".")[0]
                self._lives[path.name] = take_in(self._lives.get(path.name), host, json.loads(line))
        return sorted(self._lives.values(), key=lambda life: life.start)


def training(lives: Iterable[Life], since: float) -> set[Group]:
    """Return the groups all of whose members have begun and ended a step after ``since``."""
    stepping: dict[Group, set[str]] = {}
    for life in lives:
        if life.group is not None and life.steps and life.steps[-1].begin > since:
            stepping.setdefault(life.group, set()).add(life.host)
    return {group for group, hosts in stepping.items() if hosts == set(group[1])}
