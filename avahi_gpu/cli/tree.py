"""The command line as data: what the parsers declare, with what the pages tell beside it."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import Any

from avahi_gpu.cli.pages import page_of
from avahi_gpu.render.manual import Manual, Page, Parameter

_DEFAULT = re.compile(r"\s*\[default: (.*?)\]\s*$", re.DOTALL)
# what a value is, where its name says so
OFFERED = {"PATH": "@files", "FILE": "@files", "DIR": "@folders", "HOST": "@nodes"}
HELP = Parameter(("-h", "--help"), "", "Show this help and exit.")


def read_command(name: str, parser: Any) -> Manual:
    """Return what is told of a command, or with the name '' of the program; ``parser`` is typer's."""
    page = page_of(name)
    parameters = [_read(p, page) for p in parser.params if not getattr(p, "hidden", False)]
    texts = re.split(r"\n\s*\n", parser.help or "")
    paragraphs = tuple(" ".join(text.split()) for text in texts if text.strip())
    return Manual(name, paragraphs, (*parameters, HELP), page)


def read_program(parser: Any) -> list[Manual]:
    """Return the program and all its commands that are not hidden, in their order."""
    names: Sequence[str] = parser.list_commands(None)
    return [read_command("", parser), *(read_command(n, parser.get_command(None, n)) for n in names)]


def _read(param: Any, page: Page) -> Parameter:
    is_option = param.param_type_name == "option"
    choices = _choices(param)
    metavar = "" if getattr(param, "is_flag", False) else _metavar(param, choices)
    text = " ".join((param.help or "").split())
    found = _DEFAULT.search(text)
    names = tuple(sorted(param.opts, key=lambda name: name.startswith("--"))) if is_option else ()
    return Parameter(
        names=names,
        metavar=metavar,
        help=_DEFAULT.sub("", text),
        default=found[1] if found else _default(param) if is_option and metavar else "",
        offers=_offers(page, names or (metavar,), metavar, choices),
        required=bool(param.required),
        many=bool(param.nargs == -1 or getattr(param, "multiple", False)),
    )


def _choices(param: Any) -> list[str]:
    """Return the words that the parser takes, [] where it takes any."""
    descriptor = getattr(param, "type_descriptor", param.type if hasattr(param, "type") else None)
    return [_word(choice) for choice in getattr(descriptor, "choices", None) or ()]


def _metavar(param: Any, choices: list[str]) -> str:
    return str(param.metavar or "|".join(choices) or param.name.upper().replace("_", "-"))


def _word(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _default(param: Any) -> str:
    shown = param.default is not None and not callable(param.default) and param.show_default is not False
    return _word(param.default) if shown and param.default not in ((), [], "", False) else ""


def _offers(page: Page, names: Sequence[str], metavar: str, choices: list[str]) -> str:
    told = next((page.offers[name] for name in names if name in page.offers), None)
    if told is not None:
        return told
    if "|" in metavar and metavar == metavar.lower():  # new|check
        return metavar.replace("|", " ")
    return " ".join(choices) or OFFERED.get(metavar, "")
