"""What a round stands on here: its ports, the mesh test before it, the watch over its network. An edge."""

from __future__ import annotations

import socket

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.mesh import MeshListener, Ports, port_of, reserve, test_mesh, watch_seat
from avahi_gpu.rendezvous.wire import describe


class Seating:
    """The place of one node in the rounds of its job. ``id``: the node's own."""

    def __init__(self, id: str, lost_after_s: float) -> None:
        self.id, self.lost_after_s = id, lost_after_s
        self.mesh = MeshListener()
        self._ports: Ports | None = None  # of the proposal, then of the round
        self._last_port = 0

    async def open(self) -> None:
        """Listen for the others' mesh tests."""
        await self.mesh.open()

    async def close(self) -> None:
        """Listen no more, and give the ports back."""
        await self.mesh.close()
        self.release()

    def release(self) -> None:
        """No round of ours needs its ports any more."""
        if self._ports is not None:
            self._ports.release()
            self._ports = None

    def reserve(self, action: steps.Reserve, host: str) -> steps.Reserved | steps.MeshDone:
        """Take the ports of a proposal, others than those of the last round."""
        if self._ports is not None:
            self._ports.discard()
        try:
            self._ports = reserve(action.address, self._last_port)
        except (OSError, LaunchFailed) as error:
            self._ports = None
            why = error.message if isinstance(error, LaunchFailed) else describe(error)
            return steps.MeshDone(action.token, ((self.id, f"{host} has no port for the round: {why}"),))
        self._last_port = self._ports.worker_port
        return steps.Reserved(action.token, port_of(self._ports.store), self._ports.worker_port)

    async def test(self, action: steps.TestMesh) -> steps.MeshDone:
        """Reach every other seat of a proposal."""
        unreachable = await test_mesh(action.seats, self.id, action.store_port, action.worker_port)
        return steps.MeshDone(action.token, unreachable)

    def take(self, formed: steps.Round) -> socket.socket | None:
        """A round stands: return the socket of its store where we lead it."""
        self.mesh.members = frozenset(seat.address for seat in formed.seats)
        if formed.rank != 0 or self._ports is None:
            return None
        self._ports.open_for_workers()
        return self._ports.store

    async def wait_for_cut(self, formed: steps.Round) -> steps.Severed | None:
        """Return once the network between the leader's seat and ours is gone; None where nobody knows."""
        reason = await watch_seat(formed.own, formed.leader, self.lost_after_s)
        return steps.Severed(formed.token, reason) if reason else None
