"""What is told of each command beside its parameters: examples, groups of options, exit codes, files.

One module a command, each with a ``PAGE``, as data that ``--help``, the man pages, the reference and the
completion share. A parameter says itself what it does, in ``cli/<command>.py``.
"""

from __future__ import annotations

from importlib import import_module

from avahi_gpu.render.manual import Page


def page_of(command: str) -> Page:
    """Return the page of a command, '' being the program; an empty one where somebody forgot to write it."""
    name = command or "program"
    try:
        page = import_module(f"avahi_gpu.cli.pages.{name}").PAGE
    except ModuleNotFoundError:
        return Page(summary=name)
    assert isinstance(page, Page)
    return page
