"""What plain torchrun's users read of the rendezvous, on stderr: there is no display of ours."""

from __future__ import annotations

import sys

from avahi_gpu.render.text import printable
from avahi_gpu.render.waiting import describe_waiting
from avahi_gpu.rendezvous.dealings import Notice
from avahi_gpu.rendezvous.terms import Terms

LINE_MAX = 1000  # characters of one line; hosts and reasons come from the network


class Voice:
    """A node's listener: says every event, and who is there by now whenever that has changed."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.excluded: set[str] = set()
        self.shown = ""  # the last line of this wait

    def __call__(self, notice: Notice) -> None:
        """Say a notice."""
        if notice.ended:  # the agent says it in its own place
            return
        if notice.excluded:
            self.excluded.add(notice.excluded)
        if notice.formed is not None:
            self.shown = ""
        if not notice.waiting:
            tell(notice.text)
            return
        line = self._describe(notice, None)
        if line != self.shown:
            tell(line if self.shown else self._describe(notice, self.terms.join_timeout_s))
            self.shown = line

    def _describe(self, notice: Notice, limit_s: float | None) -> str:
        counts = (self.terms.min_nodes, self.terms.max_nodes)
        return describe_waiting(notice.text, notice.present, *counts, excluded=self.excluded, limit_s=limit_s)


def tell(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(f"avahi-gpu: {printable(text, LINE_MAX)}\n")
    sys.stderr.flush()
