"""What the probers read, by area. A field is None where it was not read: ``Facts.unread`` tells why.

Each field has one prober in ``host/probers.py`` under the name ``area.field``.
"""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.model.naming import Authselect, Lookup, ModuleAnswer, NameServer, Trace
from avahi_gpu.model.network import Ear, Firewall, KernelNet, ResolvedMdns


@dataclass(frozen=True)
class NameFacts:
    """Names: the name servers and what glibc's modules do."""

    servers: tuple[NameServer, ...] | None = None  # in glibc's order, then those behind a local one
    own_by_module: tuple[ModuleAnswer, ...] | None = None  # the mDNS modules, asked for this machine's name
    reverse: Lookup | None = (
        None  # the name of an address that has none; None: asked only where it may be slow
    )
    traces: tuple[Trace, ...] | None = None  # of the names that the user asked about
    caches: tuple[str, ...] | None = None  # of nscd, sssd and systemd-resolved, those that run
    # who answers for the kernel's host name where Avahi publishes another: an address, '' nobody
    rival: str | None = None
    authselect: Authselect | None = None  # None also where it does not write nsswitch.conf


@dataclass(frozen=True)
class MdnsSocket:
    """A socket on UDP port 5353. ``pid`` None: of a process of another user, or in another container."""

    family: int  # 4 or 6
    address: str
    inode: int
    uid: int
    pid: int | None = None
    program: str = ""  # comm of the process


@dataclass(frozen=True)
class NetworkFacts:
    """The network: who shares mDNS's port, what the firewall lets through, who hears whom."""

    mdns_sockets: tuple[MdnsSocket, ...] | None = None
    resolved_mdns: ResolvedMdns | None = None
    firewall: Firewall | None = None
    kernel: KernelNet | None = None
    loopback: bool | None = None  # a connection to 127.0.0.1 comes to be
    hearing: tuple[Ear, ...] | None = None  # () where there is nobody to ask
