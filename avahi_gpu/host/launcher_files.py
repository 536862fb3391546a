"""DeepSpeed's hostfile and accelerate's configuration as they lie here, and the cluster key of launch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files import launcher_files
from avahi_gpu.files.launcher_files import ACCELERATE, ENVIRONMENT, HOSTFILE
from avahi_gpu.files.settings import settle
from avahi_gpu.host import torch_surroundings
from avahi_gpu.host.aside import aside
from avahi_gpu.host.configuration import read_said
from avahi_gpu.host.key_file import find_key
from avahi_gpu.model import ClusterKey, Endpoint, LauncherFile

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MAX_BYTES = 1 << 16  # a hostfile of a thousand machines is shorter
SSH_PORT = 22


async def read_hostfile(ground: Ground) -> LauncherFile:
    """Return DeepSpeed's default hostfile, or the one that DLTS_HOSTFILE names, with its hosts looked up."""
    path = ground.environment.get("DLTS_HOSTFILE") or HOSTFILE
    found = await aside(_read, ground, path)
    hosts = launcher_files.parse_hostfile(found.text).hosts if found.path else ()
    # user@host is one for ssh; what is looked up is the host
    asked = [Endpoint(f"{path}:{n}", host.rpartition("@")[2], SSH_PORT) for n, host in hosts]
    return LauncherFile(found.path, found.text, await _find(ground, asked), found.error)


async def read_accelerate(ground: Ground) -> LauncherFile:
    """Return accelerate's configuration: the named one, else the user's default."""
    home = ground.environment.get("HOME", "")
    cache = ground.environment.get("HF_HOME")
    stem = f"{cache}/accelerate/default_config" if cache else f"{home}/{ACCELERATE}"
    named = ground.environment.get("ACCELERATE_CONFIG_FILE")
    for path in [named] if named else [f"{stem}.yaml", f"{stem}.json"]:
        found = await aside(_read, ground, path)
        if not found.path:
            continue
        values = launcher_files.parse_flat(found.text)
        host = values.get("main_process_ip", "")
        asked = [] if host in ("", "null") else [Endpoint(path, host, _port(values))]
        return LauncherFile(path, found.text, await _find(ground, asked), found.error)
    return LauncherFile("", "")


async def read_deepspeed_env(ground: Ground) -> LauncherFile:
    """Return the file of variables that DeepSpeed gives to the workers of all nodes."""
    home = ground.environment.get("HOME", "")
    return await aside(_read, ground, ground.environment.get("DS_ENV_FILE") or f"{home}/{ENVIRONMENT}")


async def read_deepspeed_config(ground: Ground) -> LauncherFile:
    """Return DeepSpeed's configuration that the user has named; one that is not there has an error."""
    path = ground.deepspeed_config
    if not path:
        return LauncherFile("", "")
    found = await aside(_read, ground, path)
    return found if found.path else LauncherFile(path, "", error="there is no such file")


async def read_key(ground: Ground) -> ClusterKey:
    """Return the cluster key that launch would take, by the same rules."""
    return await aside(_read_key, ground)


def _read_key(ground: Ground) -> ClusterKey:
    try:
        settings = settle(*read_said(ground.system, ground.environment))
        found = find_key(ground.system, ground.environment, settings.config.key_file)
    except AvahiGpuError as fault:
        return ClusterKey(error=fault.message, hint=fault.hint)
    return ClusterKey(found.path if found is not None else "")


def _read(ground: Ground, path: str) -> LauncherFile:
    if not path.startswith("/"):
        return LauncherFile("", "")
    state = ground.system.read(path, MAX_BYTES)
    if not state.exists:
        return LauncherFile("", "")
    return LauncherFile(path, (state.content or b"").decode("utf-8", "replace"), (), state.error)


def _port(values: dict[str, str]) -> int | None:
    return launcher_files.number_of(values, "main_process_port")


async def _find(ground: Ground, endpoints: list[Endpoint]) -> tuple[Endpoint, ...]:
    return tuple(await asyncio.gather(*(torch_surroundings.find(ground, e) for e in endpoints)))
