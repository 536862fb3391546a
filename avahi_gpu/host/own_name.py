"""What this machine's own name means to Python, and so to torch; and which .local names /etc/hosts pins."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from typing import TYPE_CHECKING

from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.avahi.names import ANY, IPV4, IPV6, SERVER_PATH, USE_MULTICAST
from avahi_gpu.errors import BusError, MalformedInput
from avahi_gpu.files import etc_hosts
from avahi_gpu.host import net
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import DEFAULT_PORT, OwnName, PinnedName

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

OWN_NAME_S = 5.0  # files answer at once; a dead name server takes 10 s, and another check tells of it
ASK_AVAHI_S = 1.5  # known names come from its cache; for others it asks the LAN, which takes a second
PROBE_S = 1.0
PINNED_S = OWN_NAME_S  # a question to Avahi, then the address itself
MAX_PINNED = 16  # questions; a hosts file that blocks thousands of names has none of them in .local

# in a process of its own: glibc may hang, and reads its configuration anew there
_ASK = """
import json, socket
name = socket.gethostname()
try:
    flags = dict(proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
    found, error = [(e[3], e[4][0]) for e in socket.getaddrinfo(name, None, **flags)], ""
except (OSError, UnicodeError) as fault:
    found, error = [], getattr(fault, "strerror", "") or str(fault)
print(json.dumps({"name": name, "fqdn": socket.getfqdn(), "found": found, "error": error}))
"""


async def read(ground: Ground) -> OwnName:
    """Return what Python is told of the own name. Raises OSError where nobody answered in time."""
    return await aside(read_own_name, ground.system)


def read_own_name(system: System) -> OwnName:
    """Ask Python's socket module, in a process of its own. Raises OSError where it did not answer."""
    done = system.run([sys.executable, "-I", "-S", "-c", _ASK], OWN_NAME_S)
    if not done.ok:
        raise OSError(done.reason)
    return parse_answer(done.stdout)


def parse_answer(text: str) -> OwnName:
    """Return what the process printed. Raises MalformedInput where it is something else."""
    try:
        told = json.loads(text)
        found = tuple((str(canonical), str(address)) for canonical, address in told["found"])
        return OwnName(str(told["name"]), str(told["fqdn"]), found, str(told["error"]))
    except (ValueError, TypeError, LookupError, RecursionError) as fault:
        raise MalformedInput("the answer of Python's socket module", str(fault)[:80]) from None


async def read_pinned(ground: Ground) -> tuple[PinnedName, ...]:
    """Return the names in .local that /etc/hosts gives an address, with Avahi's word on those of others."""
    daemon = await ground.daemon()
    own = {f"{name}.local".lower() for name in (platform.node().partition(".")[0], daemon.host_name)}
    pinned = list_pinned((ground.etc_hosts.content or b"").decode("utf-8", "replace"))
    foreign = [p for p in pinned if p.name not in own and not etc_hosts.is_loopback(p.address)]
    if not foreign or not daemon.on_bus:
        return pinned
    async with connect(need_avahi=False) as avahi:
        asked = await asyncio.gather(*(_ask(avahi, p) for p in foreign))
    answers = dict(zip(foreign, asked, strict=True))
    return tuple(answers.get(p, p) for p in pinned)


def list_pinned(text: str) -> tuple[PinnedName, ...]:
    """Return each name in .local with each of its addresses, in the file's order, a bounded number."""
    found = [
        PinnedName(entry.line, name.lower().rstrip("."), entry.address)
        for entry in etc_hosts.find_pinned(text)
        for name in entry.names
        if etc_hosts.is_mdns_name(name)
    ]
    return tuple(found[:MAX_PINNED])


async def _ask(avahi: Avahi, pinned: PinnedName) -> PinnedName:
    """Ask Avahi for the name, and whoever is at the pinned address whether it is there, and for its name."""
    protocol = IPV6 if ":" in pinned.address else IPV4
    name = (ANY, ANY, pinned.name, protocol, USE_MULTICAST)
    address = (ANY, ANY, pinned.address, USE_MULTICAST)
    told, holder, answers = await asyncio.gather(
        _resolve(avahi, "ResolveHostName", "iisiu", name, 4),
        _resolve(avahi, "ResolveAddress", "iisu", address, 4),
        net.probe(pinned.address, DEFAULT_PORT, PROBE_S),
    )
    addresses = (told,) if told else ()
    return PinnedName(pinned.line, pinned.name, pinned.address, addresses, holder.lower(), answers)


async def _resolve(avahi: Avahi, member: str, signature: str, body: tuple[object, ...], place: int) -> str:
    try:
        answer = await avahi.call(SERVER_PATH, "Server", member, signature, *body, within_s=ASK_AVAHI_S)
    except BusError:  # nobody has that name, or Avahi takes longer than we wait
        return ""
    return str(answer[place])
