"""authselect(8): what it has selected, and whether somebody has edited what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avahi_gpu.files import authselect, nsswitch
from avahi_gpu.files.nsswitch_owner import is_of_authselect
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import Authselect

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

PROGRAM = "authselect"
ASK_S = 2.0  # it reads a dozen small files
WITHIN_S = 3 * ASK_S


async def read(ground: Ground) -> Authselect | None:
    """Return what it tells where nsswitch.conf is its; None where it is not."""
    state = ground.nsswitch
    if not ground.system.is_whole:
        return None  # the program that could be asked is not that of the tree
    if not is_of_authselect(nsswitch.parse(nsswitch.decode(state.content or b"")), state.link_target):
        return None
    return await aside(ask, ground.system)


def ask(system: System) -> Authselect:
    """Do what ``read`` says, blocking. It only asks: nothing that authselect is told here writes."""
    if system.find_program(PROGRAM) is None:
        return Authselect(installed=False)
    profile, features = authselect.parse_current(_say(system, "current", "--raw"))
    if not profile:
        return Authselect(installed=True)
    offered = authselect.parse_features(_say(system, "list-features", profile))
    now = authselect.parse_test(_say(system, "test", "--all", profile, *features))
    generated = None
    if authselect.FEATURE in offered:
        wanted = (*features, authselect.FEATURE)
        answer = authselect.parse_test(_say(system, "test", "--nsswitch", profile, *wanted))
        generated = next(iter(answer.values()), None)
    user_file = system.read(authselect.USER_FILE, nsswitch.SIZE_MAX)
    edited = _edited(system, now) if now else None
    present = next((new for path, new in now.items() if path.endswith("/nsswitch.conf")), None)
    has_user_file = user_file.content is not None
    return Authselect(
        True,
        profile,
        features,
        offered,
        edited,
        present,
        generated,
        user_file if has_user_file else None,
    )


def _edited(system: System, generated: dict[str, bytes]) -> tuple[str, ...]:
    files = ((path, system.read(path, authselect.SIZE_MAX).content, new) for path, new in generated.items())
    return tuple(path for path, old, new in files if not authselect.is_generated(old or b"", new))


def _say(system: System, *words: str) -> str:
    done = system.run([PROGRAM, *words], ASK_S)
    return done.stdout if done.ok else ""
