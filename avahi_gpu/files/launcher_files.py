"""What DeepSpeed and accelerate go by: a hostfile, and accelerate's default configuration. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

HOSTFILE = "/job/hostfile"  # DLTS_HOSTFILE of deepspeed/launcher/runner.py
ACCELERATE = ".cache/huggingface/accelerate/default_config"  # .yaml or .json, below the home folder
ENVIRONMENT = ".deepspeed_env"  # in the home folder; DS_ENV_FILE names another
MAX_HOSTS = 64  # of a hostfile that are looked up

# of a ds_config.json: people write these, and no line of DeepSpeed 0.19 reads them there
IDLE = ("master_addr", "master_port", "hostfile", "node_rank", "num_nodes", "nnodes", "world_size")
IDLE_MAX = 8

# as in parse_resource_filter's neighbour _parse_hostfile of DeepSpeed 0.19; older ones were as strict
_LINE = re.compile(r"(\S+)\s+slots=(\d+)\s*(#.*)?")
_PAIR = re.compile(r"""["']?(\w+)["']?\s*:(.*)""")  # of Hjson, on a line of its own
_SCALAR = re.compile(r"([A-Za-z_]\w*)\s*:\s*(.*)")


@dataclass(frozen=True)
class Hostfile:
    """The hosts of a hostfile in its order, and what DeepSpeed would end with."""

    hosts: tuple[tuple[int, str], ...]  # line, host
    complaints: tuple[str, ...] = ()


def parse_hostfile(text: str) -> Hostfile:
    """Read ``host slots=N`` lines as DeepSpeed does; user@host is a host that ssh takes and others do not."""
    hosts: list[tuple[int, str]] = []
    complaints = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        found = _LINE.fullmatch(words)
        if found is None:
            complaints.append(f"{number}: {words[:60]}: not `host slots=N`")
        elif any(host == found[1] for _, host in hosts):
            complaints.append(f"{number}: {found[1]} is there twice")
        elif len(hosts) < MAX_HOSTS:
            hosts.append((number, found[1]))
    if not hosts and not complaints:
        complaints.append("1: the file names no host")
    return Hostfile(tuple(hosts), tuple(complaints[:8]))


@dataclass(frozen=True)
class DeepSpeedConfig:
    """What of a ds_config.json concerns how machines meet: (key, value) pairs, which DeepSpeed reads nowhere.

    ``complaint``: what DeepSpeed would end with. ``plain`` False: it is no JSON, but may be Hjson, which
    DeepSpeed takes, too.
    """

    idle: tuple[tuple[str, str], ...]
    complaint: str = ""
    plain: bool = True


def parse_deepspeed_config(text: str) -> DeepSpeedConfig:
    """Look for the keys of IDLE anywhere but in the section of the autotuner, which starts jobs itself."""
    twice: list[str] = []

    def note_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return dict(pairs)

    try:
        tree = json.loads(text, object_pairs_hook=note_twice)
        found = _find_idle(tree, "") if isinstance(tree, dict) else []
    except (ValueError, RecursionError):  # newer Pythons read what is nested deeper than we may descend
        pairs = [m for m in (_PAIR.match(line.lstrip(" \t{")) for line in text.split("\n")) if m]
        idle = [(m[1], m[2].strip(" \t\r,}")[:60]) for m in pairs if m[1] in IDLE]
        return DeepSpeedConfig(tuple(idle[:IDLE_MAX]), plain=False)
    if not isinstance(tree, dict):
        return DeepSpeedConfig((), "it is no object: { … }")
    if twice:
        return DeepSpeedConfig((), f"{twice[0][:60]} is there twice")
    return DeepSpeedConfig(tuple(found[:IDLE_MAX]))


def _find_idle(tree: dict[str, Any], before: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        if name in IDLE:
            found.append((before + name, json.dumps(value)[:60]))
        elif isinstance(value, dict) and name != "autotuning":
            found += _find_idle(value, f"{before}{name}.")
    return found


def parse_flat(text: str) -> dict[str, str]:
    """Return the scalars at the top level of accelerate's YAML or JSON; nested ones are left out."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        flat = re.sub(r'^\s+"', '"', line).replace('"', "") if line.lstrip().startswith('"') else line
        match = _SCALAR.fullmatch(flat.split(" #")[0].rstrip().rstrip(","))
        if match is not None:
            found.setdefault(match[1], match[2].strip().strip("'\""))
    return found


def parse_variables(text: str) -> dict[str, str]:
    """Return the variables of a .deepspeed_env: NAME=VALUE a line, as DeepSpeed takes them."""
    pairs = (line.strip().partition("=") for line in text.split("\n"))
    return {name: value for name, equals, value in pairs if equals and re.fullmatch(r"[A-Za-z_]\w*", name)}


def number_of(values: dict[str, str], key: str) -> int | None:
    """Return a whole number, None where there is none."""
    text = values.get(key, "")
    return int(text) if re.fullmatch(r"\d{1,6}", text) else None
