"""Where both kinds of doctor stand: this machine's facts, Avahi where it runs, and the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from avahi_gpu.avahi.browse import Browser
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.avahi.publish import Publication
from avahi_gpu.errors import BusError
from avahi_gpu.host import node
from avahi_gpu.host.aside import aside
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.facts import read_hardware
from avahi_gpu.host.gpu import choose_python
from avahi_gpu.host.key_file import find_key
from avahi_gpu.host.net import lan_interfaces, read_interfaces
from avahi_gpu.host.peers import describe_models
from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DEFAULT_CLUSTER,
    DOCTOR_SERVICE,
    DOMAIN,
    NODE_SERVICE,
    Interface,
    Service,
)
from avahi_gpu.rendezvous.proof import Pass
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.encounter import JOB
from avahi_gpu.survey.limits import on_link
from avahi_gpu.survey.record import Doctor, Role, decode_doctor, encode_doctor, label_of
from avahi_gpu.survey.witness import Witness, describe_networks, own_hostname

UNPRIVILEGED = 1024  # below it servers of the system listen, and no doctor
ASK_AVAHI_S = 3.0  # an avahi-daemon that is there answers in milliseconds


@dataclass
class Station:
    """This machine as a doctor. ``trouble``: why Avahi does not help, '' where it does."""

    system: System
    us: Pass
    witness: Witness
    interfaces: tuple[Interface, ...]
    avahi: Avahi | None = None
    trouble: str = ""
    _nodes: Browser | None = None
    _doctors: Browser | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def nodes(self) -> tuple[Service, ...]:
        """The nodes that Avahi lists and resolves, this one among them."""
        return tuple(self._nodes.services.values()) if self._nodes is not None else ()

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Names of nodes that are listed, and that nobody has answered for."""
        return tuple(self._nodes.unresolved) if self._nodes is not None else ()

    @property
    def doctors(self) -> tuple[Doctor, ...]:
        """The doctors of other machines in our subnets, as their records say.

        Anybody may publish one: nothing beyond the LAN is connected to because of it.
        """
        services = self._doctors.services.values() if self._doctors is not None else ()
        found = (decode_doctor(s) for s in services if not s.own)
        return tuple(d for d in found if d is not None and d.id != self.us.id and self._is_near(d))

    def _is_near(self, doctor: Doctor) -> bool:
        return doctor.port >= UNPRIVILEGED and on_link(doctor.address, self.interfaces)

    @property
    def seen(self) -> frozenset[str]:
        """The addresses of all of them."""
        return frozenset(s.address for s in self.nodes) | frozenset(d.address for d in self.doctors)

    def own_addresses(self) -> frozenset[str]:
        """Return every address of this machine."""
        return frozenset(a.ip.partition("%")[0] for i in self.interfaces for a in i.addresses)

    async def appear(self, stack: contextlib.AsyncExitStack, role: Role, port: int) -> None:
        """Publish a record and watch those of the others, as far as Avahi lets us; never raises for Avahi."""
        if self.avahi is None:
            return
        prefer = [i.index for i in lan_interfaces(self.interfaces)]
        label = label_of(self.us.host, self.us.id)
        try:
            publication = Publication(
                self.avahi, DOCTOR_SERVICE, label, port, encode_doctor(self.us.id, role)
            )
            await stack.enter_async_context(publication)
        except BusError as fault:
            self.trouble = fault.message
        for type in (NODE_SERVICE, DOCTOR_SERVICE):
            browser = Browser(self.avahi, type, prefer=prefer)
            try:
                await stack.enter_async_context(browser)
            except BusError as fault:
                self.trouble = fault.message
                return
            follow = asyncio.ensure_future(self._follow(browser))
            stack.callback(follow.cancel)
            if type == NODE_SERVICE:
                self._nodes = browser
            else:
                self._doctors = browser

    async def _follow(self, browser: Browser) -> None:
        async for _ in browser:
            self.changed.set()

    async def wait_for_news(self, within_s: float) -> None:
        """Wait until somebody has come or gone."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.changed.wait(), max(0.0, within_s))
        self.changed.clear()


@contextlib.asynccontextmanager
async def station(system: System, python: str | None) -> AsyncIterator[Station]:
    """Read this machine and connect to Avahi, where it runs. Raises for a wrong configuration or key."""
    settings = read_settings(system, os.environ, {"python": ("--python", python)})
    found = find_key(system, os.environ, settings.config.key_file)
    python = choose_python(system, settings)
    interfaces, hardware = await asyncio.gather(aside(read_interfaces), aside(read_hardware, system, python))
    hostname = own_hostname()
    async with contextlib.AsyncExitStack() as stack:
        avahi, host, trouble = None, "", ""
        try:
            avahi = await stack.enter_async_context(connect())
            host = await asyncio.wait_for(avahi.host_fqdn(), ASK_AVAHI_S)
        except BusError as fault:
            avahi, trouble = None, fault.message
        except asyncio.TimeoutError:
            avahi, trouble = None, "avahi-daemon does not answer"
        id = secrets.token_hex(8)
        about = m.About(
            id=id,
            hostname=hostname,
            host=host[:255],
            node=node.make_node_id(node.read_machine_id(system), hostname),
            cluster=settings.config.cluster[:255],
            networks=describe_networks(interfaces),
            gpus=len(hardware.gpus),
            gpu=m.clip(describe_models(hardware.gpus)),
            python=hardware.versions.python[:64],
            torch=hardware.versions.torch[:64],
            cuda=hardware.versions.cuda[:64],
            nccl=hardware.versions.nccl[:64],
            driver=hardware.versions.driver[:64],
        )
        name = host.removesuffix(f".{DOMAIN}") or hostname
        us = Pass(id, name[:255], JOB, about.cluster or DEFAULT_CLUSTER, found.key if found else None)
        yield Station(system, us, Witness(system, avahi, about), interfaces, avahi, trouble)
