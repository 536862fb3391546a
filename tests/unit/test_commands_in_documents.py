"""Every command line of ours on a page is one that the program takes: its commands and options are there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer.main

from avahi_gpu.cli.program import app
from avahi_gpu.cli.tree import read_program
from avahi_gpu.render.manual import Manual
from tests.unit.test_documents import ROOT, all_pages

SPAN = re.compile(r"`([^`\n]+)`")
CODE = re.compile(r"^(?: {4,}|```|$)")
OURS = re.compile(
    r"""(?<!download)(?:^|[\s("'])(?:"\$\(command -v avahi-gpu\)"|(?:[\w./]*/)?avahi-gpu)"""
    r"((?: +[^\s|;&#]+)+)"
)
NO_COMMAND = ("CHANGELOG.md",)  # tells of slips, too
WITH_VERSION = ("--json", "--python")  # taken beside --version, and shown in its help alone


def code_of(text: str) -> Iterator[str]:
    """Yield lines of code, and what stands as code within a sentence; a line that goes on is one."""
    fenced = False
    for line in text.replace("\\\n", " ").splitlines():
        fenced ^= line.startswith("```")
        yield from [line] if fenced or CODE.match(line) else SPAN.findall(line)


def program_of_commands() -> dict[str, Manual]:
    return {m.name: m for m in read_program(typer.main.get_command(app))}


def mistake(words: list[str], program: dict[str, Manual]) -> str:
    """Return what is wrong with the words behind ``avahi-gpu``, '' where nothing is."""
    manual = program[""]
    while words:
        word, *words = words
        word = word.strip(".,:)(\"'…]}")
        if manual.name == "" and re.fullmatch(r"[a-z]+", word):
            if word not in program:
                return f"no command {word}" if word not in ("help", "COMMAND") else ""
            manual = program[word]
        elif word == "--" or (manual.name == "launch" and not word.startswith("-")):
            return ""  # the script's words, and torchrun's
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            if manual.name == "" and name in WITH_VERSION:
                return ""
            option = next((p for p in manual.parameters if name in p.names), None)
            if option is None:
                return f"{manual.name} has no option {name}"
            words = words[1:] if option.metavar and not equals else words
    return ""


def test_commands_on_pages_are_those_of_the_program() -> None:
    program = program_of_commands()
    wrong, seen = [], 0
    for page in all_pages():
        if page.name in NO_COMMAND:
            continue
        for code in code_of(page.read_text(encoding="utf-8")):
            for words in OURS.findall(code):
                seen += 1
                if fault := mistake(words.split(), program):
                    wrong.append(f"{page.relative_to(ROOT)}: avahi-gpu{words}: {fault}")
    assert not wrong, "\n".join(wrong)
    assert seen > 200


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("peers --expect 3 --watch", ""),
        ("launch --nnodes 2 train.py --nosuch 1", ""),
        ("launch --nodes 2 train.py", "launch has no option --nodes"),
        ("doctr", "no command doctr"),
        ("--version --json", ""),
    ],
)
def test_a_mistake_is_seen(line: str, fault: str) -> None:
    assert mistake(line.split(), program_of_commands()) == fault
