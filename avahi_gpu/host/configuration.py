"""Our own settings as they are on this machine: the one way to them for every command."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.config import PATH, parse_said
from avahi_gpu.files.settings import Said, Settings, read_flags, read_published, read_variables, settle
from avahi_gpu.host.system import System
from avahi_gpu.model import SERVICE_FILE


def read_settings(
    system: System, environ: Mapping[str, str], flags: Mapping[str, tuple[str, Any]] | None = None
) -> Settings:
    """Return the settings: ``flags`` before ``environ`` before config.toml; see ``files.settings``.

    The cluster, where none of them says it, is the one that setup has published. ``flags``: name of a setting
    -> (option, value), the value None where it is not given. Raises MalformedConfiguration.
    """
    published = read_published(system.read(SERVICE_FILE).content)
    return settle(*read_said(system, environ, flags), published)


def read_said(
    system: System, environ: Mapping[str, str], flags: Mapping[str, tuple[str, Any]] | None = None
) -> tuple[Said, ...]:
    """Return what options, variables and config.toml say, in this order. Raises MalformedConfiguration."""
    return read_flags(flags or {}), read_variables(environ), read_file(system)


def read_file(system: System) -> Said:
    """Return what config.toml says, nothing where it is not there. Raises MalformedConfiguration.

    A file that cannot be read is not one that is missing: its cluster would silently be another.
    """
    state = system.read(PATH)
    if state.content is not None:
        return parse_said(state.content)
    if state.error and state.error != os.strerror(errno.ENOENT):
        raise MalformedConfiguration(
            PATH, f"cannot be read: {state.error}", "make it a file that all may read"
        )
    return {}
