"""1xx: the files that every look-up of a name reads."""

from __future__ import annotations

from avahi_gpu.checks.outcome import Outcome, error, ok
from avahi_gpu.checks.registry import check
from avahi_gpu.model import NOT_A_FILE, Facts, FileState


@check(
    "AG100",
    slug="name-files",
    area="names",
    says="the files that look-ups of names read are files that answer",
    setup=True,
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
    return error(
        f"{one.path} is {NOT_A_FILE}: look-ups of names wait for it, or go without it",
        [f"{f.path}: {f.error}" for f in wrong],
        hint=f"see what it is (ls -ld {one.path}), move it away and write the file anew; in a container it "
        "may be a folder, where the file that was to be mounted there is missing",
    )


def _is_none(state: FileState) -> bool:
    return state.hangs or state.error == NOT_A_FILE
