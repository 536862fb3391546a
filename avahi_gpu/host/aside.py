"""Do blocking work beside the event loop, in a thread that nobody has to wait for.

asyncio's own pool has six threads on a machine of two cores, and joins them at the end: one read that hangs
(a dead NFS server, a stuck driver) would hold up the others and the exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Begin the work at once; await it for what it returns or raises. When cancelled, it is left behind.

    A future and no coroutine: what has come is not lost where a busy loop sees it only after a deadline.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(give: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            give(value)

    def run() -> None:
        give: Callable[[Any], None] = answer.set_result
        value: Any
        try:
            value = work(*args, **kwargs)
        except BaseException as fault:  # handed to whoever waits
            give, value = answer.set_exception, fault
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, give, value)

    # what nobody waits for any more is nobody's fault
    answer.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception() and None)
    try:
        threading.Thread(target=run, name=f"aside {getattr(work, '__name__', '')}", daemon=True).start()
    except RuntimeError as fault:  # a limit of processes, as of a container (docker run --pids-limit)
        answer.set_exception(OSError(errno.EAGAIN, f"{fault}: a limit of processes or memory"))
    return answer
