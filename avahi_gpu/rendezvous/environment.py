"""What the environment says of interfaces, to torch's transports and by the user to us. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GLOO = "GLOO_SOCKET_IFNAME"
NCCL = "NCCL_SOCKET_IFNAME"


@dataclass(frozen=True)
class Demand:
    """Which interfaces the user allows; without a word, all.

    ``interface``: by our own option. ``gloo``: exact names (torch's list at commas). ``nccl``: NCCL's syntax,
    prefixes at commas, ``=`` before them for exact names, ``^`` for all others.
    """

    interface: str = ""
    gloo: tuple[str, ...] = ()
    nccl: str = ""

    def allows(self, name: str) -> bool:
        """Whether the round may run on the interface ``name``."""
        if self.interface:
            return name == self.interface
        return (not self.gloo or name in self.gloo) and (not self.nccl or nccl_matches(self.nccl, name))

    def is_for(self, interface: str) -> bool:
        """Whether our own option and gloo's variable agree on ``interface``."""
        return not self.gloo or interface in self.gloo

    @property
    def words(self) -> str:
        """How the user said so, '' where nothing is asked."""
        if self.interface:
            return f"--interface {self.interface}"
        said = [f"{GLOO}={','.join(self.gloo)}"] * bool(self.gloo) + [f"{NCCL}={self.nccl}"] * bool(self.nccl)
        return " and ".join(said)


def read_demand(interface: str | None, environ: Mapping[str, str]) -> Demand:
    """Return what the option ``interface`` and the variables of gloo and NCCL ask for.

    Both libraries take a value of less than two characters for none.
    """
    gloo, nccl = environ.get(GLOO, ""), environ.get(NCCL, "")
    names = tuple(name for name in gloo.split(",") if name) if len(gloo) > 1 else ()
    return Demand(interface or "", names, nccl if len(nccl) > 1 else "")


def nccl_matches(pattern: str, name: str) -> bool:
    """Whether NCCL takes the interface ``name`` for NCCL_SOCKET_IFNAME=``pattern`` (NCCL's documentation).

    ``eth,ib``: those that begin so; ``=eth0``: this one; ``^docker,lo`` and ``^=eth0``: all others.
    """
    others = pattern.startswith("^")
    rest = pattern[1:] if others else pattern
    exact = rest.startswith("=")
    words = [word.partition(":")[0] for word in rest.removeprefix("=").split(",")]
    found = any(name == word if exact else bool(word) and name.startswith(word) for word in words)
    return found != others


def interface_variables(interface: str, address: str) -> dict[str, str]:
    """Return the variables that bind torch's transports to ``interface``, whose address is ``address``.

    NCCL matches prefixes unless the name is given with ``=`` (NCCL's documentation of NCCL_SOCKET_IFNAME);
    without a family it may take a link-local IPv6 address.
    """
    return {
        GLOO: interface,
        NCCL: f"={interface}",
        "NCCL_SOCKET_FAMILY": "AF_INET6" if ":" in address else "AF_INET",
        "TP_SOCKET_IFNAME": interface,
    }


def missing_variables(
    wanted: Mapping[str, str], environ: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return those of ``wanted`` that the user has not set; ``ours`` is what we set for an earlier round."""
    return {k: v for k, v in wanted.items() if k not in environ or environ[k] == ours.get(k)}
