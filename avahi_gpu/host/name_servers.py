"""Ask every name server of resolv.conf, side by side, who is responsible for ``local``."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from avahi_gpu.files import dns_message, resolv_conf
from avahi_gpu.files.dns_message import Reply
from avahi_gpu.model import NameServer, ServerWord

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

PORT = 53
DEADLINE_S = 2.5  # a resolver that goes out to the world answers in a second; glibc itself waits for five
AGAIN_S = 0.8  # one lost packet must not look like a dead server
PROBER_S = DEADLINE_S + 1.0
MESSAGE_MAX = 4096
DOMAIN = "local."  # what nss-mdns asks on each look-up (util.c)
ROOT = "."  # what every resolver knows

RESOLVED_STUBS = ("127.0.0.53", "127.0.0.54")
RESOLVED_CONF = "/run/systemd/resolve/resolv.conf"  # the servers that systemd-resolved itself asks

_WORDS: dict[int, ServerWord] = {
    dns_message.NXDOMAIN: "nxdomain",
    dns_message.SERVFAIL: "servfail",
    dns_message.REFUSED: "refused",
}


async def read(ground: Ground) -> tuple[NameServer, ...]:
    """Return glibc's name servers in its order, then those that systemd-resolved asks on their behalf."""
    state = ground.resolv_conf
    if state.content is None and state.exists:
        raise OSError(errno.EACCES, state.error or "could not be read", state.path)
    own = resolv_conf.parse(_text(state.content)).nameservers
    behind: tuple[str, ...] = ()
    if any(address in RESOLVED_STUBS for address in own):
        content = ground.system.read(RESOLVED_CONF).content
        if content is not None:
            behind = tuple(a for a in resolv_conf.parse(_text(content)).nameservers if a not in own)
    return tuple(
        await asyncio.gather(
            *(ask(address) for address in own), *(ask(address, upstream=True) for address in behind)
        )
    )


async def ask(address: str, *, port: int = PORT, upstream: bool = False) -> NameServer:
    """Ask one server by UDP; never raises for what it does or does not do."""
    loop = asyncio.get_running_loop()
    started = loop.time()

    def told(says: ServerWord, others: bool | None = None) -> NameServer:
        return NameServer(address, says, loop.time() - started, others, upstream)

    try:
        family, *_, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )[0]
    except OSError:
        return told("odd")
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        try:
            sock.connect(target)
        except OSError:
            return told("unreachable")
        try:
            return await _converse(sock, told)
        except ConnectionRefusedError:
            return told("closed")
        except OSError as fault:
            # the kernel gave up looking for its MAC address after three seconds: glibc waits as long
            dead = fault.errno in (errno.EHOSTUNREACH, errno.EHOSTDOWN) and loop.time() - started > AGAIN_S
            return told("silent" if dead else "unreachable")


async def _converse(sock: socket.socket, told: Callable[..., NameServer]) -> NameServer:
    loop = asyncio.get_running_loop()
    end = loop.time() + DEADLINE_S
    number = secrets.randbelow(1 << 16)
    about_local = dns_message.make_query(number, DOMAIN, dns_message.TYPE_SOA)
    about_root = dns_message.make_query(number ^ 1, ROOT, dns_message.TYPE_SOA)
    knows_root = False
    for pause_s, queries in ((AGAIN_S, (about_local,)), (DEADLINE_S, (about_local, about_root))):
        for query in queries:
            sock.send(query)
        pause_end = min(end, loop.time() + pause_s)
        while (left_s := pause_end - loop.time()) > 0:
            try:
                message = await asyncio.wait_for(loop.sock_recv(sock, MESSAGE_MAX), left_s)
            except asyncio.TimeoutError:
                break
            reply = dns_message.read_reply(message, about_local)
            if reply is not None:
                return told(word_of(reply))
            knows_root = knows_root or dns_message.read_reply(message, about_root) is not None
    return told("silent", knows_root)


def word_of(reply: Reply) -> ServerWord:
    """Return what an answer means to nss-mdns: any record in it makes the domain somebody's."""
    if reply.rcode == dns_message.NOERROR:
        return "owner" if reply.answers else "nodata"
    return _WORDS.get(reply.rcode, "odd")


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")
