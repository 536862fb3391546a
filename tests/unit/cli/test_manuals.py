"""The manual pages and the reference: from the commands themselves, complete, and as committed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from avahi_gpu.cli.manuals import man_pages, reference, words, write
from avahi_gpu.cli.pages import settings
from avahi_gpu.cli.pages.program import EXITS, FILES, VARIABLES
from avahi_gpu.cli.program import COMMANDS, HIDDEN, app
from avahi_gpu.cli.tree import read_program
from avahi_gpu.cli.wishes import KINDS
from avahi_gpu.errors import ExitCode
from avahi_gpu.files.config import NAMES
from avahi_gpu.files.settings import VARIABLES as OF_SETTINGS
from avahi_gpu.render.manual import Manual

ROOT = Path(__file__).resolve().parents[3]
AGAIN = "run scripts/manuals and commit what it writes"
SHOWN = [name for name in COMMANDS if name not in HIDDEN]


@pytest.fixture(scope="module")
def manuals() -> dict[str, Manual]:
    return {m.name: m for m in read_program(typer.main.get_command(app))}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return man_pages()


def test_the_committed_pages_are_those_of_the_program(pages: dict[str, str]) -> None:
    there = {str(p.relative_to(ROOT / "man")): p.read_text() for p in (ROOT / "man").glob("man*/*")}

    assert sorted(there) == sorted(pages), AGAIN
    assert [name for name in pages if pages[name] != there[name]] == [], AGAIN
    assert (ROOT / "avahi_gpu/cli/words.py").read_text() == words(), AGAIN
    assert (ROOT / "docs/reference/command-line.md").read_text() == reference(), AGAIN


def test_every_command_has_a_page_and_the_hidden_ones_have_none(pages: dict[str, str]) -> None:
    ours = {"man1/avahi-gpu.1", "man5/avahi-gpu.toml.5"}

    assert set(pages) == ours | {f"man1/avahi-gpu-{name}.1" for name in SHOWN}


def test_pages_are_the_same_whenever_they_are_made(pages: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "man1").mkdir()
    (tmp_path / "man1/avahi-gpu-gone.1").write_text("of a command that is no more")
    (tmp_path / "man1/other.1").write_text("somebody else's")
    write(tmp_path, pages)

    made = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.glob("man*/*")}
    assert made == pages | {"man1/other.1": "somebody else's"}


@pytest.mark.skipif(
    shutil.which("mandoc") is None and not os.environ.get("CI"), reason="mandoc is not installed"
)
def test_mandoc_finds_nothing_to_complain_of(tmp_path: Path, pages: dict[str, str]) -> None:
    write(tmp_path, pages)

    lint = subprocess.run(
        ["mandoc", "-Tlint", *sorted(map(str, tmp_path.glob("man*/*")))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (lint.stdout, lint.stderr) == ("", "")


@pytest.mark.parametrize("command", SHOWN)
def test_what_a_page_speaks_of_is_there(command: str, manuals: dict[str, Manual]) -> None:
    manual = manuals[command]
    names = {name for p in manual.options for name in p.names}
    words = {p.metavar for p in manual.parameters}

    assert manual.page.summary and len(f"  {command}  {manual.page.summary}") < 80
    assert manual.page.examples, "people read examples first"
    assert [n for listed in manual.page.groups.values() for n in listed if n not in names] == []
    assert [n for n in manual.page.offers if n not in names | words] == []
    assert set(manual.page.variables) <= set(VARIABLES) and set(manual.page.files) <= set(FILES)
    assert set(manual.page.exits) <= {*EXITS, "N"}
    for text in (manual.page.summary, *manual.page.exits.values(), *(e.says for e in manual.page.examples)):
        assert not text.endswith("."), text
    for parameter in manual.parameters:
        assert parameter.help, parameter
        offers = parameter.offers.split()
        assert {word for word in offers if word.startswith("@")} <= set(KINDS), parameter
        assert not {f"@{word}" for word in offers} & set(KINDS), f"a kind begins with @: {parameter}"


@pytest.mark.parametrize("command", SHOWN)
def test_an_example_uses_options_that_there_are(command: str, manuals: dict[str, Manual]) -> None:
    for example in manuals[command].page.examples:
        words = example.line.split(" | ")[0].split(" -- ")[0].split()
        start = next(n for n, word in enumerate(words) if word.strip('"$()') == "avahi-gpu")
        called = words[start + 1]
        known = {name for p in manuals[called].options for name in p.names}
        assert [w for w in words[start + 2 :] if w.startswith("-") and w not in known] == [], example.line


def test_the_shared_tables_name_every_exit_code_variable_and_setting() -> None:
    assert set(EXITS) == {str(int(code)) for code in ExitCode}
    assert set(OF_SETTINGS.values()) <= set(VARIABLES)
    assert set(settings.SAYS) == set(NAMES) >= set(settings.OPTIONS)
