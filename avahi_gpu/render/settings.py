"""The settings of this machine for people and programs: each with its value and where it comes from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from avahi_gpu.files.settings import Settings
from avahi_gpu.render.text import printable

# what counts where nothing is said
UNSAID = {
    "interface": "the best that all nodes share",
    "interfaces": "all",
    "python": "the one that runs avahi-gpu",
    "peers": "none",
    "key_file": "~/.config/avahi-gpu/key, then /etc/avahi-gpu/key, if it is there",
}
VALUE_LIMIT = 4096  # characters: a path may be as long


def settings_data(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return ``{name: {"value", "source"}}``; null or an empty list leaves the choice to avahi-gpu."""
    values = {field.name: getattr(settings.config, field.name) for field in fields(settings.config)}
    return {
        name: {"value": list(v) if isinstance(v, tuple) else v, "source": settings.sources[name]}
        for name, v in values.items()
    }


def show_lines(settings: Settings, path: str, *, is_there: bool) -> list[str]:
    """Return a line for the file, and one for each setting: name, source, value."""
    rows = [
        (name, printable(entry["source"]), _value(name, entry["value"]))
        for name, entry in settings_data(settings).items()
    ]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name:{first}}  {source:{second}}  {value}" for name, source, value in rows]
    return [f"{path}{'' if is_there else ' is not there'}", *lines]


def _value(name: str, value: object) -> str:
    if value is None or value == []:
        return UNSAID[name]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return printable(text, VALUE_LIMIT)
