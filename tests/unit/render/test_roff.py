"""Whatever a text holds, a manual page shows it and is steered by none of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.render.manual import Example, Manual, Page, Parameter
from avahi_gpu.render.roff import escape, make_page, markup

WILD = st.text(alphabet=st.sampled_from(".'\\-\"`~^ \t\nabTH\x1b…é*_|%$(){}[]<>&#;"), max_size=40)
_SHOWN = {
    r"\(rs": "\\", r"\-": "-", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(dq": '"',
    r"\&": "",
}  # fmt: skip


def show(line: str) -> str:
    """Return a line of roff as it is read; fails on every escape that ``escape`` does not make itself."""
    parts = re.split(r"(\\\[u[0-9A-F]{4,6}\]|\\\(..|\\.)", line)
    shown = ""
    for part in parts:
        if part.startswith(r"\["):
            shown += chr(int(part[3:-1], 16))
        else:
            shown += _SHOWN[part] if part.startswith("\\") else part
    return shown


@given(WILD)
def test_a_text_is_shown_letter_by_letter(text: str) -> None:
    line = escape(text)

    assert line.isascii() and line.isprintable()
    assert not line.startswith((".", "'"))
    expected = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    assert show(line) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("use `--fix` here", r"use \fB\-\-fix\fR here"),
        ("`.hidden`", r"\fB\&.hidden\fR"),
        (".TH x", r"\&.TH x"),
        ("'quoted'", r"\(aqquoted\(aq"),
        (r"\fBnot bold", r"\(rsfBnot bold"),
    ],
)
def test_code_is_bold_and_nothing_else_is(text: str, line: str) -> None:
    assert markup(text) == line


def hostile(text: str) -> Manual:
    """Return a command that says ``text`` wherever one may say something."""
    parameters = (
        Parameter(("--wild",), text or "X", text, default=text),
        Parameter((), text or "X", text, many=True),
    )
    page = Page(
        summary=text,
        examples=(Example(text, text),),
        groups={text or "X": ("--wild",)},
        exits={text or "1": text},
        files={text or "1": text},
        variables={text or "1": text},
        more={text or "X": (text, text)},
        see=(text or "x", f"{text}(1)"),
    )
    return Manual("wild", (text,), parameters, page)


MACROS = {"TH", "SH", "SS", "TP", "PP", "IP", "RS", "RE", "EX", "EE", "BR"}


@given(WILD)
def test_no_text_becomes_a_request(text: str) -> None:
    plain = make_page(hostile("word"), (), version="1", date="2026-11-30")
    wild = make_page(hostile(text), (), version="1", date="2026-11-30")

    def requests(page: str) -> list[str]:
        lines = [line for line in page.splitlines() if line.startswith((".", "'"))]
        assert all(re.match(r"\.(\\\"|[A-Z]{2}\b)", line) for line in lines), lines
        return [line[1:3] for line in lines if line[1:3] in MACROS and line[1:3] != "IP"]

    assert requests(wild) == requests(plain)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="shown by mandoc")
def test_mandoc_shows_the_letters_of_a_hostile_page(tmp_path: Path) -> None:
    text = r""".TH 'x' "y" \fB\n(.s --opt ~/a^b `c` $(rm) \&z"""
    (tmp_path / "x.1").write_text(make_page(hostile(text), (), version="1", date="2026-11-30"))

    shown = subprocess.run(
        ["mandoc", "-Tascii", "-O", "width=500", str(tmp_path / "x.1")],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip

    plain = re.sub(r".\x08", "", shown)
    assert plain.count(text.replace("`", "")) + plain.count(text) >= 6
    assert text in plain  # of the example: every letter, backticks too
