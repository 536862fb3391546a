"""Where each service instance was seen: interfaces and protocols, best first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from avahi_gpu.avahi.names import IPV4
from avahi_gpu.model import LOOPBACK_INDEX

MAX_NAMES = 1024  # instances of one type on one LAN: more is somebody flooding it


@dataclass(frozen=True)
class Place:
    """Where an instance was announced; the protocol as Avahi counts it: 0 IPv4, 1 IPv6."""

    interface: int
    protocol: int
    own: bool = field(default=False, compare=False)  # published by this host

    @property
    def is_loopback(self) -> bool:
        return self.interface == LOOPBACK_INDEX


class Places:
    """The places of every instance, as ItemNew and ItemRemove build them up. Both may be repeated."""

    def __init__(self, prefer: Sequence[int] = ()) -> None:
        self._by_name: dict[str, dict[Place, None]] = {}
        self.prefer(prefer)

    def prefer(self, indexes: Sequence[int]) -> None:
        """Set the order of interfaces, best first."""
        self._rank = {index: rank for rank, index in enumerate(indexes)}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def names(self) -> list[str]:
        """Return the instances that are there, in the order of their coming."""
        return list(self._by_name)

    def add(self, name: str, place: Place) -> bool:
        """Add a place; return whether it was new and is kept."""
        if name not in self._by_name and len(self._by_name) >= MAX_NAMES:
            return False
        places = self._by_name.setdefault(name, {})
        if place in places:
            return False
        places[place] = None
        return True

    def remove(self, name: str, place: Place) -> bool:
        """Remove a place; return whether that was the instance's last one."""
        places = self._by_name.get(name)
        if places is None:
            return False
        places.pop(place, None)
        if places:
            return False
        del self._by_name[name]
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._by_name.clear()

    def best(self, name: str) -> list[Place]:
        """Return the instance's places, best first.

        The LAN before loopback (Avahi lists our own services there too), preferred interfaces in their order,
        IPv4 before IPv6, then as they came.
        """
        return sorted(self._by_name.get(name, ()), key=self._key)

    def _key(self, place: Place) -> tuple[bool, int, bool]:
        rank = self._rank.get(place.interface, len(self._rank))
        return place.is_loopback, rank, place.protocol != IPV4


def is_final(places: Iterable[Place]) -> bool:
    """Tell whether the best of these places is worth resolving at once.

    IPv6 alone, or loopback alone, mostly means that the better announcement is still on its way.
    """
    return any(p.protocol == IPV4 and not p.is_loopback for p in places)
