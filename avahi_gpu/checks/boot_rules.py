"""What makes an opening of the firewall outlast the next boot, where nft or iptables has the rules."""

from __future__ import annotations

from collections.abc import Sequence

from avahi_gpu.checks import fixes
from avahi_gpu.checks.openings import (
    ask_about,
    can_open,
    comment_of,
    iptables_words,
    nft_words,
    opening_of,
)
from avahi_gpu.files import firewall_boot
from avahi_gpu.model import BootRules, Change, Firewall, Fix, Wall


def keep_open(firewall: Firewall, walls: Sequence[Wall]) -> tuple[Fix | None, list[Wall]]:
    """Return the fix that lets these walls be opened at boot too, and those of which nobody knows how."""
    walls = [w for w in walls if can_open(firewall, w)]
    question = ask_about(dict.fromkeys(map(opening_of, walls)), firewall)
    changes: list[Change] = []
    unknown: list[Wall] = []
    known = [w for w in walls if w.tool == "nft" and _nft_boot(firewall, w) is not None]
    boot = _nft_boot(firewall, known[0]) if known else None
    # somebody may have saved all rules as they were, ours among them
    lacking = [w for w in known if f'"{comment_of(w)}"' not in _text(boot)] if boot is not None else []
    if boot is not None and boot.ours is not None and lacking:
        rules = [((*w.table, w.chain), w.by_policy, nft_words(firewall, w)) for w in known]
        ours = firewall_boot.write_nft(rules).encode()
        text = _text(boot)
        if boot.ours.content != ours:
            title = f"write {boot.ours.path}, which opens the firewall at boot"
            changes.append(fixes.write_file(title, boot.ours, ours, question=question))
        if not firewall_boot.includes_ours(text):
            content = firewall_boot.include_ours(text).encode("utf-8", "surrogateescape")
            title = f"include it in {boot.file.path}"
            changes.append(fixes.write_file(title, boot.file, content, question=question))
    saved: dict[str, tuple[BootRules, str]] = {}
    for wall in walls:
        if wall.tool == "nft":
            unknown += [] if wall in known else [wall]
            continue
        one = next((b for b in firewall.boot if b.kind == wall.tool.partition("-")[0] and _usable(b)), None)
        before = saved.get(one.file.path, (one, _text(one)))[1] if one is not None else None
        words = iptables_words(firewall, wall)
        text_now = (
            firewall_boot.save_rule(before, wall.table[1], wall.chain, words, at_end=wall.by_policy)
            if before is not None
            else None
        )
        if one is None or text_now is None:
            unknown.append(wall)
        else:
            saved[one.file.path] = (one, text_now)
    for one, text_now in saved.values():
        content = text_now.encode("utf-8", "surrogateescape")
        if content != one.file.content:
            title = f"keep the opening in {one.file.path}"
            changes.append(fixes.write_file(title, one.file, content, question=question))
    return (Fix("keep the firewall open after the next boot", tuple(changes)) if changes else None), unknown


def describe_wall(wall: Wall) -> str:
    """Return the wall for people: where, and for whom."""
    return f"{wall.because}: {comment_of(wall).partition(': ')[2]}"


def _nft_boot(firewall: Firewall, wall: Wall) -> BootRules | None:
    """Return the file that makes the wall's chain at boot."""
    place = (*wall.table, wall.chain)
    return next(
        (
            b
            for b in firewall.boot
            if b.kind == "nft" and _usable(b) and firewall_boot.makes_chain(_text(b), place)
        ),
        None,
    )


def _usable(boot: BootRules) -> bool:
    state = boot.file
    return state.content is not None and state.writable and not fixes.is_of_nixos(state)


def _text(boot: BootRules) -> str:
    return (boot.file.content or b"").decode("utf-8", "surrogateescape")
