"""Every name of torch's that is used is in docs/adr/0003-torch-api.md, and the installed torch has it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
ADR = (ROOT / "docs/adr/0003-torch-api.md").read_text()
SOURCES = [
    ROOT / "avahi_gpu/rendezvous/handler.py",
    ROOT / "avahi_gpu/rendezvous/store.py",
    *sorted((ROOT / "avahi_gpu/launch").glob("*.py")),
]


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` of an attribute's chain, '' where it does not begin with a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (front := dotted(node.value)):
        return f"{front}.{node.attr}"
    return ""


def used(source: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of what the source takes from torch."""

    def visit(node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and dotted(node).startswith("torch."):
            module, _, name = dotted(node).rpartition(".")
            yield module, name
        else:
            for child in ast.iter_child_nodes(node):
                yield from visit(child)

    yield from visit(ast.parse(source))


NAMES = sorted({found for path in SOURCES for found in used(path.read_text())})


def named(module: str, name: str, text: str) -> bool:
    """Say whether one line of the text has the module and the name, each as code."""
    return any(
        {f"`{module}`", f"`{name}`"} <= set(re.findall(r"`[^`]+`", line)) for line in text.splitlines()
    )


def test_the_names_are_found_however_they_are_written() -> None:
    source = "import torch\nfrom torch.a.b import C, d\nx = torch.cuda.device_count()\ny = other.torch.z"
    assert set(used(source)) == {("torch.a.b", "C"), ("torch.a.b", "d"), ("torch.cuda", "device_count")}
    assert ("torch.distributed", "TCPStore") in NAMES
    assert len(NAMES) > 20


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_each_name_is_in_the_record_of_what_we_use(module: str, name: str) -> None:
    assert named(module, name, ADR), f"docs/adr/0003-torch-api.md has no line with `{module}` and `{name}`"
    assert not named(module, name + "_", ADR)


@pytest.mark.torch
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_installed_torch_has_each_name(module: str, name: str) -> None:
    pytest.importorskip("torch")
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.torch
def test_the_methods_that_we_extend_are_torchs_and_recorded() -> None:
    pytest.importorskip("torch")
    from torch.distributed.elastic.agent.server import SimpleElasticAgent

    from avahi_gpu.launch import agent

    ours = {name for name in vars(agent.LaunchAgent) if callable(getattr(agent.LaunchAgent, name))}
    extended = {name for name in ours if hasattr(SimpleElasticAgent, name)} - {"__init__"}
    assert extended == set(agent.EXTENDED)
    for name in extended:  # documented by `:private-members:`, which shows what has a docstring
        assert getattr(SimpleElasticAgent, name).__doc__
        assert f"`{name}`" in ADR
    assert list(agent.shortcomings()) == []


@pytest.mark.torch
def test_a_torch_that_has_renamed_a_method_is_named_with_what_follows() -> None:
    torch = pytest.importorskip("torch")
    from avahi_gpu.launch import agent

    class Later:
        _initialize_workers = _shutdown = staticmethod(lambda: None)
        _monitor_workers: Any = None

    assert list(agent.shortcomings(Later)) == [
        f"torch {torch.__version__} has no Later._monitor_workers: "
        "the loss of a node may use up one of --max-restarts"
    ]
