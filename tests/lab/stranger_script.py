"""A stranger on the LAN, who has no key and means no good. Says ``ready`` after each thing it has begun.

publish JOB N         N records of the job, as its best candidate, led to the ports of ``serve``
serve                 listen on all control ports: silence, garbage, or a leader's words without any proof
flood HOST…           connect to the control ports of these hosts without end, some with garbage
listen FILE           write down what others say on control ports, for ``replay``
replay FILE HOST      say to the control port of a host what was written down; print its answer
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import struct
import sys
from pathlib import Path

from avahi_gpu.avahi.bus import connect
from avahi_gpu.avahi.names import (
    ANY,
    CLASS_IN,
    PUBLISH_NO_PROBE,
    PUBLISH_UNIQUE,
    SERVER_PATH,
    TYPE_PTR,
    TYPE_SRV,
    TYPE_TXT,
)
from avahi_gpu.avahi.records import encode_name, encode_srv, encode_txt, split_name
from avahi_gpu.model import DOMAIN, JOB_SERVICE
from avahi_gpu.rendezvous import messages as m

PORTS = range(29400, 29420)
PER_GROUP = 10  # instances of three records: avahi-daemon's entries-per-entry-group-max is 32
AT_ONCE = 8  # groups that are filled side by side
OPEN_AT_ONCE = 60
PATIENCE_S = 300.0  # with an avahi-daemon that has thousands of records to look after
ETH_P_IP = 0x0800


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def publish(job: str, count: int) -> None:
    where = f"{JOB_SERVICE}.{DOMAIN}"
    unique = PUBLISH_UNIQUE | PUBLISH_NO_PROBE
    async with connect() as avahi:
        (host,) = await avahi.call(SERVER_PATH, "Server", "GetHostNameFqdn", within_s=PATIENCE_S)

        async def fill(first: int) -> None:
            (path,) = await avahi.call(SERVER_PATH, "Server", "EntryGroupNew", within_s=PATIENCE_S)

            async def call(member: str, signature: str, *body: object) -> None:
                await avahi.call(path, "EntryGroup", member, signature, *body, within_s=PATIENCE_S)

            for number in range(first, min(first + PER_GROUP, count)):
                id = secrets.token_hex(8)
                label = f"a-{id}"
                txt = encode_txt([b"txtvers=1", f"id={id}".encode(), f"job={job}".encode(), b"prio=1000000"])
                pointer = encode_name([label, *split_name(where)])
                service = encode_srv(PORTS[number % len(PORTS)], host)
                name = f"{label}.{where}"
                for flags, owner, kind, data in (
                    (0, where, TYPE_PTR, pointer),
                    (unique, name, TYPE_SRV, service),
                    (unique, name, TYPE_TXT, txt),
                ):
                    arguments = (ANY, ANY, flags, owner, CLASS_IN, kind, 4500, data)
                    await call("AddRecord", "iiusqquay", *arguments)
            await call("Commit", "")

        gate = asyncio.Semaphore(AT_ONCE)

        async def fill_in_turn(first: int) -> None:
            async with gate:
                await fill(first)

        await asyncio.gather(*(fill_in_turn(first) for first in range(0, count, PER_GROUP)))
        say(ready="publish")
        await asyncio.Event().wait()


async def serve() -> None:
    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        with contextlib.suppress(OSError):
            if port % 3 == 1:
                writer.write(secrets.token_bytes(2000) + b"\n")
            elif port % 3 == 2:
                me = m.Record("0" * 16, "gpu-node-1", "127.0.0.1", port, 1_000_000)
                writer.write(m.encode(m.Welcome(me, 7)) + 50 * m.encode(m.Waiting(("evil",), 2, 2, "obey")))
            await reader.read()

    for port in PORTS:
        await asyncio.start_server(hear, "0.0.0.0", port)
    say(ready="serve")
    await asyncio.Event().wait()


async def flood(hosts: list[str]) -> None:
    async def pester(number: int) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                host = hosts[number % len(hosts)]
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, PORTS[0]), 1)
                if number % 2:
                    writer.write(secrets.token_bytes(100) + b"\n" if number % 4 == 1 else b'{"type":"prove"')
                await asyncio.sleep(0.2)
                writer.close()
            await asyncio.sleep(0.01)

    say(ready="flood")
    await asyncio.gather(*(pester(number) for number in range(OPEN_AT_ONCE)))


def listen(file: Path) -> None:
    """Write down the payload of every TCP segment to a control port that passes this host's eth0."""
    ears = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    ears.bind(("eth0", 0))
    say(ready="listen")
    with file.open("wb") as notes:
        while True:
            frame = ears.recv(65535)[14:]
            head = 4 * (frame[0] & 15)
            if frame[9] != socket.IPPROTO_TCP:
                continue
            segment = frame[head : struct.unpack("!H", frame[2:4])[0]]
            port = struct.unpack("!H", segment[2:4])[0]
            payload = segment[4 * (segment[12] >> 4) :]
            if port in PORTS and payload:
                notes.write(payload)
                notes.flush()


def replay(file: Path, host: str) -> None:
    with socket.create_connection((host, PORTS[0]), 5) as line:
        line.sendall(file.read_bytes())
        line.settimeout(5)
        heard = b""
        with contextlib.suppress(OSError):
            while part := line.recv(65536):
                heard += part
    say(ready="replay", heard=heard.decode("utf-8", "replace"))


def main(argv: list[str]) -> None:
    match argv:
        case ["publish", job, count]:
            asyncio.run(publish(job, int(count)))
        case ["serve"]:
            asyncio.run(serve())
        case ["flood", *hosts]:
            asyncio.run(flood(hosts))
        case ["listen", file]:
            listen(Path(file))
        case ["replay", file, host]:
            replay(Path(file), host)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
