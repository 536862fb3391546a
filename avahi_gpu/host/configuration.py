"""Our own configuration as it lies on this machine."""

from __future__ import annotations

import errno
import os

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.config import PATH, Config, parse
from avahi_gpu.host.system import System


def read_config(system: System) -> Config:
    """Return the configuration, the defaults where there is no file. Raises MalformedConfiguration.

    A file that cannot be read is not one that is missing: its cluster would silently be another.
    """
    state = system.read(PATH)
    if state.content is not None:
        return parse(state.content)
    if state.error and state.error != os.strerror(errno.ENOENT):
        raise MalformedConfiguration(
            PATH, f"cannot be read: {state.error}", "make it a file that all may read"
        )
    return Config()
