"""What completion scripts ask at every press of the tab key: it must be quick, and is never heard otherwise.

``avahi-gpu _complete SHELL WORD...``: the words behind the program's name, the last one being completed. The
first line of the answer is ``words``, ``list`` (more may follow a comma), ``files`` or ``folders``; then come
the words, each with its help behind a tab, or as zsh's _describe wants it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from avahi_gpu.cli import wishes
from avahi_gpu.cli.wishes import Wish
from avahi_gpu.cli.words import SUMMARIES, TABLE
from avahi_gpu.errors import AvahiGpuError

LOOK_S = 0.4  # a look for nodes: Avahi knows most at once, the others answer by 0.22 s
END_S = 3.0  # whatever happens, a shell waits no longer: on a busy machine a look takes more than a second
OFFERED_MAX = 200
SHELLS = ("bash", "zsh", "fish")
HELP_MAX = 60  # letters
_INTERFACES = Path("/sys/class/net")
_HEADING = re.compile(r"# (AG[0-9]{3}): ([a-z0-9-]+)")


def main(arguments: Sequence[str]) -> NoReturn:
    """Print the answer and end with 0: what goes wrong is no concern of somebody who types."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, END_S)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        text = answer(arguments[0], arguments[1:])
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        sys.stdout.write(text)
        sys.stdout.flush()
    except BaseException:  # noqa: S110
        pass
    os._exit(0)


def answer(shell: str, words: Sequence[str]) -> str:
    """Return what the script of ``shell`` is told."""
    parted = False
    if shell == "bash":
        words, parted = wishes.join_parted(words)
    wish = wishes.read_wish(words, TABLE)
    for kind, name in ((wishes.FILES, "files"), (wishes.FOLDERS, "folders")):
        if kind in wish.offers:
            return f"{name}\n"
    found = []
    for kind in wish.offers:
        with contextlib.suppress(
            AvahiGpuError, OSError
        ):  # no Avahi, no page of a finding: then without these
            found += look_up(kind, wish)
    chosen = wishes.choose(wish, found)[:OFFERED_MAX]
    if parted:  # what stands before the sign is another word there
        chosen = [(word.partition("=")[2], says) for word, says in chosen]
    kind = "list" if wishes.NODE_LIST in wish.offers else "words"
    return "".join(f"{line}\n" for line in (kind, *(_show(shell, *each) for each in chosen)))


def _show(shell: str, word: str, says: str) -> str:
    says = "".join(c for c in says if c.isprintable())
    says = says if len(says) <= HELP_MAX else says[: HELP_MAX - 1] + "…"
    if shell == "zsh":
        word = word.replace(":", "\\:")
        return f"{word}:{says}" if says else word
    return f"{word}\t{says}" if says and shell == "fish" else word


def look_up(kind: str, wish: Wish) -> list[tuple[str, str]]:
    """Return the words of a kind, each with its help; a word that is no kind is one itself."""
    if kind == wishes.COMMANDS:
        return [*SUMMARIES.items(), ("help", "show the help of a command")]
    ways: dict[str, Callable[[], list[str]]] = {
        wishes.NODES: nodes, wishes.NODE_LIST: nodes, wishes.JOBS: jobs, wishes.INTERFACES: interfaces
    }  # fmt: skip
    if kind == wishes.FINDINGS:
        # the names of findings are offered to whoever begins to type one
        return findings(by_name=wish.start[:1].islower())
    return [(word, "") for word in ways[kind]()] if kind in ways else [(kind, "")]


def nodes() -> list[str]:
    """Return the host names of the nodes that are seen now. Whoever calls itself otherwise is left out."""
    import asyncio

    from avahi_gpu.avahi.glance import glance
    from avahi_gpu.model import NODE_SERVICE

    seen = asyncio.run(glance(NODE_SERVICE, LOOK_S, enough=2))  # this machine alone is seen at once
    names = [*(service.name for service in seen.services), *seen.unresolved]
    return sorted(name for name in names if wishes.NAME.fullmatch(name))


def jobs() -> list[str]:
    """Return the names of the jobs that run on the LAN."""
    import asyncio

    from avahi_gpu.avahi.glance import glance
    from avahi_gpu.files.txt import read_values
    from avahi_gpu.model import JOB_SERVICE

    seen = asyncio.run(glance(JOB_SERVICE, LOOK_S, enough=1))
    return sorted({read_values(service.txt).get("job", "") for service in seen.services})


def interfaces() -> list[str]:
    """Return the network interfaces of this machine, without the loopback."""
    return sorted(path.name for path in _INTERFACES.iterdir() if path.name != "lo")


def findings(*, by_name: bool) -> list[tuple[str, str]]:
    """Return the ids of findings with their names, or the names with their ids."""
    from avahi_gpu.cli.shipped import folder_of

    folder = folder_of("findings")
    found = []
    for page in sorted(folder.glob("AG*.md")) if folder is not None else ():
        with page.open(encoding="utf-8") as file:
            heading = _HEADING.match(file.readline(200))
        if heading is not None:
            found.append((heading[2], heading[1]) if by_name else (heading[1], heading[2]))
    return found
