"""What the environment says of interfaces, to torch's transports and by the user to us. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avahi_gpu.files.settings import Settings

GLOO = "GLOO_SOCKET_IFNAME"
NCCL = "NCCL_SOCKET_IFNAME"


@dataclass(frozen=True)
class Demand:
    """Which interfaces the user allows; without a word, all.

    ``interface``: by our own option. ``interfaces``: those of the configuration. ``said``: in which words the
    user has named either, '' for the option's. ``gloo``: exact names (torch's list at commas). ``nccl``:
    NCCL's syntax, prefixes at commas, ``=`` before them for exact names, ``^`` for all others.
    """

    interface: str = ""
    gloo: tuple[str, ...] = ()
    nccl: str = ""
    interfaces: tuple[str, ...] = ()
    said: str = ""

    def allows(self, name: str) -> bool:
        """Whether the round may run on the interface ``name``."""
        if self.interface:
            return name == self.interface
        if self.interfaces and name not in self.interfaces:
            return False
        return (not self.gloo or name in self.gloo) and (not self.nccl or nccl_matches(self.nccl, name))

    def is_for(self, interface: str) -> bool:
        """Whether our own option and gloo's variable agree on ``interface``."""
        return not self.gloo or interface in self.gloo

    @property
    def choice(self) -> str:
        """How the user named ``interface`` or ``interfaces``."""
        return self.said or f"--interface {self.interface or ','.join(self.interfaces)}"

    @property
    def words(self) -> str:
        """How the user said so, '' where nothing is asked."""
        if self.interface:
            return self.choice
        said = [self.choice] * bool(self.interfaces)
        said += [f"{GLOO}={','.join(self.gloo)}"] * bool(self.gloo) + [f"{NCCL}={self.nccl}"] * bool(
            self.nccl
        )
        return " and ".join(said)


def name_choice(settings: Settings) -> str:
    """Return how the user has chosen interfaces, '' where nobody has or the option says it."""
    config, sources = settings.config, settings.sources
    name = "interface" if config.interface is not None else "interfaces"
    value = config.interface or ",".join(config.interfaces)
    source = sources[name]
    if not value or source.startswith("flag "):
        return ""
    variable = source.removeprefix("environment variable ")
    return f"{variable}={value}" if variable != source else f"{name} {value} of {source}"


def read_demand(
    interface: str | None, environ: Mapping[str, str], interfaces: tuple[str, ...] = (), said: str = ""
) -> Demand:
    """Return what the settings ``interface`` and ``interfaces`` and the variables of gloo and NCCL ask for.

    ``said``: see ``name_choice``. Both libraries take a value of less than two characters for none.
    """
    gloo, nccl = environ.get(GLOO, ""), environ.get(NCCL, "")
    names = tuple(name for name in gloo.split(",") if name) if len(gloo) > 1 else ()
    return Demand(interface or "", names, nccl if len(nccl) > 1 else "", interfaces, said)


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
