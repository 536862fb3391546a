"""What torch elastic loads of us: in every process that uses it, and so as little as possible.

The entry point ``avahi`` of the group ``torchrun.handlers`` leads here. The backend itself is loaded when a
job asks for it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def registration() -> Callable[[Any], Any]:
    """Return the creator of the backend's handlers, as torch wants it."""
    return create


def create(parameters: Any) -> Any:
    """Return the rendezvous handler for torch's RendezvousParameters."""
    with uncollected():
        from avahi_gpu.rendezvous import handler
    return handler.create(parameters)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep garbage collection out of the block: an import makes objects that stay.

    torch's makes so many that looking through them again and again takes a seventh of its time, and a single
    look as long as the import of all of us.
    """
    ours = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # later collections need not look at them either
        if ours:
            gc.enable()
