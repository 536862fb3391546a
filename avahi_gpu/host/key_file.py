"""The cluster key as it lies on this machine: where it is looked for, and how a new one gets there."""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from avahi_gpu.errors import AvahiGpuError, ExitCode, MalformedInput, Misuse
from avahi_gpu.files.cluster_key import (
    PATH,
    PATH_VARIABLE,
    SECRET_BYTES,
    USER_PATH,
    ClusterKey,
    encode_key,
    parse_key,
)
from avahi_gpu.host.system import System

KEY_MODE = 0o600
FOLDER_MODE, OWN_FOLDER_MODE = 0o755, 0o700  # /etc/avahi-gpu holds more than the key


class BadKeyFile(AvahiGpuError):
    """The key file that is to be used cannot be. Going on without it would open the job to everybody."""

    code = "bad-key-file"
    exit_code = ExitCode.USAGE


class UnreadableKey(BadKeyFile):
    """The key is not for this user to read; for root it may be fine."""


@dataclass(frozen=True)
class KeyFile:
    """A cluster key, where it was found, and whose file it is."""

    path: str
    key: ClusterKey
    uid: int | None = None


def find_key(system: System, environ: Mapping[str, str], named: str | None = None) -> KeyFile | None:
    """Return the cluster key of this process, None where no place has one. Raises BadKeyFile or Misuse.

    The first place that says something counts: ``named`` (``key_file`` of the settings), the user's own file,
    the machine's. A file in one of them that cannot be used is an error, no reason to go on without a key.
    """
    if named is not None:
        return read_key(system, absolute(named))
    for place in (own_path(environ), PATH):
        if place is not None and not system.is_absent(place):
            return read_key(system, place)
    return None


def read_key(system: System, path: str) -> KeyFile:
    """Return the key of the file at ``path``. Raises BadKeyFile where it is none, or not secret."""
    state = system.read(path)
    if state.content is None:
        if state.error == os.strerror(errno.ENOENT) and not system.is_absent(path):
            raise BadKeyFile(
                f"the cluster key {path} is behind a link that leads nowhere",
                f"`namei -l {path}` shows which; mend the link, or remove it to do without that key",
            )
        if state.error == os.strerror(errno.ENOENT):
            raise BadKeyFile(
                f"there is no cluster key at {path}",
                f"bring it from another node, or make one: `avahi-gpu key new --file {shlex.quote(path)}`",
            )
        if state.error == os.strerror(errno.EACCES) and path.endswith("/" + USER_PATH):
            raise UnreadableKey(
                f"whether there is a cluster key at {path} cannot be told: permission denied",
                f"`namei -l {path}` shows whose the folders are; make them yours, or name another key",
            )
        if state.error == os.strerror(errno.EACCES):
            raise UnreadableKey(
                f"the cluster key {path} cannot be read: permission denied",
                f"take a copy of your own: `sudo cat {path} | install -D -m 600 /dev/stdin ~/{USER_PATH}`",
            )
        raise BadKeyFile(f"the cluster key {path} cannot be read: {state.error}", "look at `ls -l` of it")
    if state.mode is not None and state.mode & 0o077:
        raise BadKeyFile(
            f"the cluster key {path} is open to other users (mode {state.mode:04o})",
            f"`chmod 600 {path}`; if somebody may have read it, `avahi-gpu key new --force` makes another",
        )
    try:
        return KeyFile(path, parse_key(state.content, path), state.uid)
    except MalformedInput as error:
        raise BadKeyFile(error.message, error.hint) from None


def name_owner(found: KeyFile) -> str:
    """Return the account that the key belongs to, '' where that is root. Raises BadKeyFile for nobody's."""
    if not found.uid:
        return ""
    try:
        return pwd.getpwuid(found.uid).pw_name
    except KeyError:
        raise BadKeyFile(
            f"the cluster key {found.path} belongs to user {found.uid}, whom this machine does not know",
            f"whoever gets that number could read it: `chown root {found.path}`",
        ) from None


def make_key(system: System, path: str, *, force: bool) -> KeyFile:
    """Put a new random key at ``path``. Raises ChangeFailed, also where one is there and ``force`` is not."""
    key = ClusterKey(secrets.token_bytes(SECRET_BYTES))
    folder = Path(path).parent
    if not system.is_folder(folder):
        system.make_folder(folder, FOLDER_MODE if path.startswith("/etc/") else OWN_FOLDER_MODE)
    if force:
        system.write(path, encode_key(key), KEY_MODE)
    else:
        system.create(path, encode_key(key), KEY_MODE)
    return KeyFile(path, key)


def own_path(environ: Mapping[str, str]) -> str | None:
    """Return where the user's own key lies, None for a user without a home folder."""
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a container that was started with just any number for its user
            return None
    return f"{home.rstrip('/')}/{USER_PATH}" if home.startswith("/") else None


def absolute(path: str) -> str:
    """Return a path that somebody has typed as the machine itself names it. Raises Misuse."""
    if not path.strip():
        raise Misuse(
            f"the path of the cluster key is empty: an option, or {PATH_VARIABLE}, says nothing",
            "is a variable of the shell unset? give the path, or leave it out",
        )
    try:
        return os.path.normpath(Path(path).expanduser().absolute())
    except RuntimeError:
        raise Misuse(f"{path} begins with a home folder that there is not", "give the full path") from None
    except OSError as fault:  # os.getcwd: the current folder has been removed
        raise Misuse(
            f"the current folder cannot be told: {fault.strerror}", "cd into another, or give the full path"
        ) from None


def default_path(system: System, environ: Mapping[str, str]) -> str:
    """Return where a new key goes: the machine's place for root, else the user's. Raises Misuse."""
    place = PATH if system.is_root else own_path(environ)
    if place is None:
        raise Misuse("this user has no home folder for a key", "set HOME, or say where it goes: --file PATH")
    return place
