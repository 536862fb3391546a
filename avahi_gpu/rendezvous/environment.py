"""The environment that makes gloo, NCCL and tensorpipe use the interface of the round. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def interface_variables(interface: str, address: str) -> dict[str, str]:
    """Return the variables that bind torch's transports to ``interface``, whose address is ``address``.

    NCCL matches prefixes unless the name is given with ``=`` (NCCL's documentation of NCCL_SOCKET_IFNAME);
    without a family it may take a link-local IPv6 address.
    """
    return {
        "GLOO_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",
        "NCCL_SOCKET_FAMILY": "AF_INET6" if ":" in address else "AF_INET",
        "TP_SOCKET_IFNAME": interface,
    }


def missing_variables(
    wanted: Mapping[str, str], environ: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return those of ``wanted`` that the user has not set; ``ours`` is what we set for an earlier round."""
    return {k: v for k, v in wanted.items() if k not in environ or environ[k] == ours.get(k)}
