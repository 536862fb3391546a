"""The module ``cli/words.py``: the words of the command line as literals, which load at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from avahi_gpu.render.manual import Manual

_HEAD = '''"""The words of the command line, for the completion. Made by scripts/manuals: do not edit."""
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from avahi_gpu.cli.wishes import Table

'''


def make_words(program: Manual, commands: Sequence[Manual]) -> str:
    """Return the module: ``SUMMARIES``, command -> what it does, and ``TABLE`` for ``cli.wishes``."""
    lines = ["SUMMARIES: dict[str, str] = {"]
    lines += [f"    {_text(c.name)}: {_text(c.page.summary)}," for c in commands]
    lines += ["}", "TABLE: Table = {"]
    for manual in (program, *commands):
        lines += [f"    {_text(manual.name)}: (", "        {"]
        for option in manual.options:
            offers = _text(option.offers) if option.metavar else "None"
            for name in option.names:
                lines.append(f"            {_text(name)}: ({offers}, {_text(option.help)}, {option.many}),")
        arguments = "".join(f"{_text(a.offers)}, " for a in manual.arguments).strip()
        many = bool(manual.arguments and manual.arguments[-1].many)
        lines += ["        },", f"        ({arguments}),", f"        {many},", "    ),"]
    return _HEAD + "\n".join([*lines, "}"]) + "\n"


def _text(text: str) -> str:
    """Return a literal in double quotes where that takes no backslash."""
    return f'"{text}"' if text.isprintable() and not {'"', "\\"} & {*text} else repr(text)
