"""What is told of ``avahi-gpu explain``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="show the page of one finding of the doctor",
    examples=(
        Example("avahi-gpu explain AG104", "by its id"),
        Example("avahi-gpu explain mdns-before-dns", "by its name"),
        Example("avahi-gpu doctor --list", "all of them"),
    ),
    offers={"ID": "@findings"},
    exits={"0": EXITS["0"], "1": "the page is not installed", "2": "there is no such finding"},
    see=("avahi-gpu-doctor(1)",),
)
