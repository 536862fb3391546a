"""The cluster key as it lies on this machine: where it is looked for, and how a new one gets there."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from avahi_gpu.errors import AvahiGpuError, ExitCode, MalformedInput
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


@dataclass(frozen=True)
class KeyFile:
    """A cluster key and where it was found."""

    path: str
    key: ClusterKey


def find_key(
    system: System, environ: Mapping[str, str], *, named: str | None = None, configured: str | None = None
) -> KeyFile | None:
    """Return the cluster key of this process, None where no place has one. Raises BadKeyFile.

    The first place that says something counts: ``named`` (a flag), ``AVAHI_GPU_KEY_FILE``, ``configured``
    (``key_file`` of config.toml), the user's own file, the machine's. A file in one of them that cannot be
    used is an error, never a reason to go on without a key.
    """
    for path in (named, environ.get(PATH_VARIABLE), configured):
        if path:
            return read_key(system, absolute(path))
    own = own_path(environ)
    if system.read(own).exists:  # a home folder that is not ours to enter holds no file of ours
        return read_key(system, own)
    if system.read(PATH).error != os.strerror(errno.ENOENT):
        return read_key(system, PATH)
    return None


def read_key(system: System, path: str) -> KeyFile:
    """Return the key of the file at ``path``. Raises BadKeyFile where it is none, or not secret."""
    state = system.read(path)
    if state.content is None:
        if state.error == os.strerror(errno.ENOENT):
            raise BadKeyFile(f"there is no cluster key at {path}", "make one with `avahi-gpu key new`")
        if state.error == os.strerror(errno.EACCES):
            raise BadKeyFile(
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
        return KeyFile(path, parse_key(state.content, path))
    except MalformedInput as error:
        raise BadKeyFile(error.message, error.hint) from None


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


def own_path(environ: Mapping[str, str]) -> str:
    """Return where the user's own key lies."""
    home = environ.get("HOME", "")
    return str((Path(home) if home.startswith("/") else Path("~").expanduser()) / USER_PATH)


def absolute(path: str) -> str:
    """Return a path that somebody has typed as the machine itself names it."""
    return os.path.normpath(Path(path).expanduser().absolute())


def default_path(system: System, environ: Mapping[str, str]) -> str:
    """Return where a new key goes: the machine's place for root, else the user's."""
    return PATH if system.is_root else own_path(environ)
