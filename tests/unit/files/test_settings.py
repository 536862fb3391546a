"""Layers of settings: the first that speaks counts, whatever they say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.config import NAMES, complain
from avahi_gpu.files.settings import DEFAULT, VARIABLES, published_facts, read_variables, settle

TRAPS = ["29500", "-1", "eth0", "eth0,eth1", "/bin/python", "10.0.0.1+a", "~/key", "\udcff", "\u0663", "1e3"]
words = st.text(max_size=20) | st.sampled_from(TRAPS)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES.values())), words))
def test_any_environment_is_taken_or_refused_with_a_variables_name(environ: dict[str, str]) -> None:
    try:
        said = read_variables(environ)
    except MalformedConfiguration as error:
        assert error.where in environ or "none of interfaces" in error.message
        assert error.hint
        return
    for name, (value, source) in said.items():
        assert source == f"environment variable {VARIABLES[name]}"
        assert name == "key_file" or complain(name, value) == ""


layers = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3))


@given(st.lists(layers, max_size=4))
def test_the_first_layer_that_says_something_counts(said: list[dict[str, int]]) -> None:
    named: list[dict[str, tuple[Any, str]]] = [
        {name: (value, f"layer {number}") for name, value in layer.items()}
        for number, layer in enumerate(said)
    ]

    settings = settle(*named)

    for name in NAMES:
        alike = ("interface", "interfaces") if name.startswith("interface") else (name,)
        first = next((n for n, layer in enumerate(said) if any(a in layer for a in alike)), None)
        if first is None or name not in said[first]:
            assert settings.sources[name] == DEFAULT
        else:
            assert settings.sources[name] == f"layer {first}"
            assert getattr(settings.config, name) == said[first][name]


@given(st.binary(max_size=300) | st.none())
def test_any_service_file_is_read_or_tells_nothing(content: bytes | None) -> None:
    assert published_facts(content) is None
