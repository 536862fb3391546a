"""The files that a firewall is loaded from at boot: whether they make a chain, and ours added to them. Pure.

Nothing of ours may keep the rest of such a file from being loaded: nft(8) takes a file whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from avahi_gpu.model import NFT_FILE

# with a wildcard: that nothing of this name is there any more is no error to nft
INCLUDED = NFT_FILE.replace(".nft", "*.nft")
_INCLUDE = f'include "{INCLUDED}"'
_NOTE = '# avahi-gpu lets the LAN in; "avahi-gpu undo" takes this out again'
_HEAD = """\
# The LAN's machines are let in: made by avahi-gpu setup --firewall, and taken out by avahi-gpu undo.
# The file that loads all rules includes this one at its end. Adding a table and a chain that are there
# changes nothing, and keeps that file loadable where they have been renamed.
"""
_FAMILIES = r"(?:(ip|ip6|inet|arp|bridge|netdev)\s+)?"


def makes_chain(text: str, place: tuple[str, str, str]) -> bool:
    """Whether a file for ``nft -f`` makes this chain (family, table, chain) by itself."""
    text = re.sub(r'"[^"\n]*"', '""', text)
    text = re.sub(r"#[^\n]*", "", text)
    family, table, chain = place
    for found in re.finditer(rf"\b(?:table|chain)\s+{_FAMILIES}([\w.-]+)(?:\s+([\w.-]+))?\s*\{{", text):
        if (found[1] or "ip", found[2]) != (family, table):
            continue
        if found[3] == chain:  # add chain inet filter input { … }
            return True
        if found[3] is None and re.search(rf"\bchain\s+{re.escape(chain)}\s*\{{", _block(text, found.end())):
            return True
    return False


def included_by(text: str) -> list[str]:
    """Return the paths that a file for ``nft -f`` includes; the last name may be a pattern.

    What is no full path is looked for in /etc, as nft(8) has it.
    """
    found = re.findall(r'^[ \t]*include[ \t]+"([^"\n]+)"', text, re.MULTILINE)
    return [path if path.startswith("/") else f"/etc/{path}" for path in found if not path.startswith("./")]


def _block(text: str, start: int) -> str:
    """Return what stands between the brace before ``start`` and the one that closes it."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def write_nft(rules: Iterable[tuple[tuple[str, str, str], bool, Sequence[str]]]) -> str:
    """Return our file; each rule is its place, whether it belongs at the chain's end, and its words."""
    lines = []
    for place, at_end, words in rules:
        where = " ".join(place)
        made = [f"add table {' '.join(place[:2])}", f"add chain {where}"]
        lines += [line for line in made if line not in lines]
        lines.append(f"{'add' if at_end else 'insert'} rule {where} {' '.join(words)}")
    return _HEAD + "".join(f"{line}\n" for line in lines)


def includes_ours(text: str) -> bool:
    """Whether a file for ``nft -f`` includes ours."""
    return any(line.strip() == _INCLUDE for line in text.split("\n"))


def include_ours(text: str) -> str:
    """Return the file with ours included at its end: what it flushes and makes comes before."""
    gap = "" if text.endswith("\n") or not text else "\n"
    return f"{text}{gap}\n{_NOTE}\n{_INCLUDE}\n"


def save_rule(text: str, table: str, chain: str, rule: Sequence[str], *, at_end: bool) -> str | None:
    """Return a file of iptables-restore(8) with the rule in the chain, None where it has no such chain.

    It is put where it counts: behind the chain's last rule or before its first one.
    """
    line = f"-A {chain} {' '.join(_quote(word) for word in rule)}"
    lines = text.split("\n")
    try:
        start = lines.index(f"*{table}")
        end = lines.index("COMMIT", start)
    except ValueError:
        return None
    part = lines[start:end]
    if line in part:
        return text
    declared = [n for n, one in enumerate(part) if one.startswith(f":{chain} ")]
    if not declared:
        return None
    declarations = [n for n, one in enumerate(part) if one.startswith(":")]
    of_chain = re.compile(rf"(?:\[\d+:\d+\] )?-[AI] {re.escape(chain)} ")
    rules = [n for n, one in enumerate(part) if of_chain.match(one)]
    if rules:
        part.insert(rules[-1] + 1 if at_end else rules[0], line)
    else:
        part.insert(declarations[-1] + 1, line)
    return "\n".join([*lines[:start], *part, *lines[end:]])


def _quote(word: str) -> str:
    return f'"{word}"' if " " in word else word
