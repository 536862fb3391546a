"""Options whose values are words already: for them typer would load pydantic, for 0.1 s and 10 MB.

typer (since 0.27) asks a pydantic adapter about the value of every option, given or not. What is a plain
word, a list of them, a word of a choice, or the default itself needs none; the rest goes to typer's own.
"""

from __future__ import annotations

import enum
from typing import Any, get_args, get_origin

_NOT_PLAIN = object()


class PlainValue:
    """Stands where typer keeps the adapter of one parameter, which it makes when it is first asked."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as the command takes it. Raises typer.BadParameter."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = read_plain(param.type_descriptor.annotation, value)
        if plain is not _NOT_PLAIN:
            return plain
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def read_plain(annotation: Any, value: Any) -> Any:
    """Return ``value`` as one of ``annotation``; a mark of this module where that takes more than a look."""
    if isinstance(annotation, type) and type(value) is annotation:
        return value
    if get_origin(annotation) is list and isinstance(value, list | tuple):
        (inner,) = get_args(annotation)
        items = [read_plain(inner, item) for item in value]
        return _NOT_PLAIN if any(item is _NOT_PLAIN for item in items) else items
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum) and isinstance(value, str):
        return next((member for member in annotation if member.value == value), _NOT_PLAIN)
    return _NOT_PLAIN


def spare_adapters(params: list[Any]) -> list[Any]:
    """Return the parameters of a command, which do without adapters as far as they can."""
    for param in params:
        # not so in a typer of another time, which has its own ways
        if getattr(param, "_runtime_param", _NOT_PLAIN) is None and hasattr(param, "type_descriptor"):
            param._runtime_param = PlainValue()
    return params
