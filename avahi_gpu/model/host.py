"""What the probers read of the host itself, of what it runs in, and of what torch would find there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnName:
    """What Python's socket module, and so torch, is told of this machine's own name."""

    name: str  # socket.gethostname()
    fqdn: str  # socket.getfqdn(): what torchrun tells the other nodes
    found: tuple[tuple[str, str], ...]  # canonical name, address: getaddrinfo(name, AI_CANONNAME)
    error: str = ""  # why getaddrinfo failed: torchrun does not catch that

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(address for _, address in self.found))


@dataclass(frozen=True)
class PinnedName:
    """A name in .local that /etc/hosts gives an address, beside what Avahi says of it."""

    line: int
    name: str  # in small letters, without the last dot
    address: str
    told: tuple[str, ...] = ()  # an address that Avahi resolves it to; (): nobody answers for it
    holder: str = ""  # the name that mDNS has for the pinned address; '': nobody answers for it
    answers: bool | None = None  # whether something is there at the pinned address; None: not known


@dataclass(frozen=True)
class HostFacts:
    """The host: its own name, what it runs in, its clock, memory, ports, environment."""

    own_name: OwnName | None = None
    pinned_names: tuple[PinnedName, ...] | None = None
