"""Unit files of systemd: how ours is filled in, and what the section [Install] of any says. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from avahi_gpu.errors import AvahiGpuError

_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]{1,200}\.(?:service|socket|target|timer|path|mount|slice)")
# systemd takes no program whose path holds one of the first three, and leaves a $$ in it as it is
_UNFIT_FOR_PROGRAM = re.compile(r"[\"'\\$]")
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


@dataclass(frozen=True)
class Install:
    """What enabling a unit comes to (systemd.unit(5))."""

    wanted_by: tuple[str, ...] = ()
    required_by: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()


def render_boot_unit(template: str, argv: tuple[str, ...]) -> bytes:
    """Return the unit that runs ``argv``. Raises AvahiGpuError for a path that no unit file can name."""
    for word in argv:
        unfit = word is argv[0] and _UNFIT_FOR_PROGRAM.search(word)
        if not word or not word.isprintable() or unfit:
            raise AvahiGpuError(f"no unit can run {word!r}", "install avahi-gpu in a plainer place")
    condition = argv[0].replace("%", "%%")
    command = " ".join(map(_quote, argv))
    return template.replace("@CONDITION@", condition).replace("@COMMAND@", command).encode()


def _quote(word: str) -> str:
    """Return the word as systemd reads it back from a command line (systemd.service(5))."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def parse_boot_command(text: str) -> tuple[str, ...]:
    """Return the command line of our own unit, () where it has none, or one that has to be quoted."""
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words = tuple(found[1].split()) if found else ()
    return words if words and words[0].startswith("/") and all(map(_PLAIN.fullmatch, words)) else ()


def parse_install(text: str) -> Install:
    """Return the section [Install]; names that are none of a unit, or hold specifiers, are left out."""
    values: dict[str, list[str]] = {}
    section = ""
    for line in map(str.strip, text.replace("\\\n", " ").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == "Install" and "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            names = values.setdefault(key.strip(), [])
            if not value.strip():
                names.clear()  # an empty value begins the list anew
            names += [name for name in value.split() if _UNIT_NAME.fullmatch(name)]
    found = {key: tuple(dict.fromkeys(names)) for key, names in values.items()}
    return Install(
        found.get("WantedBy", ()), found.get("RequiredBy", ()), found.get("Also", ()), found.get("Alias", ())
    )
