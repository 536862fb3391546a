"""What a shell wants to complete: from the words of a line to the kind of word that is looked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODES, NODE_LIST, FINDINGS, JOBS = "@nodes", "@node-list", "@findings", "@jobs"
INTERFACES, FILES, FOLDERS, COMMANDS = "@interfaces", "@files", "@folders", "@commands"
KINDS = (NODES, NODE_LIST, FINDINGS, JOBS, INTERFACES, FILES, FOLDERS, COMMANDS)
SCRIPT = "launch"  # behind its first argument all words are the script's own

# what reaches a shell: nothing that it could take for more than letters, in any of its quotes
SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]{1,255}")
# a host name (RFC 1123), by its first label or with a domain; numbers alone would be an address
NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-)){0,8}")

# command -> (options: name -> (what its value may be, None where it takes none; help; may be repeated),
#             arguments: what each may be; whether the last may be repeated)
Table = Mapping[str, tuple[Mapping[str, tuple[str | None, str, bool]], Sequence[str], bool]]


@dataclass(frozen=True)
class Wish:
    """What is looked for. ``start``: what the word begins with; ``offers``: words, and kinds of words.

    ``prefix``: what stands before it within the same word for the shell: ``--only=``, ``gpu-node-1,``.
    ``options``: those that may stand here, each with its help.
    """

    start: str
    offers: tuple[str, ...] = ()
    prefix: str = ""
    options: tuple[tuple[str, str], ...] = ()


def join_parted(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the words of bash, which parts ``--only=AG1`` at the sign; and whether the last was parted."""
    joined: list[str] = []
    parted = False
    for word in words:
        parted = False
        if joined and joined[-1].startswith("--") and (word == "=" or joined[-1].endswith("=")):
            joined[-1] += word
            parted = True
        else:
            joined.append(word)
    return joined, parted


def read_wish(words: Sequence[str], table: Table) -> Wish:
    """Return what is to be completed: the last of ``words``, which follow the program's name."""
    *before, last = words or [""]
    last = last[1:] if last[:1] in ("'", '"') else last  # of bash, which passes them as typed
    own = table[""][0]  # the program's options, some with a value
    places = (
        n for n, word in enumerate(before)
        if not word.startswith("-") and own.get(before[n - 1] if n else "", (None,))[0] is None
    )  # fmt: skip
    command = next(places, None)
    if command is None:
        return _of_command("", before, last, table)
    if before[command] == "help":
        return Wish(last, (COMMANDS,)) if command == len(before) - 1 else Wish(last)
    if before[command] not in table:
        return Wish(last)
    return _of_command(before[command], before[command + 1 :], last, table)


def _of_command(command: str, before: Sequence[str], last: str, table: Table) -> Wish:
    options, arguments, many = table[command]
    given = 0  # arguments
    value_of = ""  # an option whose value is the next word
    plain = False  # behind --
    for word in before:
        if value_of:
            value_of = ""
        elif word == "--" and not plain:
            plain = True
        elif word.startswith("-") and not plain:
            value_of = word if options.get(word, (None,))[0] is not None else ""
        else:
            given += 1
    if command == SCRIPT and (plain or given):
        return Wish(last, (FILES,))
    if value_of:
        return _value(last, str(options[value_of][0]))
    if last.startswith("-") and not plain:
        name, sign, value = last.partition("=")
        if sign:
            offers = options.get(name, (None,))[0]
            return _value(value, offers, f"{name}=") if offers is not None else Wish(last)
        return _options(command, before, last, table)
    if given < len(arguments) or (many and arguments):
        return _value(last, arguments[min(given, len(arguments) - 1)])
    if not command:
        return Wish(last, (COMMANDS,))
    return _options(command, before, last, table) if not last else Wish(last)


def _value(start: str, offers: str, prefix: str = "") -> Wish:
    if offers == NODE_LIST:
        known, comma, rest = start.rpartition(",")
        return Wish(rest, (NODE_LIST,), f"{prefix}{known}{comma}")
    return Wish(start, tuple(offers.split()), prefix)


def _options(command: str, before: Sequence[str], last: str, table: Table) -> Wish:
    options = table[command][0]
    used = {word.partition("=")[0] for word in before}
    told = tuple((name, says) for name, (_, says, many) in options.items() if many or name not in used)
    # -y is found by whoever types -, and in the way of everybody else
    return Wish(last, options=tuple(o for o in told if last == "-" or o[0].startswith("--")))


def choose(wish: Wish, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the words, each with its help, that begin as the wish does, whole as the shell wants them.

    ``found``: words and what each is. What a shell could take for anything but letters is left out.
    """
    taken = set(wish.prefix.rpartition("=")[2].split(","))
    fit = [
        (f"{wish.prefix}{word}", " ".join(says.split()))
        for word, says in dict.fromkeys((*found, *wish.options))
        if word.startswith(wish.start) and SAFE.fullmatch(word) and word not in taken
    ]
    return fit if not wish.prefix or SAFE.fullmatch(wish.prefix) else []
