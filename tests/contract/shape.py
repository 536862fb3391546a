"""Say where a JSON value has not the shape that it was promised to have.

A shape is a type, a tuple of alternatives, ``[shape]`` for a list of any length, ``{key: shape}`` for an
object with exactly these keys, or a value that is meant literally.
"""

from __future__ import annotations

from typing import Any

Shape = Any


def mismatch(value: object, shape: Shape, at: str = "$") -> str:
    """Return '' where ``value`` has the shape, else one sentence with the place."""
    if isinstance(shape, tuple):
        reasons = [mismatch(value, one, at) for one in shape]
        return "" if "" in reasons else f"{at}: none of {len(shape)} shapes fits: {reasons[-1]}"
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{at}: {value!r} is no object"
        if set(value) != set(shape):
            return f"{at}: keys {sorted(value)} in place of {sorted(shape)}"
        return next((m for k, s in shape.items() if (m := mismatch(value[k], s, f"{at}.{k}"))), "")
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at}: {value!r} is no list"
        return next((m for n, v in enumerate(value) if (m := mismatch(v, shape[0], f"{at}[{n}]"))), "")
    if isinstance(shape, type):
        # to Python True is an int; to JSON it is not
        fits = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
        return "" if fits else f"{at}: {value!r} is no {shape.__name__}"
    return "" if value == shape and type(value) is type(shape) else f"{at}: {value!r} in place of {shape!r}"
