"""Runs inside a virtual host and does one thing with Avahi; each event is a line of JSON with the time.

    python -m tests.lab.drive watch TYPE                       events of a Browser, until killed
    python -m tests.lab.drive publish TYPE NAME [--probe]      a Publication; ``a=1`` on stdin is a new TXT
    python -m tests.lab.drive look TYPE [N] [SECONDS]          one look

Times are time.monotonic(), which all hosts of one machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from avahi_gpu.avahi.browse import Appeared, Browser, browse
from avahi_gpu.avahi.bus import connect
from avahi_gpu.avahi.publish import Publication
from avahi_gpu.model import Service

PORT = 4711


def say(event: str, **values: Any) -> None:
    print(json.dumps({"event": event, "at": time.monotonic(), **values}), flush=True)


def plain(service: Service) -> dict[str, Any]:
    return {**asdict(service), "txt": [item.decode() for item in service.txt]}


async def watch(kind: str) -> None:
    async with connect() as avahi, Browser(avahi, kind) as browser:
        say("ready")
        async for event in browser:
            if isinstance(event, Appeared):
                say("appeared", **plain(event.service))
            else:
                say("left", name=event.name)


async def publish(kind: str, name: str, *, probe: bool) -> None:
    loop = asyncio.get_running_loop()
    async with connect() as avahi:
        say("start")
        async with Publication(avahi, kind, name, PORT, [b"a=0"], probe=probe) as publication:
            say("committed")
            await asyncio.wait_for(publication.established(), 5)
            say("established", name=publication.name)
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                publication.update([line.strip().encode()])
                say("updating")
        say("leaving")


async def look(kind: str, expect: int | None, within_s: float) -> None:
    async with connect() as avahi:
        started = time.monotonic()
        listing = await browse(avahi, kind, expect=expect, within_s=within_s)
        say(
            "looked",
            elapsed_s=time.monotonic() - started,
            services=[plain(s) for s in listing.services],
            unresolved=list(listing.unresolved),
        )


def main(argv: list[str]) -> None:
    match argv:
        case ["watch", kind]:
            asyncio.run(watch(kind))
        case ["publish", kind, name, *rest]:
            asyncio.run(publish(kind, name, probe="--probe" in rest))
        case ["look", kind, *rest]:
            expect = int(rest[0]) if rest and rest[0] != "-" else None
            asyncio.run(look(kind, expect, float(rest[1]) if rest[1:] else 1.35))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
