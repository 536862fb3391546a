"""Changes for people: a list of titles, and diffs in colours on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from avahi_gpu.changes.change import unified_diff
from avahi_gpu.model import HANDLE, Change
from avahi_gpu.render.text import printable

if TYPE_CHECKING:
    from rich.console import Console

LINE_LIMIT = 2000  # characters of one line of a file: what is longer is no configuration
UNTIL_BOOT = "this lasts until the next boot, unless you put it into the system's own files too"
_STYLES = {"+++": "bold", "---": "bold", "+": "green", "-": "red", "@@": "cyan", "\\": "dim"}


def show_changes(console: Console, changes: Iterable[Change], *, with_diffs: bool) -> None:
    """Print one line for each change, its command line where it is one; with diffs, those and the undo."""
    for change in changes:
        console.print(f"  {describe_line(change)}", soft_wrap=True)
        if change.until_boot:
            console.print(f"    {UNTIL_BOOT}", soft_wrap=True)
        if with_diffs:
            show_diff(console, change)
            if change.undo:
                line = printable(shlex.join(_readable(change.undo)), LINE_LIMIT)
                console.print(f"    undo runs: {line}", soft_wrap=True)


def describe_line(change: Change) -> str:
    """Return the change in one line: ``start avahi-daemon: avahi-daemon --daemonize``."""
    more = shlex.join(_readable(change.argv)) if change.argv else change.path
    title = printable(change.title)
    return title if more in title else f"{title}: {printable(more, LINE_LIMIT)}"


def _readable(argv: Iterable[str]) -> list[str]:
    """Return the words with N for what is known only when the program runs."""
    return ["N" if word == HANDLE else word for word in argv]


def show_diff(console: Console, change: Change) -> None:
    """Print the unified diff of a file change, nothing for any other."""
    for line in unified_diff(change).split("\n")[:-1]:
        style = next((s for start, s in _STYLES.items() if line.startswith(start)), "")
        console.print(printable(line.expandtabs(), LINE_LIMIT), style=style, soft_wrap=True)
