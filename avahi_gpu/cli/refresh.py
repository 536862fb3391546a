"""``avahi-gpu refresh``: what avahi-gpu-facts.service runs at boot. It asks nobody and changes one file."""

from __future__ import annotations

from avahi_gpu.changes import renewal
from avahi_gpu.changes.lock import locked
from avahi_gpu.cli.consent import demand_root
from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import AvahiGpuError, ChangeFailed
from avahi_gpu.host.present import want_service_file
from avahi_gpu.host.system import System
from avahi_gpu.model import SERVICE_FILE, FileState
from avahi_gpu.render.text import console
from avahi_gpu.result import Result

PATH = str(SERVICE_FILE)
AGAIN = "avahi-gpu setup tells what is wrong, and renders the file"


def command() -> None:
    """Render torch.service anew where this machine has changed since setup, for the unit at boot."""
    with guarded("refresh"):
        system = System()
        demand_root(system.is_root, "refresh")
        says = refresh(system)
        finish(Result("refresh", {}), as_json=False, show=lambda _: console().print(says, soft_wrap=True))


def refresh(system: System) -> str:
    """Write the service file as it is to be now, and return the sentence of what was done.

    Nothing is touched where it was edited by hand since setup wrote it, or where a fact cannot be read.
    Raises AvahiGpuError.
    """
    state = system.read(PATH)
    if not state.exists:
        return f"{PATH} is not there: avahi-gpu setup makes it"
    if not renewal.is_ours(state, renewal.find_records(system, state)):
        return f"{PATH} was edited since setup wrote it, or was not written by setup: it is kept"
    wanted = _want(system, state)
    if wanted == state.content:
        return f"{PATH} tells what this machine is"
    with locked(system):  # only now: a driver may have been waited for
        if system.read(PATH).content != state.content:
            return f"{PATH} was written meanwhile: it stays so"
        renewal.renew(system, state, wanted)
    return f"{PATH} was rendered anew: this machine has changed"


def _want(system: System, state: FileState) -> bytes:
    try:
        return want_service_file(system, state)
    except OSError as fault:
        says, hint = f"this machine cannot be read: {fault.strerror or fault}", AGAIN
    except AvahiGpuError as fault:
        says, hint = fault.message, fault.hint or AGAIN
    raise ChangeFailed(f"{PATH} stays as it is: {says}", hint)
