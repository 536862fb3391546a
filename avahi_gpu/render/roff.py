"""Manual pages: from what is told of a command to roff, in the macros of man(7). Pure.

Whatever a text holds is shown as it is: a dot at the start of a line, a backslash or a quote steers nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from avahi_gpu.render.manual import PROGRAM, Example, Manual, Page, Parameter, Setting, sentences, spans
from avahi_gpu.render.text import printable

COLUMNS = 78  # of a line of source, as the checkers of manual pages want it
LONGEST = 10_000  # characters of one text
INDENT = 4
# man(7) would make hyphens and typographic quotes of these, which nobody could copy into a shell
_GLYPHS = {
    "\\": r"\(rs", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq",
}  # fmt: skip
_STARTS = (".", "'")
_SECTION = re.compile(r"([^()]+)\(([0-9][a-z]*)\)")


def escape(text: str) -> str:
    """Return ``text`` as roff shows it, letter by letter; line breaks and control characters as ``\\n``."""
    shown = "".join(_GLYPHS.get(c, c) for c in printable(text, LONGEST))
    shown = "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in shown)
    return rf"\&{shown}" if shown.startswith(_STARTS) else shown


def markup(text: str) -> str:
    """Return one line of roff for a text with `code` in backticks, which is set in bold."""
    shown = "".join(rf"\fB{escape(part)}\fR" if code else escape(part) for code, part in spans(text))
    return rf"\&{shown}" if shown.startswith(_STARTS) else shown


def _lines(text: str) -> list[str]:
    """Return a paragraph: each sentence begins a line, and none is longer than a line is to be."""
    lines: list[str] = []
    for sentence in sentences(text):
        wrapped = textwrap.wrap(
            markup(sentence), COLUMNS, break_long_words=False, break_on_hyphens=False, expand_tabs=False
        )
        lines += [rf"\&{line}" if line.startswith(_STARTS) else line for line in wrapped]
    return lines


def _quoted(text: str) -> str:
    """Return an argument of a macro."""
    return f'"{escape(text)}"'


def _head(title: str, section: int, date: str, version: str) -> list[str]:
    book = {1: "User Commands", 5: "File Formats"}[section]
    rest = " ".join(map(_quoted, (f"{PROGRAM} {version}", book)))
    return [
        r".\" made by scripts/manuals from the program itself",
        f".TH {_quoted(title.upper())} {section} {date} {rest}",
    ]


def _tagged(tag: str, texts: Sequence[str]) -> list[str]:
    body = [line for number, text in enumerate(texts) for line in ([".IP"] if number else []) + _lines(text)]
    return [".TP", tag, *(body or [r"\&"])]


def _terms(terms: Mapping[str, str], *, bold: bool = True) -> list[str]:
    tags = {name: rf"\fB{escape(name)}\fR" if bold else escape(name) for name in terms}
    return [line for name, says in terms.items() for line in _tagged(tags[name], [says + "."])]


def _names(parameter: Parameter) -> str:
    """Return ``\\fB-y\\fR, \\fB--yes\\fR`` with the value in italics, as manual pages do."""
    if not parameter.is_option:
        return rf"\fI{escape(parameter.shown)}\fR"
    names = ", ".join(rf"\fB{escape(name)}\fR" for name in parameter.names)
    return names + (rf" \fI{escape(parameter.metavar)}\fR" if parameter.metavar else "")


def _parameters(parameters: Iterable[Parameter]) -> list[str]:
    lines: list[str] = []
    for each in parameters:
        texts = [each.help] if each.help else []
        if each.many and each.is_option and "repeatable" not in each.help:
            texts = [f"{each.help} May be given several times.".strip()]
        if each.default:
            texts = [*texts[:-1], f"{texts[-1] if texts else ''} Default: {each.default}.".strip()]
        lines += _tagged(_names(each), texts)
    return lines


def _examples(examples: Iterable[Example]) -> list[str]:
    lines: list[str] = []
    for each in examples:
        says = each.says[:1].upper() + each.says[1:] + ":"
        lines += [".PP", *_lines(says), ".PP", f".RS {INDENT}", ".EX", escape(each.line), ".EE", ".RE"]
    return lines[1:]


def _see(references: Iterable[str]) -> list[str]:
    lines = []
    references = list(references)
    for number, each in enumerate(references):
        comma = " ," if number < len(references) - 1 else ""
        found = _SECTION.fullmatch(each)
        lines.append(
            f".BR {escape(found[1])} ({found[2]}){comma.strip()}" if found else f".BR {escape(each)}{comma}"
        )
    return lines


def _prose(sections: Mapping[str, Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for heading, paragraphs in sections.items():
        lines += [f".SH {_quoted(heading.upper())}", *_paragraphs(paragraphs)]
    return lines


def _paragraphs(paragraphs: Sequence[str]) -> list[str]:
    return [
        line for number, text in enumerate(paragraphs) for line in ([".PP"] if number else []) + _lines(text)
    ]


def make_page(manual: Manual, commands: Sequence[Manual], *, version: str, date: str) -> str:
    """Return the manual page of a command; of the program, where it is one, with the list of ``commands``.

    ``date``: of the version, as 2026-11-30, so that equal sources make equal pages.
    """
    page = manual.page
    usage = " ".join(rf"\fI{escape(word)}\fR" for word in manual.usage.split(" "))
    lines = [
        *_head(manual.title, 1, date, version),
        ".SH NAME",
        rf"{escape(manual.title)} \- {escape(page.summary)}",
        ".SH SYNOPSIS",
        rf"\fB{escape(manual.line)}\fR {usage}",
        ".SH DESCRIPTION",
        *_paragraphs(manual.paragraphs or (page.summary,)),
    ]
    if commands:
        lines += [".SH COMMANDS", *_terms({f"{c.title}(1)": c.page.summary for c in commands})]
    if manual.arguments:
        lines += [".SH ARGUMENTS", *_parameters(manual.arguments)]
    lines.append(".SH OPTIONS")
    for heading, options in manual.grouped():
        lines += [f".SS {_quoted(heading)}"] if page.groups else []
        lines += _parameters(options)
    lines += _prose(page.more)
    lines += _tables(page)
    see = {*page.see, *(f"{c.title}(1)" for c in commands), *([] if commands else [f"{PROGRAM}(1)"])}
    lines += [".SH SEE ALSO", *_see(sorted(see, key=_by_section))]
    return "\n".join(lines) + "\n"


def make_settings_page(settings: Sequence[Setting], page: Page, *, version: str, date: str) -> str:
    """Return the manual page of the file of settings; ``page``: its prose."""
    title = f"{PROGRAM}.toml"
    lines = [
        *_head(title, 5, date, version),
        ".SH NAME",
        rf"{escape(title)} \- {escape(page.summary)}",
        ".SH DESCRIPTION",
        *_paragraphs(page.more["Description"]),
        ".SH SETTINGS",
    ]
    for each in settings:
        texts = [f"{each.says}. It is {each.wanted}.", f"Variable: `{each.variable}`"]
        texts += [f"Options: {each.options}"] if each.options else []
        lines += _tagged(rf"\fB{escape(each.name)}\fR = \fI{escape(each.example)}\fR", texts)
    lines += _prose({heading: texts for heading, texts in page.more.items() if heading != "Description"})
    lines += _tables(page)
    lines += [".SH SEE ALSO", *_see(sorted({*page.see, f"{PROGRAM}(1)"}, key=_by_section))]
    return "\n".join(lines) + "\n"


def _tables(page: Page) -> list[str]:
    lines: list[str] = []
    if page.exits:
        lines += [".SH EXIT STATUS", *_terms(page.exits)]
    if page.variables:
        lines += [".SH ENVIRONMENT", *_terms(page.variables)]
    if page.files:
        lines += [".SH FILES", *_terms(page.files, bold=False)]
    if page.examples:
        lines += [".SH EXAMPLES", *_examples(page.examples)]
    return lines


def _by_section(reference: str) -> tuple[str, str]:
    found = _SECTION.fullmatch(reference)
    return (found[2], found[1]) if found else ("9", reference)
