"""What this process itself may use: with few open files every reader fails, and causes would be made up."""

from __future__ import annotations

import resource

from avahi_gpu.errors import Misuse

FILES_NEEDED = 64  # measured: with 24 a program that asks for a name fails, with 32 all goes well
FILES_WANTED = 1024  # what systems give by default; what we start (avahi-daemon) inherits it


def make_room() -> None:
    """Raise a low limit of open files as far as it may be. Raises Misuse where that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FILES_WANTED:
        return
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < FILES_NEEDED:
        raise Misuse(
            f"this process may open {wanted} files only, too few to look at anything",
            f"raise the limit (ulimit -n {FILES_WANTED}, or LimitNOFILE= of its unit) and ask again",
        )
