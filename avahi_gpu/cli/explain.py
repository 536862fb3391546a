"""``avahi-gpu explain``: the page of one finding, offline."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from avahi_gpu.cli.outcome import guarded
from avahi_gpu.cli.shipped import folder_of
from avahi_gpu.errors import AvahiGpuError, Misuse
from avahi_gpu.render.text import console

if TYPE_CHECKING:
    from avahi_gpu.checks.registry import Check


def command(
    finding: Annotated[str, typer.Argument(metavar="ID", help="Such as AG104 or mdns-before-dns.")],
) -> None:
    """Show what a finding of the doctor means, and how to mend it."""
    with guarded("explain"):
        text = page_path(chosen(finding)).read_text(encoding="utf-8")
        if sys.stdout.isatty():
            from rich.markdown import Markdown

            console().print(Markdown(text))
        else:
            sys.stdout.write(text)


def chosen(name: str) -> Check:
    """Return the check of that id or slug. Raises Misuse that names the nearest one."""
    import avahi_gpu.checks  # noqa: F401  registers them
    from avahi_gpu.checks.registry import all_checks, find_check

    found = find_check(name)
    if found is not None:
        return found
    names = {n.lower(): n for c in all_checks() for n in (c.id, c.slug)}
    well_formed = re.fullmatch(r"AG\d{3}", name.strip().upper())  # another number is another question
    near = [] if well_formed else difflib.get_close_matches(name.strip().lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    raise Misuse(f"there is no finding {name!r}", f"{hint}avahi-gpu doctor --list shows all of them")


def page_path(check: Check) -> Path:
    """Return where the page of ``check`` lies. Raises AvahiGpuError where the installation lacks it."""
    folder = folder_of("findings")
    page = folder / f"{check.id}.md" if folder is not None else None
    if page is not None and page.is_file():
        return page
    raise AvahiGpuError(f"the page of {check.id} is not installed", "install avahi-gpu again")
