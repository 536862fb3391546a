"""The entry point: it loads the program, and keeps its promises where that is cut short."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise, takewhile
from pathlib import Path

from avahi_gpu.errors import ExitCode, Interrupted
from avahi_gpu.result import failed

NO_JSON = ("launch", "explain", "completion")  # all words behind launch's script are the script's own
COMPLETE = "_complete"  # what the scripts in completion/ ask
NO_THREAD = "can't start new thread"  # threading.py
LIMITS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # threads, processes, memory, open files


def read_ahead(arguments: Sequence[str]) -> tuple[str, bool]:
    """Return the command that is asked for ('' for none), and whether its result is to be a JSON object.

    For the ends that come before the command's own parser has got so far as to know.
    """
    words = list(takewhile(lambda word: word != "--", arguments))
    command = next((word for word in words if not word.startswith("-")), "")
    wanted = "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)
    return command, wanted and command not in NO_JSON


def main() -> None:
    """Entry point of ``avahi-gpu``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the rest of our life
        # in a locale or with a PYTHONIOENCODING that cannot write “…” it is written as an escape
        getattr(sys, name).reconfigure(errors="backslashreplace")
    if sys.argv[1:2] == [COMPLETE]:
        from avahi_gpu.cli.complete import main as complete  # knows the words without loading the commands

        complete(sys.argv[2:])
    try:
        from avahi_gpu.cli.program import run  # takes a fifth of a second, or more on a busy machine

        code = run(sys.argv[1:])
        sys.stdout.flush()  # at the exit it would be too late to say that it cannot be written
    except KeyboardInterrupt:
        code = tell_interruption()
    except MemoryError:
        code = tell_limit("there is no more memory")
    except RuntimeError as error:
        if NO_THREAD not in str(error):
            raise
        code = tell_limit(str(error))
    except OSError as error:
        if error.errno in LIMITS:
            sys.exit(tell_limit(error.strerror or str(error)))
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        sys.stderr.write(f"avahi-gpu: the output cannot be written: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
        code = int(ExitCode.FAILED)
    sys.exit(code)


def tell_limit(says: str) -> int:
    """Say that the system gives this process too little to go on; return the exit code."""
    sys.stderr.write(f"avahi-gpu: {says}\n  a limit of this process or container is too low: ulimit -a\n")
    return int(ExitCode.FAILED)


def tell_interruption() -> int:
    """Say that Ctrl-C ended the program before a command of it could; return the exit code."""
    command, as_json = read_ahead(sys.argv[1:])
    if as_json:
        sys.stdout.write(json.dumps(failed(command, Interrupted("interrupted")).envelope()) + "\n")
    else:
        sys.stderr.write("avahi-gpu: interrupted\n")
    return int(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
