"""The settings of this machine, and where each comes from: options, then variables, then config.toml.

Pure. ``host.configuration.read_settings`` is how every command gets them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from avahi_gpu.errors import AvahiGpuError, MalformedConfiguration
from avahi_gpu.files import txt
from avahi_gpu.files.config import (
    EXAMPLES,
    LISTS,
    NAMES,
    NUMBERS,
    Config,
    complain,
    demand_agreement,
    show_value,
)
from avahi_gpu.files.service_loader import parse
from avahi_gpu.model import DEFAULT_CLUSTER, NODE_SERVICE, SERVICE_FILE, NodeFacts

VARIABLES = {name: f"AVAHI_GPU_{name.upper()}" for name in NAMES}
DEFAULT = "default"

Said = Mapping[str, tuple[Any, str]]  # name of a setting -> (value, who says so)

_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_ALONE = ("interface", "interfaces")  # one setting in two forms: whoever says either decides both


@dataclass(frozen=True)
class Settings:
    """What counts.

    ``sources``: for each name ``flag --cluster``, ``environment variable AVAHI_GPU_PORT``,
    ``/etc/avahi-gpu/config.toml:3``, the service file's path for a cluster that it publishes, or ``default``.
    """

    config: Config
    sources: Mapping[str, str]

    def wrong(self, name: str, says: str, hint: str) -> MalformedConfiguration:
        """Return the error of a value that is well-formed and cannot be used all the same."""
        return MalformedConfiguration(self.sources[name], f"{name}: {says}", hint)


def settle(*layers: Said) -> Settings:
    """Return the settings that ``layers`` make, the first of them before the others."""
    said: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        taken = any(name in said for name in _ALONE)
        for name, entry in layer.items():
            if not (name in said or (taken and name in _ALONE)):
                said[name] = entry
    sources = {name: said[name][1] if name in said else DEFAULT for name in NAMES}
    return Settings(Config(**{name: value for name, (value, _) in said.items()}), sources)


def read_flags(flags: Mapping[str, tuple[str, Any]]) -> Said:
    """Return what options say: ``{"cluster": ("--cluster", None or a value)}``; their commands check them."""
    return {
        name: (value, f"flag {option}") for name, (option, value) in flags.items() if value not in (None, ())
    }


def read_variables(environ: Mapping[str, str]) -> Said:
    """Return what the variables say. Raises MalformedConfiguration with the name of one that is wrong.

    An empty one is as if not set, but for the key's: a job must not be open to all by a slip of a shell.
    """
    said: dict[str, tuple[Any, str]] = {}
    for name, variable in VARIABLES.items():
        text = environ.get(variable)
        if text is None or (not text and name != "key_file"):
            continue
        value = _value_of(name, text)
        # the path of a key may be relative, as in an option: a shell is where it is typed
        wanted = complain(name, f"/{value}" if name == "key_file" and value.strip() else value)
        if wanted:
            example = EXAMPLES[name].strip("[]").replace('"', "").replace(", ", ",")
            raise MalformedConfiguration(
                variable,
                f"the value of {name} is {show_value(value)}",
                f"give {wanted}, for example {variable}={example}, or unset it",
            )
        said[name] = (value, f"environment variable {variable}")
    demand_agreement(said)
    return said


def _value_of(name: str, text: str) -> Any:
    if name in LISTS:  # torchrun ends a value at a comma, so that + is known there
        return tuple(part.strip() for part in re.split("[,+]" if name == "peers" else ",", text))
    return int(text) if name in NUMBERS and _NUMBER.fullmatch(text) else text


def read_published(content: bytes | None) -> Said:
    """Return the cluster that a service file publishes, as a layer behind all others."""
    facts = published_facts(content)
    if facts is None or facts.cluster == DEFAULT_CLUSTER:
        return {}
    return {"cluster": (facts.cluster, str(SERVICE_FILE))}


def published_facts(content: bytes | None) -> NodeFacts | None:
    """Return what a service file tells of this node, None where it tells nothing: the doctor names that.

    The one of an image has no id yet, and tells of the cluster all the same.
    """
    try:
        group = parse(content or b"", str(SERVICE_FILE))
    except AvahiGpuError:
        return None
    return next((txt.read(s.txt) for s in group.services if s.type == NODE_SERVICE), None)
