"""Who connects to us and has not shown yet who it is: how many of them may be, and who is told of. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

STRANGERS_MAX = 64  # at a time; a node of the job is one for some milliseconds
STRANGERS_PER_HOST = 8  # of one address; a node has two: one that it asked for, and one by which it greets
TOLD_MAX = 20  # sentences about strangers; whoever has many addresses is told of often enough by then
FLOOD = "flood"  # what ``first_time`` is asked about an address that has too many connections


class Strangers:
    """The connections of strangers, oldest first, and what people have been told of them.

    Where they are too many, one goes that was there before, and not the newest: a node of the job needs a few
    milliseconds, and whoever fills the places can hold them for no longer. Addresses from where a node of the
    job is expected come last; among the others ``choose`` decides, so that no pace of arrivals is sure to
    drive out a newcomer.
    """

    def __init__(self, choose: Callable[[Sequence[str]], str]) -> None:
        self._choose = choose
        self._waiting: dict[int, str] = {}  # connection -> address
        self._told: set[tuple[str, str]] = set()
        # where the running round's members are: while this process was stopped, their questions whether it
        # lives have piled up, and all come in at once
        self.members: frozenset[str] = frozenset()
        self.known: Callable[[], Collection[str]] = frozenset  # where candidates of the job are said to be

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, conn: int, address: str) -> int | None:
        """Take in a connection; return the one that has to go for it, None while there is room."""
        self._waiting[conn] = address
        count = Counter(self._waiting.values())
        if count[address] > STRANGERS_PER_HOST:
            crowd = address
        elif len(self._waiting) > STRANGERS_MAX:
            crowd = self._crowd(Counter(a for c, a in self._waiting.items() if c != conn))
        else:
            return None
        return next(c for c, a in self._waiting.items() if a == crowd and c != conn)

    def _crowd(self, count: Counter[str]) -> str:
        """Return the address that has to give up a place."""
        expected = self.members.union(self.known())
        strange = [address for address in count if address not in expected] or list(count)
        most = max(count[address] for address in strange)
        return self._choose([address for address in strange if count[address] == most])

    def leave(self, conn: int) -> None:
        """A connection has ended, or it is known now whose it is."""
        self._waiting.pop(conn, None)

    def address_of(self, conn: int) -> str:
        """Return where a connection comes from, '' where it has left."""
        return self._waiting.get(conn, "")

    def told(self, address: str, kinds: Collection[str]) -> bool:
        """Return whether people have been told one of these ``kinds`` of thing of ``address``."""
        return any((address, kind) in self._told for kind in kinds)

    def first_time(self, address: str, what: str) -> bool:
        """Return whether people should be told this of ``address``: once, not of too many.

        A member of the round floods nobody.
        """
        if what == FLOOD and address in self.members:
            return False
        mark = (address, what)
        if mark in self._told or len(self._told) >= TOLD_MAX:
            return False
        self._told.add(mark)
        return True
