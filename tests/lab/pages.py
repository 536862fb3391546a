"""The commands of a how-to page, run on the lab's hosts exactly as they are written.

A page marks its fenced blocks by the words behind the language:

    ```sh every-node      run on every host at the same time
    ```sh one-node        run on the first host alone
    ```sh not-tested      shown, and not run: what needs the network, say
    ```python train.py    a file of that name, written into the working folder of every host
    ```text               (or console, ini …) output or an excerpt; nothing is done with it

``follow_page`` refuses a block of commands without such a word, so that none goes untried by oversight
(tests/contract/test_pages_are_run.py: a page with commands is named by a test). A test then reads

    done = follow_page("docs/how-to/deepspeed.md", lab.hosts, env={"HOME": "/run/home"})
    assert "loss" in done[-1].outputs[0]

and fails with all that was printed where a block ends with another exit code than 0. ``under`` runs the
blocks of one heading alone, ``files`` adds files that the page takes for granted (the reader's own script).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.host import Host
from tests.lab.runs import JOB_S, REPOSITORY, on_all

Place = Literal["every-node", "one-node", "not-tested", "unmarked", ""]
PLACES = ("every-node", "one-node", "not-tested")
SHELLS = ("sh", "bash")
FOLDER = "/var/tmp/page"  # of the host alone

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>```+)(?P<info>[^`]*)")
_HEADING = re.compile(r"#+\s+(?P<title>.+)")


@dataclass(frozen=True)
class Block:
    """One fenced block. ``place`` '' for what is no command, ``file`` '' for what is no file."""

    page: str
    line: int  # of its first line of text
    heading: str
    language: str
    place: Place
    file: str
    text: str


@dataclass(frozen=True)
class Done:
    """One block of commands that was run, and what it printed on each host, both streams merged."""

    block: Block
    outputs: tuple[str, ...]


def read_blocks(page: str, text: str) -> list[Block]:
    """Return the fenced blocks of a page in order. Raises ValueError for one that is marked otherwise."""
    blocks: list[Block] = []
    heading, opened, begun, lines = "", None, 0, []  # type: ignore[var-annotated]
    for number, line in enumerate(text.split("\n"), 1):
        fence = _FENCE.fullmatch(line.rstrip())
        if opened is None:
            title = _HEADING.fullmatch(line)
            heading = title["title"].strip() if title else heading
            opened, begun, lines = fence, number + 1, []
        elif fence and not fence["info"].strip() and len(fence["fence"]) >= len(opened["fence"]):
            blocks.append(_make_block(page, begun, heading, opened["info"].split(), "\n".join(lines)))
            opened = None
        else:
            lines.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"{page}:{begun - 1}: this block does not end")
    return blocks


def _make_block(page: str, line: int, heading: str, words: list[str], text: str) -> Block:
    language, word = (*words, "", "")[:2]
    where = f"{page}:{line - 1}"
    if len(words) > 2:
        raise ValueError(f"{where}: one word behind the language, not {' '.join(words[1:])}")
    if language in SHELLS:
        if word not in (*PLACES, ""):
            raise ValueError(f"{where}: say where it runs: {', '.join(PLACES)}")
        return Block(page, line, heading, language, word or "unmarked", "", text)  # type: ignore[arg-type]
    if "/" in word:
        raise ValueError(f"{where}: {word} is to be the name of a file in the working folder")
    return Block(page, line, heading, language, "", word, text)


def follow_page(
    page: str,
    hosts: Sequence[Host],
    *,
    under: str | None = None,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    folder: str = FOLDER,
    within_s: float = JOB_S,
) -> list[Done]:
    """Write the page's files, run its blocks one after the other, return what they printed.

    ``page``: below the repository. The working folder is made, and emptied of what an earlier page left.
    """
    blocks = read_blocks(page, (Path(REPOSITORY) / page).read_text(encoding="utf-8"))
    wanted = [b for b in blocks if under is None or b.heading == under]
    assert any(b.place for b in wanted), f"{page} has no commands under {under}"
    unmarked = [b.line for b in wanted if b.place == "unmarked"]
    assert not unmarked, f"{page}: where do the commands of lines {unmarked} run: {', '.join(PLACES)}?"
    given = {**(files or {}), **{b.file: b.text + "\n" for b in blocks if b.file}}
    for host in hosts:
        host.run(["rm", "-rf", folder], check=True)
        host.run(["mkdir", "-p", folder], check=True)
        for name, text in given.items():
            host.write(f"{folder}/{name}", text)
    done = []
    for block in wanted:
        if block.place in ("", "not-tested"):
            continue
        chosen = list(hosts) if block.place == "every-node" else [hosts[0]]
        with on_all(chosen, ["bash", "-euc", block.text], env=env, cwd=folder) as runs:
            codes = runs.codes(within_s)
            assert not any(codes), f"{page}:{block.line}: exit codes {codes} of\n{block.text}"
            done.append(Done(block, tuple(follower.output for follower in runs.followers)))
    return done
