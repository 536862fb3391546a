"""resolv.conf as glibc reads it: which name servers are asked, and how long a dead one costs."""

from __future__ import annotations

import re
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
        count = len(self.nameservers)
        rounds = [max(1, (self.timeout_s << n) // (count if n else 1)) for n in range(count)]
        return self.attempts * sum(rounds)


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
