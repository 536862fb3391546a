"""resolv.conf as glibc reads it: which name servers are asked, and how long a dead one costs."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

PATH = "/etc/resolv.conf"
MAX_SERVERS = 3  # resolv.conf(5): MAXNS; further ones are not asked
DEFAULT_TIMEOUT_S = 5
MAX_TIMEOUT_S = 30  # silently capped, resolv.conf(5)
DEFAULT_ATTEMPTS = 2
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class ResolvConf:
    """Name servers in their order, only those that are asked; ``timeout_s`` and ``attempts`` in force."""

    nameservers: tuple[str, ...] = ("127.0.0.1",)  # what glibc asks where none is named
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    timeout_s: int = DEFAULT_TIMEOUT_S
    attempts: int = DEFAULT_ATTEMPTS

    @property
    def longest_wait_s(self) -> int:
        """Seconds that one look-up lasts where no server answers (glibc res_send.c)."""
        return self.wait_s(self.nameservers, ())

    def wait_s(self, silent: Collection[str], deciding: Collection[str]) -> int:
        """Return the seconds that one question waits for ``silent`` servers until a ``deciding`` one answers.

        Those in neither answer at once, but with nothing that ends the search (glibc asks the next one). With
        the option ``rotate`` any server may be the first: then the longest wait counts.
        """
        servers = self.nameservers
        starts = range(len(servers)) if "rotate" in self.options else range(1)
        return max(self._wait_from((*servers[n:], *servers[:n]), silent, deciding) for n in starts)

    def _wait_from(self, servers: tuple[str, ...], silent: Collection[str], deciding: Collection[str]) -> int:
        waited = 0
        for n, server in enumerate(servers * self.attempts):
            if server in deciding:
                break
            if server in silent:
                place = n % len(servers)
                waited += max(1, (self.timeout_s << place) // (len(servers) if place else 1))
        return waited


def parse(text: str) -> ResolvConf:
    """Return what glibc takes from the file. Nothing raises: it skips what it does not know.

    Keywords start in the first column; the last ``search`` or ``domain`` counts; options add up.
    """
    servers: list[str] = []
    search: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.split("\n"):
        if line[:1] in ("#", ";"):
            continue
        keyword, *values = re.split(r"[ \t\r\n]+", line.rstrip())
        if keyword == "nameserver" and values:
            servers.append(values[0])
        elif keyword in ("search", "domain") and values:
            search = tuple(values)
        elif keyword == "options":
            options += values
    return ResolvConf(
        nameservers=tuple(servers[:MAX_SERVERS]) or ("127.0.0.1",),
        search=search,
        options=tuple(options),
        timeout_s=min(_number(options, "timeout", DEFAULT_TIMEOUT_S), MAX_TIMEOUT_S),
        attempts=min(_number(options, "attempts", DEFAULT_ATTEMPTS), MAX_ATTEMPTS),
    )


def _number(options: list[str], name: str, default: int) -> int:
    found = [m[1] for option in options if (m := re.fullmatch(rf"{name}:([0-9]{{1,9}})[^0-9]*", option))]
    return int(found[-1]) if found else default
