"""Peers as an Ansible inventory: the JSON that an inventory script gives for ``--list`` and ``--host``.

Ansible takes what stands in a variable of an inventory for a template and evaluates it, and everybody on the
LAN may publish a record. So a host's name is a host name and nothing else, values hold no character that a
template begins with, and no name of a variable comes from the LAN.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Any

from avahi_gpu.model import DOMAIN, Peer

EVERY = "avahi_gpu"  # the group of all of them
NODE = "avahi_gpu_node"  # the one variable of ours: it cannot be taken for a setting of the role
# names that mean something else to Ansible: a play on localhost must not end up on another machine
RESERVED = frozenset({"all", "ungrouped", "localhost", "localhost4", "localhost6"})
GROUP_LIMIT = 64  # characters
PLAIN = frozenset(" ._+:/()-,@")  # with letters and digits: enough for versions, models and paths

HOST_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")  # of a host name, RFC 1123 section 2.1
INTERFACE = re.compile(r"[A-Za-z0-9._-]{1,15}")
_UNSAFE = re.compile(r"[^a-z0-9]+")


def make_inventory(peers: Sequence[Peer]) -> tuple[dict[str, Any], list[str]]:
    """Return what ``--list`` prints, and a sentence about each peer that is left out or named otherwise."""
    hosts, notes = _name_hosts(peers)
    clusters = _name_groups("cluster", {p.cluster for p in hosts.values()})
    models = _name_groups("gpu", {model for p in hosts.values() for model in _models(p)})
    groups: dict[str, list[str]] = {EVERY: list(hosts)}
    for host, peer in hosts.items():
        for group in (clusters[peer.cluster], *(models[m] for m in _models(peer))):
            groups.setdefault(group, []).append(host)
    inventory: dict[str, Any] = {group: {"hosts": names} for group, names in sorted(groups.items())}
    inventory["_meta"] = {"hostvars": {host: _variables(peer) for host, peer in hosts.items()}}
    return inventory, notes


def host_variables(inventory: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what ``--host NAME`` prints: nothing for a host that is not there."""
    found: dict[str, Any] = inventory["_meta"]["hostvars"].get(name, {})
    return found


def plain(text: str) -> str:
    """Return ``text`` with a _ for each character but letters, digits and those of PLAIN."""
    return "".join(c if c.isalnum() or c in PLAIN else "_" for c in text)


# --- hosts -------------------------------------------------------------------------------------------------


def _name_hosts(peers: Iterable[Peer]) -> tuple[dict[str, Peer], list[str]]:
    """Return the peers by the name that Ansible is to know them by.

    That is the host name which Avahi keeps unique on the LAN. Where two claim one all the same, the one that
    answers has it, and the other its id behind it.
    """
    hosts: dict[str, Peer] = {}
    notes = []
    for peer in sorted(peers, key=lambda p: (not p.self, p.alive is not True, p.alive is False)):
        name = peer.host.lower().removesuffix(f".{DOMAIN}")
        if not HOST_LABEL.fullmatch(name) or name in RESERVED:
            notes.append(
                f"{peer.name} is left out: {peer.host or 'nothing'} is no name for a host of Ansible's"
            )
        elif numeric_address(peer) is None:
            notes.append(f"{peer.name} is left out: its address is not known")
        elif name not in hosts:
            hosts[name] = peer
        elif hosts[name].address == peer.address:
            notes.append(f"{peer.name} is left out: {name} has the same address")
        else:
            other = f"{name}-{peer.id or 'other'}"
            there = f"two machines are called {name}: the one at {peer.address} is"
            notes.append(f"{there} left out" if other in hosts else f"{there} {other} here")
            hosts.setdefault(other, peer)
    order = {id(peer): number for number, peer in enumerate(peers)}
    return dict(sorted(hosts.items(), key=lambda item: order[id(item[1])])), notes


def numeric_address(peer: Peer) -> str | None:
    """Return its address as ssh takes it, None without one: a name would be looked up by who knows whom."""
    try:
        address = ipaddress.ip_address(peer.address or "")
    except ValueError:
        return None
    if address.version == 4 or not address.is_link_local:
        return str(address)
    return f"{address}%{peer.interface}" if INTERFACE.fullmatch(peer.interface or "") else None


def _variables(peer: Peer) -> dict[str, Any]:
    here = {"ansible_connection": "local"} if peer.self else {}  # who asks need not let itself in by ssh
    versions = peer.versions
    about = {
        "id": peer.id,
        "cluster": plain(peer.cluster),
        "interface": plain(peer.interface or ""),
        "port": peer.port,
        "alive": peer.alive,
        "gpus": peer.gpus,
        "gpu": plain(peer.gpu),
        "vram_mib": list(peer.vram_mib),
        "driver": plain(versions.driver),
        "cuda": plain(versions.cuda),
        "torch": plain(versions.torch),
        "nccl": plain(versions.nccl),
        "python": plain(versions.python),
    }
    return {"ansible_host": numeric_address(peer), **here, NODE: about}


# --- groups ------------------------------------------------------------------------------------------------


def _models(peer: Peer) -> tuple[str, ...]:
    """Return the models of its GPUs; ``none`` without any, ``unknown`` where it does not tell."""
    return (peer.models or ("unknown",)) if peer.gpus else ("none",)


def _name_groups(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """Return a group for each name: letters, digits and underscores. Different names get different groups."""
    groups: dict[str, str] = {}
    for name in sorted(names, key=lambda n: (n != _safe(n), n)):  # whoever is safe already keeps its name
        group = f"{prefix}_{_safe(name)}"
        if not _safe(name) or group in groups.values():
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            group = f"{group}_{mark}" if _safe(name) else f"{group}{mark}"
        groups[name] = group
    return groups


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name.lower())[:GROUP_LIMIT].strip("_")
