"""Filling in an administrator's template, within bounds: a slip in it must not hang the machine. Pure."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from avahi_gpu.errors import MalformedInput

STEPS_MAX = 20_000  # turns of loops and calls, nested ones and macros included; ours takes about twenty
TEXT_MAX = 256 * 1024  # characters of a product of a text or list, and of the whole output
POWER_MAX = 64  # of an exponent: a larger one makes numbers that take minutes
HINT = "correct the template, or remove it to use the shipped one"

_TEMPLATE_NAME = "<template>"  # what jinja2 calls a template that comes from a string


class Excess(Exception):
    """A template does more than any service file needs."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, which counts every turn of a loop and every call."""

    intercepted_binops = frozenset(("*", "**"))

    def __init__(self) -> None:
        super().__init__(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.steps = self.size = 0
        self.filters["counted"] = self.count_turns

    def step(self) -> None:
        """Count one step. Raises Excess."""
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Excess(f"it takes more than {STEPS_MAX} steps: a loop is too long")

    def write(self, part: str) -> str:
        """Count and return a part of the output. Raises Excess."""
        self.size += len(part)
        if self.size > TEXT_MAX:
            raise Excess(f"it makes more than {TEXT_MAX} characters")
        return part

    def count_turns(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items of a loop."""
        for item in items:
            self.step()
            yield item

    def call(self, *arguments: Any, **named: Any) -> Any:
        """Call what the template calls."""
        self.step()
        return super().call(*arguments, **named)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute a product or a power of bounded size."""
        if operator == "**" and isinstance(right, int | float) and abs(right) > POWER_MAX:
            raise Excess(f"it computes a power with an exponent above {POWER_MAX}")
        if operator == "*":
            for text, times in ((left, right), (right, left)):
                countable = isinstance(text, str | list | tuple) and isinstance(times, int)
                if countable and len(text) * times > TEXT_MAX:
                    raise Excess(f"it makes a text or list of more than {TEXT_MAX} parts")
        return super().call_binop(context, operator, left, right)


class _Counting(NodeTransformer):
    """Sends what every loop goes through by way of ``count_turns``."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None, lineno=node.iter.lineno)
        return self.generic_visit(node)


def fill(template: str, where: str, **values: object) -> str:
    """Return the template filled in; whatever goes wrong in it is MalformedInput with its line."""
    environment = BoundedEnvironment()
    try:
        tree = _Counting().visit(environment.parse(template))
        return "".join(environment.write(part) for part in environment.from_string(tree).generate(values))
    except TemplateSyntaxError as error:
        raise MalformedInput(f"{where}:{error.lineno}", f"not a template: {error.message}", HINT) from None
    except Exception as error:  # an expression in a template can raise anything
        line = _line_of(error)
        raise MalformedInput(f"{where}:{line}", f"the template fails: {error}", HINT) from None


def _line_of(error: Exception) -> int:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == _TEMPLATE_NAME]
    return (frames[-1].lineno if frames else None) or 1
