"""Words that the parser does not understand: what is wrong with them, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from avahi_gpu.cli.program import COMMANDS, HIDDEN, app
from avahi_gpu.errors import Misuse
from avahi_gpu.render.manual import PROGRAM

ALIKE = 0.7  # of difflib's ratio: --jsno and --json, but not --json and --list
FINDING = re.compile(r"AG[0-9]{3}", re.IGNORECASE)
# what people type who know other programs
MEANT = {
    "list": "peers", "ls": "peers", "nodes": "peers", "hosts": "peers", "status": "peers",
    "watch": "peers --watch",
    "run": "launch", "start": "launch", "train": "launch", "torchrun": "launch",
    "install": "setup", "init": "setup", "uninstall": "undo", "revert": "undo",
    "check": "doctor", "diagnose": "doctor", "fix": "doctor --fix", "version": "--version",
}  # fmt: skip


def explain_misuse(fault: Any, command: str, arguments: Sequence[str]) -> Misuse:
    """Return the error of what the parser raised, with what was probably meant and where to read on.

    ``command``: the first word that is no option, '' where there is none.
    """
    name = str(getattr(fault, "option_name", "") or "")
    if name and command not in COMMANDS:  # --expect 3 peers
        command = next((word for word in arguments if word in COMMANDS), command)
    known = command in COMMANDS
    line = f"{PROGRAM} {command}" if known else PROGRAM
    more = f"`{line} --help` tells what is understood"
    if name and hasattr(fault, "possibilities"):  # there is no such option
        before = not known or arguments.index(command) > _place(name, arguments)
        if known and before and name in _options(command):
            return Misuse(f"{name} is an option of {line}", f"it stands behind the command: {line} {name}")
        says = f"there is no option {name} of {PROGRAM if before else line}"
        return Misuse(says, _meant(nearest(name, _options("" if before else command)), more))
    if command and not known:
        return Misuse(f"there is no command {command}", _meant(_meant_command(command), more))
    says = fault.format_message().rstrip(".").replace("Value error, ", "")  # pydantic's words
    return Misuse(says, _meant(_bare_option(command, arguments) if "unexpected" in says else "", more))


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the one of ``words`` that ``word`` is most like, '' where it is like none."""
    return next(iter(difflib.get_close_matches(word.lower(), list(words), 1, ALIKE)), "")


def _meant(word: str, more: str) -> str:
    return f"did you mean {word}? {more}" if word else more


def _meant_command(command: str) -> str:
    if FINDING.fullmatch(command):
        return f"{PROGRAM} explain {command.upper()}"
    meant = MEANT.get(command.lower()) or nearest(command, (n for n in COMMANDS if n not in HIDDEN))
    return f"{PROGRAM} {meant}" if meant else ""


def _bare_option(command: str, arguments: Sequence[str]) -> str:
    """Return the option that one of the words is but for its hyphens, '' where none is."""
    known = _options(command)
    return next((f"--{word}" for word in arguments if f"--{word}" in known), "")


def _place(name: str, arguments: Sequence[str]) -> int:
    """Return where the option stands among the words, the end where it was cut out of one."""
    return next((n for n, word in enumerate(arguments) if word.split("=")[0] == name), len(arguments))


def _options(command: str) -> list[str]:
    """Return the names of a command's options, '' being the program."""
    import typer.main

    program = typer.main.get_command(app)
    parser: Any = program.get_command(None, command) if command else program  # type: ignore[attr-defined]
    names = [name for p in parser.params if p.param_type_name == "option" for name in p.opts]
    return [*names, "--help"]
