"""What was read of names: name servers, glibc's modules, and the way of one name through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# what a name server answers to "who is responsible for local?"; owner: some server claims the domain,
# which makes nss-mdns leave it alone. silent: nothing came in time. closed: nobody listens there.
ServerWord = Literal[
    "owner", "nxdomain", "nodata", "refused", "servfail", "odd", "silent", "closed", "unreachable"
]
Status = Literal["success", "notfound", "unavail", "tryagain"]


@dataclass(frozen=True)
class Lookup:
    """What glibc answered for a name, in a process of its own, and how long it took."""

    name: str
    addresses: tuple[str, ...]
    elapsed_s: float
    error: str = ""  # '' where it resolved; else glibc's words, or "timeout"


@dataclass(frozen=True)
class NameServer:
    """One name server that glibc asks, or one that a local one passes questions on to."""

    address: str
    says: ServerWord
    elapsed_s: float
    answers_others: bool | None = None  # silent for ``local``, but not for the root; None: not asked
    upstream: bool = False  # asked by systemd-resolved, not by glibc itself


@dataclass(frozen=True)
class ModuleAnswer:
    """What one of glibc's modules answered for a name, called alone in a process of its own.

    ``status`` None: it did not answer in time, or could not be called (``error``).
    """

    module: str
    status: Status | None
    addresses: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    error: str = ""
    loaded: bool | None = None  # False: glibc cannot load it; None: not known
