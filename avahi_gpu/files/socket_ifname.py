"""GLOO_SOCKET_IFNAME, TP_SOCKET_IFNAME and NCCL_SOCKET_IFNAME: three variables, two grammars. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from avahi_gpu.model import Interface

# what NCCL looks at when nothing is set, in this order (src/misc/socket.cc, ncclFindInterfaces)
_NOT_FIRST = ("docker", "lo", "virbr")
_LAST = ("docker", "lo", "virbr")


def names_of(value: str) -> list[str]:
    """Return the interfaces of gloo's list: exact names between commas."""
    return [name.strip() for name in value.split(",")]


def nccl_takes(value: str, name: str) -> bool:
    """Whether ``value`` lets NCCL use an interface: prefixes, ``=`` exact names, ``^`` all but these."""
    exclude = value.startswith("^")
    value = value.removeprefix("^")
    exact = value.startswith("=")
    wanted = [part.partition(":")[0] for part in value.removeprefix("=").split(",") if part]
    found = any(name == part if exact else name.startswith(part) for part in wanted)
    return found != exclude


def nccl_candidates(interfaces: Iterable[Interface]) -> list[Interface]:
    """Return the interfaces that NCCL can use at all, in its order: that of their numbers."""
    usable = [i for i in interfaces if i.up and i.running and i.addresses]
    return sorted(usable, key=lambda i: i.index)


def nccl_choice(value: str, interfaces: Sequence[Interface]) -> Interface | None:
    """Return the interface that NCCL would talk over first, None where it finds none and gives up."""
    able = nccl_candidates(interfaces)
    if value:
        return next((i for i in able if nccl_takes(value, i.name)), None)
    first = [i for i in able if i.name.startswith("ib")]
    first += [i for i in able if not i.name.startswith(_NOT_FIRST)]
    first += [i for last in _LAST for i in able if i.name.startswith(last)]
    return first[0] if first else None
