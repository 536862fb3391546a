"""What is told of a command: the data behind ``--help``, the man pages, the reference and the completion.

Pure, and free of imports that cost a start anything: the completion reads it at every press of a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PROGRAM = "avahi-gpu"
OTHER_OPTIONS = "Options"  # the heading of what a page puts under none
HELP = "--help"


@dataclass(frozen=True)
class Example:
    """A line to type, and what it is for."""

    line: str
    says: str


@dataclass(frozen=True)
class Page:
    """What is told of a command beside its parameters, which its own function declares.

    Text is plain, with `code` in backticks. ``summary``: what it does, without a full stop, fit for a list.
    ``groups``: heading -> options below it, in this order; the others follow under ``Options``.
    ``offers``: option or metavar -> what the shell may complete its value to, see ``Parameter.offers``.
    ``exits``: exit code -> what it means for this command. ``files`` and ``variables``: name -> what it is.
    ``more``: heading -> paragraphs. ``see``: other manual pages, ``avahi-gpu-undo(1)``.
    """

    summary: str
    examples: tuple[Example, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    offers: Mapping[str, str] = field(default_factory=dict)
    exits: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    see: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """An option, or an argument (``names`` empty).

    ``metavar`` '': it takes no value. ``offers``: what the shell may complete its value to, words parted by
    blanks; those of ``cli.wishes.KINDS`` (``@nodes``) stand for what is looked up; '' for nothing.
    """

    names: tuple[str, ...]
    metavar: str
    help: str
    default: str = ""
    offers: str = ""
    required: bool = False
    many: bool = False

    @property
    def is_option(self) -> bool:
        return bool(self.names)

    @property
    def title(self) -> str:
        """Return it as a list shows it: ``-y, --yes``, ``--only AREA``, ``NAME...``."""
        if not self.is_option:
            return self.shown
        return ", ".join(self.names) + (f" {self.metavar}" if self.metavar else "")

    @property
    def shown(self) -> str:
        """Return an argument as the usage line shows it: ``ID``, ``[NAME]...``."""
        if " " in self.metavar:  # it says itself what may be left out
            return self.metavar
        return (self.metavar if self.required else f"[{self.metavar}]") + ("..." if self.many else "")


@dataclass(frozen=True)
class Manual:
    """One command with all that is told of it. ``name`` '': the program itself."""

    name: str
    paragraphs: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    page: Page

    @property
    def title(self) -> str:
        """Return the name of its manual page: ``avahi-gpu-doctor``."""
        return f"{PROGRAM}-{self.name}" if self.name else PROGRAM

    @property
    def line(self) -> str:
        """Return how it is called: ``avahi-gpu doctor``."""
        return f"{PROGRAM} {self.name}" if self.name else PROGRAM

    @property
    def usage(self) -> str:
        """Return the usage without the command itself: ``[OPTIONS] [NAME]...``."""
        if not self.name:
            return "[OPTIONS] COMMAND [ARGUMENTS]..."
        return " ".join(["[OPTIONS]", *(p.shown for p in self.arguments)])

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if not p.is_option)

    @property
    def options(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_option)

    def grouped(self) -> Iterator[tuple[str, list[Parameter]]]:
        """Yield each heading with its options; what the page does not sort comes last."""
        groups = [
            (heading, [p for name in names for p in self.options if name in p.names])
            for heading, names in self._sorting
        ]
        known = [p for _, chosen in groups for p in chosen]
        rest = [p for p in self.options if p not in known]
        if rest:
            groups.append((OTHER_OPTIONS, rest))
        yield from ((heading, chosen) for heading, chosen in groups if chosen)

    @property
    def _sorting(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the groups of the page, the last of them with ``--help``: every command has that."""
        groups = list(self.page.groups.items())
        return [*groups[:-1], (groups[-1][0], (*groups[-1][1], HELP))] if groups else []


@dataclass(frozen=True)
class Setting:
    """One setting of config.toml. ``wanted``: what its value may be; ``options``: where else it is said."""

    name: str
    says: str
    wanted: str
    example: str
    variable: str
    options: str = ""


_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=\S)")
_CODE = re.compile(r"`([^`]*)`")


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, each without line breaks."""
    return _SENTENCE_END.split(" ".join(text.split()))


def spans(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text in order, and of each whether it is code."""
    for number, part in enumerate(_CODE.split(text)):
        if part:
            yield number % 2 == 1, part
