"""nsswitch.conf as glibc reads it (2.33 and later): lines, services, actions, and what it cannot read.

Source: nsswitch.conf(5), glibc nss/nss_database.c and nss_action_parse.c, each rule tried on glibc 2.36.
What surprises: a malformed action on any known database drops the whole file, passwd included; the last of
several lines for a database counts; a last line without a newline is not read; there are no comments behind
the services; an action list where a service should stand ends the reading of the line; the colon is optional;
database and module names are case-sensitive, actions are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# what C's isspace() takes for a blank; a no-break space or a byte order mark is none
BLANKS = " \t\v\f\r\n"

# nss/databases.def; a word that is not among them starts a line that glibc skips
DATABASES = frozenset(
    (
        *(
            "aliases",
            "ethers",
            "group",
            "group_compat",
            "gshadow",
            "hosts",
            "initgroups",
            "netgroup",
            "networks",
        ),
        *("passwd", "passwd_compat", "protocols", "publickey", "rpc", "services", "shadow", "shadow_compat"),
    )
)

STATUSES = ("success", "notfound", "unavail", "tryagain")
ACTIONS = ("return", "continue", "merge")

_DATABASE = re.compile(rf"[{BLANKS}]*([^{BLANKS}:]+)[{BLANKS}:]")
_COLONS = re.compile(rf"[{BLANKS}:]*")
_WORD = re.compile(rf"[^{BLANKS}\[]*")
_BLANK_RUN = re.compile(rf"[{BLANKS}]*")
_CRITERION = re.compile(rf"(!?)([^{BLANKS}=\]]*)[{BLANKS}]*(=?)[{BLANKS}]*([^{BLANKS}=\]]*)[{BLANKS}]*")


@dataclass(frozen=True)
class Actions:
    """What glibc does after each status of a service: ``return``, ``continue`` or ``merge``."""

    success: str = "return"
    notfound: str = "continue"
    unavail: str = "continue"
    tryagain: str = "continue"


@dataclass(frozen=True)
class Service:
    """One service; ``start``, ``name_end`` and ``end`` (behind its actions) index the line's text."""

    name: str
    start: int
    name_end: int
    end: int
    actions: Actions = field(default_factory=Actions)

    @property
    def explicit(self) -> bool:
        """Whether the service has an action list of its own."""
        return self.end > self.name_end


@dataclass(frozen=True)
class Line:
    """One line. ``text`` is without its ``ending`` (``\\n``, ``\\r\\n``, or '' at the end of the file).

    ``database`` is '' for a line that glibc skips. ``defect`` says what glibc cannot read, '' where it can.
    """

    number: int
    text: str
    ending: str
    database: str = ""
    services: tuple[Service, ...] = ()
    services_start: int = 0  # index in text where the services begin
    unread: int | None = None  # index of an action list without a service, from where on glibc reads nothing
    defect: str = ""

    @property
    def read(self) -> bool:
        """Whether glibc reads the line at all: it skips a last line without a newline."""
        return self.ending != ""


@dataclass(frozen=True)
class Nsswitch:
    """A parsed file. Joining ``text`` and ``ending`` of all lines gives the file back."""

    lines: tuple[Line, ...]

    @property
    def defects(self) -> tuple[Line, ...]:
        """The lines that make glibc drop the whole file."""
        return tuple(line for line in self.lines if line.defect and line.read)

    @property
    def hosts(self) -> Line | None:
        """The hosts line that glibc obeys; None: none is read, and glibc uses ``files dns``."""
        return next((line for line in reversed(self.lines) if line.database == "hosts" and line.read), None)

    @property
    def last_hosts(self) -> Line | None:
        """The hosts line that is written last, be it read or not (its newline may be missing)."""
        return next((line for line in reversed(self.lines) if line.database == "hosts"), None)


class _Malformed(Exception):
    """Ends the parsing of one line; its text becomes the line's defect."""


def decode(content: bytes) -> str:
    """Return the file's text. Bytes that are no UTF-8 survive: ``encode`` gives them back."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text that ``decode`` made."""
    return text.encode("utf-8", "surrogateescape")


def parse(text: str) -> Nsswitch:
    """Parse a whole file. Nothing raises: what glibc cannot read is told as a line's ``defect``."""
    lines = []
    for number, piece in enumerate(text.split("\n"), 1):
        lines.append((number, piece, "\n"))
    number, rest, _ = lines.pop()  # what follows the last newline: nothing, or a line without one
    if rest:
        lines.append((number, rest, ""))
    return Nsswitch(tuple(_parse_ended(*line) for line in lines))


def _parse_ended(number: int, text: str, newline: str) -> Line:
    if newline and text.endswith("\r"):
        return parse_line(text[:-1], "\r\n", number)
    return parse_line(text, newline, number)


def parse_line(text: str, ending: str = "\n", number: int = 1) -> Line:
    """Parse one line, given without its ``ending``."""
    seen, cut, _ = text.partition("\0")  # a C string ends there
    # the newline counts as a blank: "hosts" alone on a line is a hosts line without services
    head = _DATABASE.match(seen if cut else seen + ending)
    if head is None or head[1] not in DATABASES:
        return Line(number, text, ending)
    colons = _COLONS.match(seen, min(head.end(1), len(seen)))
    assert colons is not None  # matches the empty string
    services: list[Service] = []
    defect, unread = "", None
    try:
        unread = _parse_services(seen, colons.end(), services)
    except _Malformed as malformed:
        defect = str(malformed)
    return Line(number, text, ending, head[1], tuple(services), colons.end(), unread, defect)


def _parse_services(text: str, position: int, services: list[Service]) -> int | None:
    """Add the services from ``position`` on; return where glibc stops before the end, if it does."""
    while (position := _skip_blanks(text, position)) < len(text):
        start = position
        if text[start] == "[":
            return start
        word = _WORD.match(text, position)
        assert word is not None  # matches the empty string
        end = word.end()
        position = _skip_blanks(text, end)
        actions = Actions()
        last = end
        if text.startswith("[", position):
            actions, last = _parse_actions(text, position)
            position = last
        services.append(Service(word[0], start, end, last, actions))
    return None


def _parse_actions(text: str, opening: int) -> tuple[Actions, int]:
    """Parse ``[STATUS=ACTION …]`` from its bracket on; return the actions and the index behind it."""
    actions = {"success": "return", "notfound": "continue", "unavail": "continue", "tryagain": "continue"}
    position = _skip_blanks(text, opening + 1)
    while True:
        criterion = _CRITERION.match(text, position)
        assert criterion is not None  # matches the empty string
        negated, status, equals, action = (
            criterion[1],
            criterion[2].lower(),
            criterion[3],
            criterion[4].lower(),
        )
        shown = text[opening : text.find("]", opening) + 1 or len(text)]
        if status not in STATUSES:
            raise _Malformed(f"“{criterion[1]}{criterion[2]}” is not a status in “{shown}”")
        if not equals:
            raise _Malformed(f"“=” is missing after “{criterion[2]}” in “{shown}”")
        if action not in ACTIONS:
            raise _Malformed(f"“{criterion[4]}” is not an action in “{shown}”")
        for name in STATUSES:
            if (name == status) != bool(negated):
                actions[name] = action
        position = criterion.end()
        if position >= len(text):
            raise _Malformed(f"“]” is missing after “{shown}”")
        if text[position] == "]":
            return Actions(**actions), position + 1


def _skip_blanks(text: str, position: int) -> int:
    run = _BLANK_RUN.match(text, position)
    assert run is not None  # matches the empty string
    return run.end()
