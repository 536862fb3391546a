"""Values that need no validator are taken as they are, all others go to typer's own."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import pytest
import typer
import typer.main

from avahi_gpu.cli.plain_values import PlainValue, read_plain
from avahi_gpu.cli.program import PlainCommand


class Colour(str, enum.Enum):
    red = "red"
    blue = "blue"


def run(*arguments: str) -> list[Any]:
    """Return what a command of many kinds of parameters is called with."""
    given: list[Any] = []
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    def command(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        name: Annotated[str | None, typer.Option()] = None,
        many: Annotated[list[str] | None, typer.Option()] = None,
        colour: Annotated[Colour, typer.Option()] = Colour.red,
        number: Annotated[int, typer.Option(min=1)] = 7,
        seconds: Annotated[float | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option("--flag")] = False,
    ) -> None:
        given.extend([words, name, many, colour, number, seconds, flag])

    app.command(cls=PlainCommand)(command)
    typer.main.get_command(app)(list(arguments), standalone_mode=False)
    return given


def test_defaults_are_taken_as_they_are() -> None:
    words, name, many, *rest = run()

    assert (words or [], name, many or []) == ([], None, [])
    assert rest == [Colour.red, 7, None, False]


def test_given_values_have_the_types_that_the_command_names() -> None:
    given = run("a", "b", "--name", "x", "--many", "1", "--many", "2", "--colour", "blue", "--number", "3")

    assert given == [["a", "b"], "x", ["1", "2"], Colour.blue, 3, None, False]
    assert run("--seconds", "1.5", "--flag")[5:] == [1.5, True]


@pytest.mark.parametrize("words", [("--colour", "green"), ("--number", "x"), ("--number", "0")])
def test_wrong_values_are_refused_as_ever(words: tuple[str, ...]) -> None:
    with pytest.raises(typer.BadParameter.__bases__[0]):
        run(*words)


def test_only_what_takes_no_more_than_a_look_is_plain() -> None:
    assert read_plain(str, "x") == "x"
    assert read_plain(list[str], ("x", "y")) == ["x", "y"]
    assert read_plain(Colour, "blue") is Colour.blue
    assert read_plain(float, 1.5) == 1.5
    other = read_plain(int, "3")
    assert other is read_plain(list[int], ["3"]) is read_plain(Colour, "green") is read_plain(int, True)


def test_a_typer_with_adapters_lets_us_stand_in_for_them() -> None:
    command = typer.main.get_command(_one())
    mine = [p for p in command.get_params(typer.Context(command)) if hasattr(p, "_runtime_param")]
    if not mine:
        pytest.skip("this typer has no adapters")
    assert all(isinstance(p._runtime_param, PlainValue) for p in mine)


def _one() -> typer.Typer:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def command(name: str = "") -> None: ...

    app.command(cls=PlainCommand)(command)
    return app
