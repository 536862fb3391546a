"""What a launch would do, without doing it; and how many nodes it could be meant for."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from avahi_gpu.avahi.browse import browse
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import AvahiGpuError, MalformedInput, Misuse
from avahi_gpu.files.cluster_key import PATH_VARIABLE
from avahi_gpu.files.txt import decode
from avahi_gpu.host.key_file import KeyFile
from avahi_gpu.host.net import interface_of, read_interfaces
from avahi_gpu.launch.command import Request, leftovers, torchrun_arguments
from avahi_gpu.launch.job import own_host
from avahi_gpu.launch.neighbours import host_of
from avahi_gpu.model import NODE_SERVICE, Interface
from avahi_gpu.rendezvous.environment import Demand, interface_variables, missing_variables, read_demand
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.networks import attachments, choose_address, describe


@dataclass(frozen=True)
class Plan:
    """``notes`` for people, the environment ``variables`` that would be set, and the torchrun ``command``."""

    notes: tuple[str, ...]
    variables: dict[str, str]
    command: tuple[str, ...]


def suggest_nodes(cluster: str, *, ranges: bool = True) -> Misuse:
    """Return the error of a launch that was told no number of nodes, with what the LAN says.

    One node each would train alone and look fine, and the number that answers now may lack one that is
    still booting: only the user knows. ``ranges``: whether the command takes MIN:MAX.
    """
    seen: list[str] = []
    with suppress(AvahiGpuError):
        seen = see_nodes(cluster)
    hint = "for example --nnodes 3"
    if ranges:
        hint += ", or --nnodes 2:3 for a job that goes on with two"
    if seen:
        count = f"{len(seen)} nodes of cluster {cluster} are" if len(seen) > 1 else "one node is"
        hint = f"{count} on the LAN now ({', '.join(seen)}): --nnodes {len(seen)} for all of them"
    return Misuse("the number of nodes is not given", hint)


def see_nodes(cluster: str) -> list[str]:
    """Return the host names of the cluster's nodes on the LAN. Raises a BusError."""

    async def look() -> list[str]:
        async with connect() as avahi:
            found = set()
            for service in (await browse(avahi, NODE_SERVICE)).services:
                with suppress(MalformedInput):
                    if decode(service.txt).cluster == cluster:
                        found.add(host_of(service.host))
            return sorted(found)

    return asyncio.run(look())


def make_plan(request: Request, skills: Skills, *, key_named: bool = False) -> Plan:
    """Return what a launch would do. Raises AvahiGpuError where no job could start.

    ``key_named``: the key's file was named on the command line, where torchrun cannot know it from.
    """
    interfaces = read_interfaces()
    words = request.interface_words
    demand = read_demand(request.interface, os.environ, request.interfaces, words)
    address = choose_address(interfaces, demand, alone=request.max_nodes == 1)
    interface = interface_of(address, interfaces)
    from avahi_gpu.launch.agent import count_processes  # imports torch

    wanted = interface_variables(interface.name, address) if interface is not None else {}
    variables = missing_variables(wanted, os.environ, {})
    if request.key is not None and key_named:
        variables[PATH_VARIABLE] = request.key.path
    notes = [
        f"job {request.job} in cluster {request.cluster} on {own_host()}",
        f"torch {skills.torch}, Python {skills.python}, {sys.executable}",
        *describe_choice(interfaces, demand, address),
        describe_key(request.key),
        describe_nodes(request.cluster),
    ]
    notes += [
        f"{name} is set already and stays: {os.environ[name]}" for name in wanted if name not in variables
    ]
    notes += [f"{name} would be ignored" for name in leftovers(os.environ)]
    notes.append("MASTER_ADDR, MASTER_PORT and the ranks come from the round that the nodes agree on")
    command = ("torchrun", *torchrun_arguments(request, count_processes(request.processes)))
    return Plan(tuple(notes), variables, command)


def describe_choice(interfaces: Sequence[Interface], demand: Demand, address: str) -> list[str]:
    """Return which interface would be used, and which ones then."""
    by_name = {i.name: i for i in interfaces}
    found = [describe(by_name[a.interface], a.address) for a in attachments(interfaces, demand)]
    if not found:
        return [f"address {address}: the job has no other node"]
    why = f"as {demand.words} asks" if demand.words else "the best of this node"
    notes = [f"interface {found[0]}: {why}; it is used where the network is shared by all nodes"]
    if found[1:]:
        notes.append(f"else, in this order: {', '.join(found[1:])}")
    return notes


def describe_key(file: KeyFile | None) -> str:
    """Return whose nodes would be let in."""
    if file is None:
        return "no cluster key: whoever is on the LAN may join"
    return f"cluster key {file.path}, fingerprint {file.key.fingerprint}: only nodes that hold it may join"


def describe_nodes(cluster: str) -> str:
    """Return which nodes are on the LAN."""
    try:
        seen = see_nodes(cluster)
    except AvahiGpuError as error:
        return f"nodes on the LAN are not known: {error.message}"
    return f"nodes on the LAN now: {', '.join(seen)}" if seen else "no node is on the LAN now"
