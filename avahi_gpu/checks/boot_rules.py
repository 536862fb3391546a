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
    for keep, part in (
        (_keep_nft, [w for w in walls if w.tool == "nft"]),
        (_keep_saved, [w for w in walls if w.tool != "nft"]),
    ):
        made, left = keep(firewall, part, question)
        changes += made
        unknown += left
    return (Fix("keep the firewall open after the next boot", tuple(changes)) if changes else None), unknown


def _keep_nft(firewall: Firewall, walls: list[Wall], question: str) -> tuple[list[Change], list[Wall]]:
    """Return the changes of our file and of the one that includes it, and the walls that it does not make."""
    boot = next((b for w in walls if (b := _nft_boot(firewall, w)) is not None), None)
    if boot is None or boot.ours is None:
        return [], walls
    known = [w for w in walls if _nft_boot(firewall, w) is not None]
    unknown = [w for w in walls if w not in known]
    text = _text(boot)
    # somebody may have saved all rules as they were, ours among them
    saved = "".join((text, *boot.included))
    if all(f'"{comment_of(w)}"' in saved for w in known):
        return [], unknown
    changes = []
    rules = [((*w.table, w.chain), w.by_policy, nft_words(firewall, w)) for w in known]
    ours = firewall_boot.write_nft(rules).encode()
    if boot.ours.content != ours:
        title = f"write {boot.ours.path}, which opens the firewall at boot"
        changes.append(fixes.write_file(title, boot.ours, ours, question=question))
    if not firewall_boot.includes_ours(text):
        content = firewall_boot.include_ours(text).encode("utf-8", "surrogateescape")
        title = f"include it in {boot.file.path}"
        changes.append(fixes.write_file(title, boot.file, content, question=question))
    return changes, unknown


def _keep_saved(firewall: Firewall, walls: list[Wall], question: str) -> tuple[list[Change], list[Wall]]:
    """Return the changes of the files that iptables and ip6tables restore, and the walls without one."""
    unknown: list[Wall] = []
    texts: dict[str, str] = {}
    files = {b.kind: b for b in firewall.boot if b.kind != "nft" and _usable(b)}
    for wall in walls:
        kind = "ip6tables" if wall.family == 6 else "iptables"
        words, place = iptables_words(firewall, wall), (wall.table[1], wall.chain)
        before = texts.get(kind, _text(files[kind])) if kind in files else ""
        after = firewall_boot.save_rule(before, *place, words, at_end=wall.by_policy)
        if after is None:
            unknown.append(wall)
        else:
            texts[kind] = after
    changes = []
    for kind, boot in files.items():
        content = texts.get(kind, _text(boot)).encode("utf-8", "surrogateescape")
        if content != boot.file.content:
            title = f"keep the opening in {boot.file.path}"
            changes.append(fixes.write_file(title, boot.file, content, question=question))
    return changes, unknown


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
            if b.kind == "nft"
            and _usable(b)
            and any(firewall_boot.makes_chain(text, place) for text in (_text(b), *b.included))
        ),
        None,
    )


def _usable(boot: BootRules) -> bool:
    state = boot.file
    return state.content is not None and state.writable and not fixes.is_of_nixos(state)


def _text(boot: BootRules) -> str:
    return (boot.file.content or b"").decode("utf-8", "surrogateescape")
