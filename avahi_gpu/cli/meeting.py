"""The options of the commands whose nodes meet, ``launch`` and ``bench``, and the settings they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from avahi_gpu.files.settings import Settings
    from avahi_gpu.host.system import System

Peers = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help="Addresses of other nodes, where multicast is blocked.", show_default=False
    ),
]
LostAfter = Annotated[
    float, typer.Option(metavar="SECONDS", help="Silence that means a node is lost; at least 2.")
]
JoinTimeout = Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait for enough nodes.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Whose nodes take part. [default: AVAHI_GPU_CLUSTER, else the one of setup]"
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The cluster key. [default: the one of `avahi-gpu key check`, if any]"),
]


def settle(
    system: System,
    environment: Mapping[str, str],
    *,
    cluster: str | None,
    interface: str | None,
    peers: str | None,
    key_file: str | None,
) -> Settings:
    """Return the settings with what these options say in front. Raises Misuse, MalformedConfiguration."""
    from avahi_gpu.host.configuration import read_settings
    from avahi_gpu.launch import command as asked

    flags = {
        "cluster": ("--cluster", asked.check_cluster(cluster) if cluster is not None else None),
        "interface": ("--interface", asked.check_interface(interface)),
        "peers": ("--peers", asked.split_peers(peers) if peers is not None else None),
        "key_file": ("--key-file", key_file),
    }
    return read_settings(system, environment, flags)
