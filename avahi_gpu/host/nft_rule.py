"""The number that nft has given to a rule of ours, found by the rule's comment.

Numbers change with each load of a file of rules, so one that was told when the rule was added may be another
rule's by now.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from avahi_gpu.host.system import System

LIST_S = 5.0  # a chain of ten thousand rules takes half a second to print


def find_handle(system: System, argv: Sequence[str]) -> str | None:
    """Return the handle of the rule that ``nft add rule …`` has added, None where it is not there (any more).

    ``argv`` is that command line: it names the chain, and ends with the comment.
    """
    if len(argv) < 8 or argv[0] != "nft" or argv[2] != "rule" or argv[-2] != "comment":
        return None
    done = system.run(["nft", "--json", "--handle", "list", "chain", *argv[3:6]], LIST_S)
    try:
        items: list[Any] = json.loads(done.stdout)["nftables"] if done.ok else []
        rules = [item["rule"] for item in items if "rule" in item]
        found = [rule["handle"] for rule in rules if rule.get("comment") == argv[-1].strip('"')]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return str(found[-1]) if found else None
