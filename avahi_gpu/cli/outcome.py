"""How every command ends: one result on stdout, errors as sentences on stderr, the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from avahi_gpu.errors import AvahiGpuError, ExitCode, Interrupted, Misuse
from avahi_gpu.render.text import describe_error, steady_console
from avahi_gpu.result import Result, failed

if TYPE_CHECKING:
    from avahi_gpu.model import Change


def finish(result: Result, *, as_json: bool, show: Callable[[Result], None]) -> NoReturn:
    """Print ``result`` (its envelope under ``--json``, else by ``show``) and end with its exit code."""
    try:
        if as_json:
            write_json(result)
        else:
            show(result)
            for error in result.errors:
                tell_error(error)
        sys.stdout.flush()
    except BrokenPipeError:  # how it ended is still to be told to whoever asks for the exit code
        _leave_reader()
    raise typer.Exit(int(result.exit_code))


def write_json(result: Result) -> None:
    """Print the one object of ``--json``."""
    sys.stdout.write(json.dumps(result.envelope()) + "\n")
    sys.stdout.flush()


def tell_error(error: AvahiGpuError) -> None:
    """Print an error's sentences on stderr, red on a terminal."""
    steady_console(sys.stderr).print(f"avahi-gpu: {describe_error(error)}", style="red")


@contextmanager
def guarded(command: str, *, as_json: bool = False) -> Iterator[None]:
    """Turn our errors and Ctrl-C inside the block into the command's end, without a traceback."""
    try:
        yield
    except AvahiGpuError as error:
        finish(failed(command, error), as_json=as_json, show=lambda _: None)
    except KeyboardInterrupt:
        finish(failed(command, Interrupted("interrupted")), as_json=as_json, show=lambda _: None)
    except FileNotFoundError:
        removed = _removed_folder()
        if removed is None:
            raise
        finish(failed(command, removed), as_json=as_json, show=lambda _: None)
    except BrokenPipeError:
        # the reader of our output has gone (`avahi-gpu peers | head -1`): nothing to tell anybody
        _leave_reader()
        raise typer.Exit(int(ExitCode.FINE)) from None


def _leave_reader() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def interruption(made: Sequence[Change], command: str) -> Interrupted:
    """Return the error of a command that was to end while it changed the machine: what is, how to go on."""
    if not made:
        return Interrupted("interrupted before a change was complete", f"avahi-gpu {command} begins anew")
    return Interrupted(
        f"interrupted; done until then: {'; '.join(c.title for c in made)}",
        f"avahi-gpu {command} goes on from here, avahi-gpu undo --last takes back what was done",
    )


def _removed_folder() -> Misuse | None:
    """Return the error of a shell whose current folder has been removed, None where it is there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return Misuse("the current folder has been removed", "cd into one that is there")
    return None
