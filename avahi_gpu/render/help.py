"""``--help``: what is told of a command, on a terminal. Pure: the width and whether to colour come in."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from avahi_gpu.render.manual import PROGRAM, Example, Manual, Page, Parameter, sentences

WIDEST = 80  # columns: longer lines are harder to read
NARROWEST = 40
INDENT = "  "
TITLES_AT_MOST = 27  # columns of names of options, which are on a line of their own beyond


def show_help(manual: Manual, *, width: int = WIDEST, colour: bool = False) -> str:
    """Return the help of a command: its usage, examples, arguments and options."""
    width = max(NARROWEST, min(width, WIDEST))
    lines = [_usage(manual, width, colour), ""]
    for text in manual.paragraphs:
        lines += [*_wrap(text, width), ""]
    if manual.page.examples:
        lines += [_heading("Examples", colour), *_examples(manual.page.examples, width), ""]
    if manual.arguments:
        lines += [_heading("Arguments", colour), *_parameters(manual.arguments, width), ""]
    for heading, options in manual.grouped():
        lines += [_heading(heading, colour), *_parameters(options, width), ""]
    lines += _wrap(f"Exit codes and more: man {manual.title}", width, "")
    return "\n".join(lines)


def show_program(
    program: Manual, commands: Sequence[tuple[str, Page]], *, width: int = WIDEST, colour: bool = False
) -> str:
    """Return the help of the program: what to begin with, and all commands."""
    width = max(NARROWEST, min(width, WIDEST))
    lines = [_usage(program, width, colour), ""]
    for text in program.paragraphs:
        lines += [*_wrap(text, width), ""]
    lines += [_heading("What to begin with", colour), *_examples(program.page.examples, width), ""]
    lines += [_heading("Commands", colour), *_table([(n, p.summary) for n, p in commands], width), ""]
    lines += [_heading("Options", colour), *_parameters(program.options, width), ""]
    lines += _wrap(f"{PROGRAM} COMMAND -h tells of a command; man {PROGRAM} of all.", width, "")
    return "\n".join(lines)


def show_first_steps(page: Page, *, is_node: bool, width: int = WIDEST, colour: bool = False) -> str:
    """Return what somebody sees who types the program's name alone. ``page``: the program's."""
    width = max(NARROWEST, min(width, WIDEST))
    setup, *others = page.examples
    first = f"{PROGRAM}: {page.summary}"
    lines = [*_wrap(first, width, ""), ""]
    if is_node:
        lines += [_heading("This machine is set up. What you can do", colour)]
    else:
        lines += [_heading("This machine is not set up yet. Begin with", colour), *_examples([setup], width)]
        lines += ["", _heading("Then", colour)]
    lines += [*_examples(others, width), ""]
    lines += _wrap(f"All commands: {PROGRAM} --help", width, "")
    return "\n".join(lines)


def _heading(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}:\x1b[0m" if colour else f"{text}:"


def _usage(manual: Manual, width: int, colour: bool) -> str:
    head = "\x1b[1mUsage:\x1b[0m" if colour else "Usage:"
    text = f"{manual.line} {manual.usage}"
    lines = textwrap.wrap(text, width - len("Usage: "), break_long_words=False, break_on_hyphens=False)
    return f"{head} " + f"\n{' ' * 7}".join(lines)


def _wrap(text: str, width: int, indent: str = INDENT) -> list[str]:
    """Return the lines of a text that is printed as it is, ``code`` in its backticks."""
    return textwrap.wrap(
        " ".join(sentences(text)),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _examples(examples: Sequence[Example], width: int) -> list[str]:
    return _table([(e.line, e.says) for e in examples], width, width // 2)


def _parameters(parameters: Iterable[Parameter], width: int) -> list[str]:
    rows = []
    for each in parameters:
        default = f" [default: {each.default}]" if each.default else ""
        rows.append((each.title, each.help + default))
    return _table(rows, width)


def _table(rows: Sequence[tuple[str, str]], width: int, most: int = TITLES_AT_MOST) -> list[str]:
    """Return two columns; titles of more than ``most`` letters stand alone, and none is broken."""
    column = max((len(title) for title, _ in rows if len(title) <= most), default=8)
    hang = " " * (len(INDENT) + column + 2)
    lines: list[str] = []
    for title, text in rows:
        wrapped = textwrap.wrap(text, width - len(hang), break_on_hyphens=False) or [""]
        if len(title) > column:
            lines += [f"{INDENT}{title}", *(hang + line for line in wrapped)]
        else:
            lines.append(f"{INDENT}{title:{column}}  {wrapped[0]}".rstrip())
            lines += [hang + line for line in wrapped[1:]]
    return lines
