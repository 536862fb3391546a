"""``python -m avahi_gpu.cli.manuals``: write the man pages and the reference, from the source of ``--help``.

Developers run it by ``scripts/manuals`` after a change of commands, of their pages or of the version.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer.main

from avahi_gpu import __released__, __version__
from avahi_gpu.cli.pages import settings
from avahi_gpu.cli.program import app
from avahi_gpu.cli.tree import read_program
from avahi_gpu.files.config import EXAMPLES, complain
from avahi_gpu.files.settings import VARIABLES
from avahi_gpu.render.manual import Setting
from avahi_gpu.render.reference import make_reference
from avahi_gpu.render.roff import make_page, make_settings_page
from avahi_gpu.render.words import make_words

USAGE = "usage: python -m avahi_gpu.cli.manuals FOLDER, or --all in a checkout\n"
WORDS = Path(__file__).with_name("words.py")
CHECKOUT = WORDS.parents[2]


def man_pages() -> dict[str, str]:
    """Return the manual pages: ``man1/avahi-gpu-doctor.1`` -> roff."""
    program, *commands = read_program(typer.main.get_command(app))
    told = {"version": __version__, "date": __released__}
    made = {f"man1/{program.title}.1": make_page(program, commands, **told)}
    made |= {f"man1/{c.title}.1": make_page(c, (), **told) for c in commands}
    return made | {"man5/avahi-gpu.toml.5": make_settings_page(read_settings(), settings.PAGE, **told)}


def reference() -> str:
    """Return the page of the command line among the documents, in Markdown."""
    program, *commands = read_program(typer.main.get_command(app))
    return make_reference(program, commands)


def words() -> str:
    """Return the module ``cli/words.py``, which the completion reads."""
    program, *commands = read_program(typer.main.get_command(app))
    return make_words(program, commands)


def read_settings() -> list[Setting]:
    """Return what is told of each setting of config.toml."""
    return [
        Setting(
            name, says, complain(name, None), EXAMPLES[name], VARIABLES[name], settings.OPTIONS.get(name, "")
        )
        for name, says in settings.SAYS.items()
    ]


def write(folder: Path, texts: dict[str, str]) -> None:
    """Write the files below ``folder``, and remove pages of ours that are no more."""
    for old in folder.glob("man[15]/avahi-gpu*"):
        if str(old.relative_to(folder)) not in texts:
            old.unlink()
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.stderr.write(USAGE)
        sys.exit(2)
    if sys.argv[1] == "--all":
        write(CHECKOUT / "man", man_pages())
        (CHECKOUT / "docs/reference/command-line.md").write_text(reference(), encoding="utf-8")
        WORDS.write_text(words(), encoding="utf-8")
    else:
        write(Path(sys.argv[1]), man_pages())
