"""The command line: one module a command, each with a function ``command``."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from avahi_gpu.cli.app import read_ahead
from avahi_gpu.cli.outcome import finish, guarded, tell_error, write_json
from avahi_gpu.cli.plain_values import spare_adapters
from avahi_gpu.errors import ExitCode
from avahi_gpu.result import failed

# what each of them takes beside its own options; in the order in which people need them. A command is a
# module here and a page in ``cli/pages``
COMMANDS: dict[str, dict[str, Any]] = {
    "setup": {},
    "undo": {},
    "doctor": {},
    "explain": {},
    "peers": {},
    "jobs": {},
    "key": {},
    # everything behind the script's name is the script's own
    "launch": {"allow_extra_args": True, "allow_interspersed_args": False},
    "bench": {},
    "completion": {},
    # for the unit that setup installs
    "refresh": {},
}
HIDDEN = frozenset({"refresh"})
HELP = {"help_option_names": ["-h", "--help"]}


# what the parser raises for words that it does not understand; typer brings a parser of its own since 0.26,
# and used the library click before
UsageError: Any = typer.BadParameter.__bases__[0]


class PlainCommand(TyperCommand):
    """A command that reads plain words without a validator's help."""

    def get_params(self, ctx: Any) -> Any:
        """Return its options and arguments."""
        return spare_adapters(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        """Return what ``--help`` prints."""
        from avahi_gpu.cli.tree import read_command
        from avahi_gpu.render.help import show_help

        return show_help(read_command(str(self.name), self), **_terminal())


class LateCommands(TyperGroup):
    """The commands, each imported when it is asked for: together they would cost every start 0.5 s."""

    def get_params(self, ctx: Any) -> Any:
        """Return the program's own options."""
        return spare_adapters(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        """Return what ``--help`` prints, without a look at any command."""
        from avahi_gpu.cli.pages import page_of
        from avahi_gpu.cli.tree import read_command
        from avahi_gpu.render.help import show_program

        commands = [(name, page_of(name)) for name in self.list_commands(ctx)]
        return show_program(read_command("", self), commands, **_terminal())

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [name for name in COMMANDS if name not in HIDDEN]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"avahi_gpu.cli.{cmd_name}")
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        words = {**HELP, **COMMANDS[cmd_name]}
        single.command(cmd_name, cls=PlainCommand, context_settings=words)(module.command)
        return typer.main.get_command(single)

    # Ctrl-C while typer and the command are being loaded ends as it does later: typer itself says nothing

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read the program's own options."""
        command, as_json = read_ahead(sys.argv[1:])
        with guarded(command, as_json=as_json):
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        command, as_json = read_ahead(sys.argv[1:])
        with guarded(command, as_json=as_json):
            return super().invoke(ctx)


app = typer.Typer(
    name="avahi-gpu",
    cls=LateCommands,
    help="Machines with GPUs on one LAN become one PyTorch cluster, with no address typed anywhere.",
    add_completion=False,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the versions of avahi-gpu, Avahi, Python and torch, and exit."),
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="With --version: another Python, whose torch is told."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: one JSON object.")] = False,
) -> None:
    """Options of the program itself."""
    if version:
        from avahi_gpu.cli import version as versions

        with guarded(versions.COMMAND, as_json=as_json):
            finish(versions.tell_versions(python), as_json=as_json, show=versions.show)
    if python is not None or as_json:
        context.fail("--python and --json stand behind a command, or beside --version.")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def run(arguments: list[str]) -> int:
    """Run the program with these arguments and return its exit code; never raises for wrong words."""
    if not arguments:
        from avahi_gpu.cli.pages import page_of
        from avahi_gpu.model.words import SERVICE_FILE
        from avahi_gpu.render.help import show_first_steps

        is_node = os.path.exists(SERVICE_FILE)  # noqa: PTH110 - a look that raises nothing, whatever is there
        sys.stdout.write(show_first_steps(page_of(""), is_node=is_node, **_terminal()) + "\n")
        return int(ExitCode.USAGE)
    if arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    try:
        return int(app(arguments, standalone_mode=False) or ExitCode.FINE)
    except UsageError as fault:
        from avahi_gpu.cli.misuse import explain_misuse

        command, as_json = read_ahead(arguments)
        error = explain_misuse(fault, command, arguments)
        if as_json:
            write_json(failed(command, error))
        else:
            tell_error(error)
        return int(ExitCode.USAGE)


def _terminal() -> dict[str, Any]:
    """Return how wide help may be, and whether it may be coloured."""
    dull = os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR")
    return {"width": shutil.get_terminal_size().columns, "colour": sys.stdout.isatty() and not dull}
