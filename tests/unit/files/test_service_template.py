"""Templates that do too much end at once, with a sentence; the shipped one is far from any bound."""

from __future__ import annotations

import time

import pytest

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.service_template import STEPS_MAX, BoundedEnvironment, fill

SOON_S = 10.0  # each takes less than 0.2 s; the rest is for a busy machine


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for a in range(99999) %}{% endfor %}", "a loop is too long"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
            "{% endfor %}{% endfor %}{% endfor %}",
            "a loop is too long",
        ),
        ("{% for a in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}", ""),
        ("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}", ""),
        (
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
            "steps",
        ),
        ("{{ 10 ** (10 ** 9) }}", "exponent"),
        ("{{ 'x' * 10000000000 }}", "more than"),
        ("{{ 10000000000 * [1] }}", "more than"),
        ("{% set a = namespace(x=0) %}{% for b in range(90000) %}{% set a.x = b %}{% endfor %}", "loop"),
    ],
)
def test_a_template_that_would_hang_ends_soon_with_a_sentence(template: str, reason: str) -> None:
    began = time.monotonic()
    with pytest.raises(MalformedInput) as error:
        fill("first line\n" + template, "t.j2")

    assert time.monotonic() - began < SOON_S
    assert reason in error.value.message
    assert error.value.where == "t.j2:2"
    assert error.value.hint


def test_a_template_that_writes_too_much_ends_with_a_sentence() -> None:
    with pytest.raises(MalformedInput, match="more than 262144 characters"):
        fill("{% for a in range(9000) %}{{ 'x' * 100 }}{% endfor %}", "t.j2")


def test_what_a_service_file_needs_is_within_the_bounds() -> None:
    template = (
        "{% for a in items %}{{ loop.index }}/{{ loop.length }}: {{ a * 2 }}"
        "{% if not loop.last %}, {% endif %}{% else %}none{% endfor %} {{ 2 ** 10 }} {{ '-' * 3 }}"
    )

    assert fill(template, "t.j2", items=["x", "<"]) == "1/2: xx, 2/2: &lt;&lt; 1024 ---"
    assert fill(template, "t.j2", items=[]) == "none 1024 ---"
    assert fill("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "t.j2", d={"a": 1}) == "a=1;"
    assert STEPS_MAX > 1000


def test_the_count_begins_anew_for_every_template() -> None:
    for _ in range(3):
        assert len(fill("{% for a in range(15000) %}x{% endfor %}", "t.j2")) == 15000
    assert BoundedEnvironment().steps == 0
