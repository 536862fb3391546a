"""1xx: the files that every look-up of a name reads."""

from __future__ import annotations

from avahi_gpu.checks.outcome import Outcome, error, ok
from avahi_gpu.checks.registry import check
from avahi_gpu.model import NOT_A_FILE, Change, Facts, FileState, Fix

LOOPS = "Too many levels of symbolic links"  # what strerror(3) says of ELOOP
READABLE_BY_ALL = 0o444  # what distributions install them with is 0644


@check(
    "AG100",
    slug="name-files",
    area="names",
    says="the files that look-ups of names read are files that answer",
    setup=True,
    image=True,
)
def name_files(facts: Facts) -> Outcome:
    """glibc opens them at each look-up: at a pipe, or on a disk that hangs, each program waits for ever."""
    wrong = [f for f in (facts.nsswitch, facts.etc_hosts, facts.resolv_conf) if _is_none(f)]
    if not wrong:
        return ok()
    one = wrong[0]
    if one.hangs:
        return error(
            f"{one.path} lies on a file system that hangs, and with it every look-up of a name",
            [f"{f.path}: {f.error}" for f in wrong],
            hint="see what is mounted there (findmnt), and unmount it: umount -f -l",
        )
    if one.error == LOOPS:
        return error(
            f"{one.path} is a link that leads back to itself: look-ups of names go without it",
            [f"{f.path}: {f.error}" for f in wrong],
            hint=f"see where it leads (readlink -f {one.path}), remove the link and write the file anew",
        )
    return error(
        f"{one.path} is {NOT_A_FILE}: look-ups of names wait for it, or go without it",
        [f"{f.path}: {f.error}" for f in wrong],
        hint=f"see what it is (ls -ld {one.path}), move it away and write the file anew; in a container it "
        "may be a folder, where the file that was to be mounted there is missing",
    )


@check(
    "AG117",
    slug="name-files-for-all",
    area="names",
    says="every user may read the files that look-ups of names read",
    needs=("AG100",),
    setup=True,
    image=True,
)
def name_files_for_all(facts: Facts) -> Outcome:
    """Root sees no fault: other users' programs go without the file, as if nobody had ever written it."""
    files = (facts.nsswitch, facts.etc_hosts, facts.resolv_conf, facts.mdns_allow)
    closed = [f for f in files if f.mode is not None and f.mode & READABLE_BY_ALL != READABLE_BY_ALL]
    if not closed:
        return ok()
    changes = tuple(_open(f) for f in closed if f.content is not None)
    names = " and ".join(f.path for f in closed)
    return error(
        f"only some users may read {names}: the programs of all others look names up without",
        [f"{f.path}: mode {f.mode:04o}, wanted 0644" for f in closed],
        fix=Fix(f"let every user read {names}", changes) if changes else None,
        hint="" if changes else f"run as root: chmod 644 {' '.join(f.path for f in closed)}",
    )


def _open(state: FileState) -> Change:
    mode = (state.mode or 0) | READABLE_BY_ALL
    title = f"let every user read {state.path}"
    return Change("file", title, state.path, state.content, mode, before=state.content)


def _is_none(state: FileState) -> bool:
    return state.hangs or state.error in (NOT_A_FILE, LOOPS)
