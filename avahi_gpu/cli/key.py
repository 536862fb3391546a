"""``avahi-gpu key``: the secret that the nodes of a cluster prove to each other."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import AvahiGpuError, Misuse
from avahi_gpu.files.cluster_key import USER_PATH
from avahi_gpu.render.text import printable
from avahi_gpu.result import Result

ACTIONS = ("new", "check")


def command(
    action: Annotated[
        str, typer.Argument(metavar="new|check", help="new makes a key; check shows the fingerprint of ours.")
    ],
    *,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where the key lies. [default: /etc/avahi-gpu/key for root, else ~/.config/avahi-gpu/key]",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="new: put it in the place of the old one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make the key of a cluster, or show its fingerprint, to compare.

    With a key, jobs take in only nodes that prove that they hold it. The key itself is never shown.
    """
    with guarded("key", as_json=as_json):
        if action not in ACTIONS:
            raise Misuse("there is no such action", "use `avahi-gpu key new` or `avahi-gpu key check`")
        if force and action != "new":
            raise Misuse("--force goes with `key new` alone", "leave it out")
        result, text = make(file, force=force) if action == "new" else check(file)
        finish(result, as_json=as_json, show=lambda _: typer.echo(text, nl=False))


def make(file: str | None, *, force: bool) -> tuple[Result, str]:
    """Make a key; return the result and the words for people."""
    from avahi_gpu.host.key_file import absolute, default_path, make_key, own_path
    from avahi_gpu.host.system import System

    system = System()
    path = absolute(file) if file is not None else default_path(system, os.environ)
    if not force and system.exists(path):
        raise AvahiGpuError(
            f"{path} is there already",
            "it stays as it is; `avahi-gpu key new --force` makes another, which every node then needs",
        )
    made = make_key(system, path, force=force)
    bring = bring_roots(path) if system.is_root else bring_own(path, own=path == own_path(os.environ))
    steps = "\n".join(f"    {line}" for line in bring)
    text = f"""{printable(path, 4096)} holds a new cluster key, fingerprint {made.key.fingerprint}.
Every node needs the same one. Bring it to each OTHER:
{steps}
`avahi-gpu key check` shows the same fingerprint there afterwards.
Jobs that start from now on take in only nodes that hold it.
"""
    return Result("key", {"path": path, "fingerprint": made.key.fingerprint, "created": True}), text


def bring_own(path: str, *, own: bool) -> list[str]:
    """Return the lines by which a user brings a key of theirs to the same user elsewhere.

    ``own``: it lies at the user's own place, which the home folder there has as well.
    """
    here, there = (f"~/{USER_PATH}", USER_PATH) if own else (shlex.quote(path), shlex.quote(path))
    return [f"ssh OTHER.local install -D -m 600 /dev/stdin {shlex.quote(there)} < {here}"]


def bring_roots(path: str) -> list[str]:
    """Return the lines by which a user who may use sudo brings root's key: root's ssh is mostly shut."""
    quoted, copy = shlex.quote(path), "avahi-gpu.key"
    place = f"sudo install -D -m 600 {copy} {quoted} && rm {copy}"
    return [
        f"sudo cat {quoted} | ssh OTHER.local install -m 600 /dev/stdin {copy}",
        f"ssh -t OTHER.local {shlex.quote(place)}",  # -t: sudo there asks for a password
    ]


def check(file: str | None) -> tuple[Result, str]:
    """Look at the key that jobs of this machine would use."""
    from avahi_gpu.host.configuration import read_settings
    from avahi_gpu.host.key_file import find_key
    from avahi_gpu.host.system import System

    system = System()
    settings = read_settings(system, os.environ, {"key_file": ("--file", file)})
    found = find_key(system, os.environ, settings.config.key_file)
    if found is None:
        raise AvahiGpuError(
            "this machine has no cluster key: whoever is on the LAN may join its jobs",
            "make one with `avahi-gpu key new`, or bring the one of another node here",
        )
    text = f"{printable(found.path, 4096)}: fingerprint {found.key.fingerprint}\n"
    return Result("key", {"path": found.path, "fingerprint": found.key.fingerprint, "created": False}), text
