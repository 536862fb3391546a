"""Who may own a name on the D-Bus system bus, by dbus-daemon's rules (dbus-daemon(1), bus/policy.c). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.parsers import expat

MAX_RULES = 10_000  # of all files; a desktop has a thousand


@dataclass(frozen=True)
class Rule:
    """One ``<allow own=…>`` or ``<deny own=…>``. ``who``: default, mandatory, user:NAME or group:NAME."""

    allow: bool
    name: str  # '' where it is a prefix
    prefix: str
    who: str
    file: str
    line: int


def parse(content: bytes, file: str) -> list[Rule] | None:
    """Return the rules about owning, in their order; None for a file that is not XML: the bus ignores it."""
    rules: list[Rule] = []
    who = ""
    reader = expat.ParserCreate()

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal who
        if element == "policy":
            who = attributes.get("context", "")
            for kind in ("user", "group"):
                if kind in attributes:
                    who = f"{kind}:{attributes[kind]}"
        elif element in ("allow", "deny") and len(rules) < MAX_RULES:
            name, prefix = attributes.get("own", ""), attributes.get("own_prefix", "")
            if name or prefix:
                rules.append(Rule(element == "allow", name, prefix, who, file, reader.CurrentLineNumber))

    reader.StartElementHandler = start
    try:
        reader.Parse(content, True)
    except expat.ExpatError:
        return None
    return rules


def who_refuses(rules: Sequence[Rule], name: str, user: str, groups: Sequence[str] = ()) -> str | None:
    """Return where ``user`` is refused ``name`` (``file:line``, or '' where nobody allows it); None: allowed.

    The last rule that applies wins: those of the default context, then of groups, of the user, mandatory.
    """
    layers = ("default", *(f"group:{g}" for g in groups), f"user:{user}", "mandatory")
    allowed, where = False, ""
    for layer in layers:
        for rule in rules:
            if rule.who == layer and _applies(rule, name):
                allowed, where = rule.allow, f"{rule.file}:{rule.line}"
    return None if allowed else where


def _applies(rule: Rule, name: str) -> bool:
    if rule.prefix:
        return name == rule.prefix or name.startswith(f"{rule.prefix}.")
    return rule.name in ("*", name)
