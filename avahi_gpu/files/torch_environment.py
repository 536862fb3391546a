"""What the environment says to torchrun and to torch's own rendezvous. Pure: the variables come in.

torchrun takes every option that is not on its command line from ``PET_<OPTION>``
(torch/distributed/argparse_util.py); scripts started without it read MASTER_ADDR and MASTER_PORT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from avahi_gpu.files.etc_hosts import is_address, is_loopback
from avahi_gpu.model import Endpoint

# where these are set somebody prepares, or is in, a run of torch: what they say is worth a look
PREFIXES = ("MASTER_", "PET_", "NCCL_", "GLOO_", "TP_", "TORCH", "TORCHELASTIC_")
OTHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "RES_OPTIONS", "DLTS_HOSTFILE")
C10D_PORT = 29400  # DEFAULT_PORT of c10d_rendezvous_backend.py, where the endpoint names none
BY_HAND = ("c10d", "static", "")  # torchrun's own backends; '' is static
MAX_VALUE = 256  # characters that are kept of a value
_TRUE = frozenset({"1", "true", "t", "yes", "y"})  # RendezvousParameters.get_as_bool


def choose(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that torch, gloo, NCCL or the resolver read, each cut to a bounded length."""
    return {
        name: value[:MAX_VALUE]
        for name, value in sorted(environ.items())
        if name in OTHERS or name.startswith(PREFIXES)
    }


def endpoints(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the endpoints that the variables name, those of torchrun first."""
    found: list[Endpoint] = []
    given = environ.get("PET_RDZV_ENDPOINT", "").strip()
    if given and environ.get("PET_RDZV_BACKEND", "") in BY_HAND:
        found.append(_split("PET_RDZV_ENDPOINT", given))
    elif not given and environ.get("PET_MASTER_ADDR"):
        found.append(
            _join("PET_MASTER_ADDR", environ["PET_MASTER_ADDR"], environ.get("PET_MASTER_PORT", "29500"))
        )
    if "MASTER_ADDR" in environ:
        found.append(_join("MASTER_ADDR", environ["MASTER_ADDR"], environ.get("MASTER_PORT", "29500")))
    return tuple(found)


def is_by_hand(environ: Mapping[str, str]) -> bool:
    """Whether a run of several machines is prepared that goes by addresses and names typed by somebody."""
    if environ.get("PET_RDZV_BACKEND", "") not in BY_HAND or environ.get("PET_STANDALONE"):
        return False
    named = any(e.host and not is_loopback(e.host) and e.host != "localhost" for e in endpoints(environ))
    return (named or environ.get("PET_RDZV_BACKEND", "") == "c10d") and nodes(environ) != 1


def nodes(environ: Mapping[str, str]) -> int | None:
    """Return the largest number of nodes that PET_NNODES asks for, None where it does not tell."""
    found = re.fullmatch(r"(?:\d+:)?(\d{1,6})", environ.get("PET_NNODES", "").strip())
    return int(found[1]) if found else None


def is_host(environ: Mapping[str, str]) -> bool | None:
    """Return ``is_host`` of PET_RDZV_CONF, None where it is not given: c10d then guesses."""
    for pair in environ.get("PET_RDZV_CONF", "").split(","):
        key, _, value = pair.strip().partition("=")
        if key == "is_host":
            return value.strip().lower() in _TRUE
    return None


def matches_machine(
    host: str, host_addresses: tuple[str, ...], name: str, found: tuple[tuple[str, str], ...]
) -> bool:
    """Say what c10d's guess says: whether an endpoint's host is this machine.

    The same rules as ``_matches_machine_hostname`` of torch/distributed/elastic/rendezvous/utils.py (2.5 to
    2.13). ``name`` is gethostname(), ``found`` its canonical names and addresses by getaddrinfo.
    """
    if host in ("localhost", name) or (is_address(host) and is_loopback(host)):
        return True
    return any(host in (canonical, address) or address in host_addresses for canonical, address in found)


def _split(variable: str, text: str) -> Endpoint:
    """Read ``host``, ``host:port`` or ``[address]:port`` as parse_rendezvous_endpoint does."""
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", text)
    if bracketed:
        return _join(variable, bracketed[1], bracketed[2] if bracketed[2] is not None else str(C10D_PORT))
    host, colon, port = text.rpartition(":")
    if colon and ":" not in host:
        return _join(variable, host, port)
    return _join(variable, text, str(C10D_PORT))


def _join(variable: str, host: str, port: str) -> Endpoint:
    number = int(port) if re.fullmatch(r"\d{1,5}", port.strip()) and int(port) <= 65535 else None
    malformed = ""
    if not host.strip():
        malformed = "there is no host"
    elif "://" in host or "/" in host or re.search(r"\s", host):
        malformed = f"{host!r} is not a host"
    elif "%" in host:
        malformed = f"torchrun takes no zone: {host!r}"
    elif number is None:
        malformed = f"{port!r} is not a port"
    return Endpoint(variable, host, number, malformed)
