"""A dry run as a shell script: notes as comments, then the environment, then the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from avahi_gpu.render.shell import join, quote
from avahi_gpu.render.text import printable

NOTE_MAX = 1000  # characters; names in it come from the network


def describe_dry_run(notes: Iterable[str], variables: Mapping[str, str], command: Sequence[str]) -> str:
    """Return a script that a shell understands, whatever the words hold."""
    lines = [f"# {printable(note, NOTE_MAX)}" for note in notes]
    lines += [f"export {name}={quote(value)}" for name, value in variables.items()]
    return "\n".join([*lines, join(command)]) + "\n"
