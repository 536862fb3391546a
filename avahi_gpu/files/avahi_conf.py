"""avahi-daemon.conf, read as avahi-daemon 0.8 reads it (ini-file-parser.c and load_config_file in main.c).

It is strict where others are lenient: an unknown key or section, ``;`` before a comment, a blank before ``=``
and a line of more than 255 bytes each keep the daemon from starting. What the settings do to discovery is
judged in avahi_harms.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.domain_name import labels_of

PATH = "/etc/avahi/avahi-daemon.conf"
SIZE_MAX = 64 * 1024  # bytes; a real one has two thousand, and judging megabytes would take half a minute
LINE_LIMIT = 255  # bytes; 0.8 reads what is longer as a further line

_BOOLEANS = "bool"
_NUMBERS = "number"
_WORDS = "text"

# every key that 0.8 takes, by section; rlimits are read by atoi, which takes anything
KEYS: Mapping[str, Mapping[str, str]] = {
    "server": {
        **dict.fromkeys(
            (
                *("use-ipv4", "use-ipv6", "check-response-ttl", "allow-point-to-point", "use-iff-running"),
                *("disallow-other-stacks", "host-name-from-machine-id", "enable-dbus"),
            ),
            _BOOLEANS,
        ),
        **dict.fromkeys(
            (
                *("ratelimit-interval-usec", "ratelimit-burst", "cache-entries-max", "clients-max"),
                *("objects-per-client-max", "entries-per-entry-group-max"),
            ),
            _NUMBERS,
        ),
        **dict.fromkeys(
            ("host-name", "domain-name", "browse-domains", "allow-interfaces", "deny-interfaces"), _WORDS
        ),
    },
    "publish": {
        **dict.fromkeys(
            (
                *("publish-addresses", "publish-hinfo", "publish-workstation", "publish-domain"),
                *("publish-resolv-conf-dns-servers", "disable-publishing", "disable-user-service-publishing"),
                *("add-service-cookie", "publish-a-on-ipv6", "publish-aaaa-on-ipv4"),
            ),
            _BOOLEANS,
        ),
        "publish-dns-servers": _WORDS,
    },
    "wide-area": {"enable-wide-area": _BOOLEANS},
    "reflector": {"enable-reflector": _BOOLEANS, "reflect-ipv": _BOOLEANS, "reflect-filters": _WORDS},
    "rlimits": dict.fromkeys(
        (
            *("rlimit-as", "rlimit-core", "rlimit-data", "rlimit-fsize", "rlimit-nofile", "rlimit-stack"),
            "rlimit-nproc",
        ),
        _WORDS,
    ),
}

_STRTOUL = re.compile(r"[ \t\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)?", re.ASCII)
_ATOI = re.compile(r"[ \t\v\f\r]*([+-]?[0-9]{1,32})", re.ASCII)


@dataclass(frozen=True)
class Setting:
    """One value that the daemon obeys, as it is written, and its line."""

    value: str
    line: int


@dataclass(frozen=True)
class AvahiConf:
    """The settings by (section, key), both in small letters. Of duplicates the first in the file is kept."""

    settings: Mapping[tuple[str, str], Setting] = field(default_factory=dict)

    def find(self, section: str, key: str) -> Setting | None:
        return self.settings.get((section, key))

    def says_yes(self, section: str, key: str, *, default: bool) -> bool:
        """Return a boolean: yes is what starts with y, t or 1; everything else is no, ``on`` included."""
        setting = self.find(section, key)
        return default if setting is None else setting.value[:1] in tuple("yYtT1")

    def number(self, section: str, key: str) -> int | None:
        """Return a number, None where the key is not set."""
        setting = self.find(section, key)
        if setting is None:
            return None
        return _atoi(setting.value) if section == "rlimits" else _read_number(key, setting.value)

    def names(self, section: str, key: str) -> tuple[str, ...] | None:
        """Return a comma-separated list, blanks around each item gone; None where the key is not set."""
        setting = self.find(section, key)
        return None if setting is None else tuple(name.strip(" \t") for name in setting.value.split(","))


def parse(text: str, where: str = PATH) -> AvahiConf:
    """Return the settings. Raises MalformedInput (``where:line``) where avahi-daemon would not start."""
    settings: dict[tuple[str, str], Setting] = {}
    section: str | None = None
    for number, line in _split_lines(text):
        here = f"{where}:{number}"
        start = line.lstrip(" \t")
        if not start or start[0] in "#%":
            continue
        if start[0] == "[":
            name, closed, _ = start[1:].partition("]")
            if not closed:
                raise MalformedInput(here, f"the section header “{start}” has no “]”", "close it")
            section = name.lower()
            if section not in KEYS:
                hint = f"sections are {', '.join(KEYS)}"
                raise MalformedInput(here, f"[{name}] is no section of avahi-daemon", hint)
            continue
        key, equals, value = start.partition("=")
        if not equals:
            hint = "comments start with “#”" if start[0] in ";/" else "write key=value"
            raise MalformedInput(here, f"“{start}” is no assignment", hint)
        if section is None:
            says = f"“{key}” stands before any section"
            raise MalformedInput(here, says, "write the section above it, like [server]")
        _check(section, key, value, here)
        settings.setdefault((section, key.lower()), Setting(value, number))
    return AvahiConf(settings)


def _split_lines(text: str) -> list[tuple[int, str]]:
    """Return (line number, line) as fgets with a buffer of 256 bytes gives them to the parser."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        raw = line.encode("utf-8", "surrogateescape")
        for start in range(0, max(len(raw), 1), LINE_LIMIT):
            piece = raw[start : start + LINE_LIMIT].partition(b"\0")[0].partition(b"\r")[0]
            lines.append((number, piece.decode("utf-8", "surrogateescape")))
    return lines


def _check(section: str, key: str, value: str, here: str) -> None:
    kind = KEYS[section].get(key.lower())
    if kind is None:
        stripped = key.strip().lower()
        home = next((name for name, keys in KEYS.items() if stripped in keys), None)
        if stripped != key.lower() and stripped in KEYS[section]:
            hint = "write no blank before “=”"
        elif home is not None:
            hint = f"it belongs under [{home}]"
        else:
            hint = "correct or remove the line"
        raise MalformedInput(here, f"“{key}” is no key of [{section}]", hint)
    if accepts(section, key, value):
        return
    if kind == _NUMBERS:
        raise MalformedInput(here, f"the value of {key} is “{value}”", "write a number and nothing behind it")
    raise MalformedInput(here, f"{key} holds no list of domains: “{value}”", "part them by commas")


def accepts(section: str, key: str, value: str) -> bool:
    """Whether the daemon starts with this value of a key that it knows."""
    if KEYS[section][key.lower()] == _NUMBERS:
        return _read_number(key, value) is not None
    if key.lower() == "browse-domains":
        return all(labels_of(domain.strip(" \t")) is not None for domain in value.split(","))
    return True


def _read_number(key: str, text: str) -> int | None:
    """Return a number as the daemon takes it: unsigned of 32 bits, but a time is signed of 64."""
    if key.lower() != "ratelimit-interval-usec":
        return _strtoul(text)
    value = _strtoul(text, 64)
    return value - 2**64 if value is not None and value >= 2**63 else value


def _strtoul(text: str, bits: int = 32) -> int | None:
    """Return what strtoul with base 0 makes of ``text``, None where the daemon refuses it; '' is 0."""
    if text == "":
        return 0
    match = _STRTOUL.match(text)
    if match is None or match.end() != len(text) or match[2] is None:
        return None
    digits = match[2].lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    if len(digits) > 64:
        return None  # far beyond any range
    value = int(digits, base)
    if match[1] == "-" and value < 2**64:
        value = -value % 2**64  # it wraps around, mostly to what does not fit
    return value if value < 2**bits else None


def _atoi(text: str) -> int:
    match = _ATOI.match(text)
    return 0 if match is None else max(-(2**31), min(2**31 - 1, int(match[1])))
