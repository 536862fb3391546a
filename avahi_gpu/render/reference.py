"""The page of the command line among the documents, in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from avahi_gpu.render.manual import Example, Manual, Parameter

_HEAD = """# The command line

<!-- made by scripts/manuals from the program itself: change the command or its page in avahi_gpu/cli -->

What `avahi-gpu COMMAND --help` and the manual pages tell (`man avahi-gpu-doctor`), on one page.
"""
_SPECIAL = str.maketrans({"<": "&lt;", "&": "&amp;", "*": r"\*", "_": r"\_", "[": r"\[", "|": r"\|"})


def make_reference(program: Manual, commands: Sequence[Manual]) -> str:
    """Return the page."""
    lines = [_HEAD, "| command | does |", "|---|---|"]
    lines += [f"| [`{c.line}`](#{c.title}) | {plain(c.page.summary)} |" for c in commands]
    lines += ["", *_tables(program)]
    for command in commands:
        lines += [f"## {command.title}", "", f"    {command.line} {command.usage}", ""]
        for text in command.paragraphs:
            lines += [plain(text), ""]
        if command.arguments:
            lines += ["| argument | is |", "|---|---|", *map(_row, command.arguments), ""]
        for heading, options in command.grouped():
            lines += [f"| {plain(heading.lower())} | |", "|---|---|", *map(_row, options), ""]
        for heading, paragraphs in command.page.more.items():
            lines += [f"**{plain(heading)}.** {plain(' '.join(paragraphs))}", ""]
        lines += _examples(command.page.examples)
        lines += _terms("exit code", command.page.exits)
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """Return a text as Markdown shows it letter by letter, but for its `code`."""
    parts = text.split("`")
    return "`".join(
        part.replace("|", r"\|") if n % 2 else part.translate(_SPECIAL) for n, part in enumerate(parts)
    )


def _row(parameter: Parameter) -> str:
    default = f" Default: {parameter.default}." if parameter.default else ""
    return f"| {_code(parameter.title)} | {plain(parameter.help + default)} |"


def _code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`"


def _tables(program: Manual) -> list[str]:
    page = program.page
    return [
        *_examples(page.examples),
        *_terms("exit code", page.exits),
        *_terms("variable", page.variables),
        *_terms("file", page.files),
    ]


def _terms(kind: str, terms: Mapping[str, str]) -> list[str]:
    if not terms:
        return []
    rows = [f"| {_code(name)} | {plain(says)} |" for name, says in terms.items()]
    return [f"| {kind} | means |", "|---|---|", *rows, ""]


def _examples(examples: Sequence[Example]) -> list[str]:
    width = max((len(e.line) for e in examples), default=0)
    return [*(f"    {e.line:{width}}  # {e.says}" for e in examples), ""] if examples else []
