"""A shell at a real terminal in a virtual host: somebody types, and presses the tab key."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.host import Host

READY = "READY> "
WITHIN_S = 60.0  # a start of zsh takes a second on a busy machine
AGAIN_S = 3.0
COLUMNS, LINES = 150, 50
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07|[\r\x07\x0f]")

# shell -> (file that it reads when it starts, its text, its arguments, variables)
SETUPS = {
    "bash": (
        "rc",
        'bind "set show-all-if-ambiguous on"\neval "$(avahi-gpu completion bash)"\n',
        ["bash", "--noprofile", "--rcfile", "{home}/rc", "-i"],
    ),
    "zsh": (
        ".zshrc",
        'unsetopt PROMPT_SP\nautoload -U compinit\ncompinit -u -D\neval "$(avahi-gpu completion zsh)"\n',
        ["zsh", "-i"],
    ),
}


class Terminal:
    """The terminal of one shell."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self._raw = b""

    @property
    def shown(self) -> str:
        """What was shown since ``type``, without what steers a terminal."""
        return _STEERING.sub("", self._raw.decode(errors="replace"))

    def type(self, keys: str) -> None:
        """Press these keys."""
        self._raw = b""
        os.write(self._ours, keys.encode())

    def wait_for(self, *words: str, within_s: float = WITHIN_S) -> str:
        """Read until all of these are shown, and return it. Raises AssertionError where they are not."""
        end = time.monotonic() + within_s
        while not all(word in self.shown for word in words):
            left = end - time.monotonic()
            assert left > 0 and select.select([self._ours], [], [], left)[0], f"{words}: {self.shown!r}"
            part = os.read(self._ours, 65536)
            assert part, self.shown
            self._raw += part
        return self.shown

    def complete(self, line: str, *words: str) -> str:
        """Type a line and tab, wait for these words behind the line, then take the line away.

        Tab is pressed again from time to time: a look at the LAN is short, and the machine may be busy.
        """
        self.type(f"{line}\t")
        end = time.monotonic() + WITHIN_S
        while True:
            try:
                shown = self.wait_for(*words, within_s=AGAIN_S)
                break
            except AssertionError:
                if time.monotonic() > end:
                    raise
                os.write(self._ours, b"\t")
        self.type("\x15\x0c")  # Ctrl-U, Ctrl-L: a clean screen
        self.wait_for(READY)
        return shown


@contextmanager
def shell_at_a_terminal(host: Host, shell: str, home: Path) -> Iterator[Terminal]:
    """Start ``shell`` with the completion loaded as its help tells, in ``home``."""
    name, text, argv = SETUPS[shell]
    (home / name).write_text(f"PS1='{READY}'\n{text}")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = host.popen(
        [word.format(home=home) for word in argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=home,
        env={"TERM": "xterm", "HOME": str(home), "ZDOTDIR": str(home), "HISTFILE": ""},
    )
    os.close(theirs)
    terminal = Terminal(ours)
    try:
        terminal.wait_for(READY)
        yield terminal
    finally:
        os.close(ours)  # the shell ends of it
        process.end()


def fish_completes(host: Host, line: str, home: Path) -> list[str]:
    """Return what fish completes a line to, without the help behind it."""
    script = "avahi-gpu completion fish | source; complete -C $argv[1]"
    done = host.run(["fish", "-c", script, line], env={"HOME": str(home)}, cwd=home, timeout=60, check=True)
    assert done.stderr == ""
    return [word.partition("\t")[0] for word in done.stdout.splitlines()]


def missing(shells: Sequence[str]) -> list[str]:
    """Return those that are not installed here."""
    return [s for s in shells if not any((Path(f) / s).exists() for f in os.get_exec_path())]
