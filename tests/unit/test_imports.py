"""What a start loads: every module costs a millisecond, some a tenth of a second, and all of them memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# name of a module -> why it has no place in a run of the doctor
NEVER = {
    "torch": "seconds, and it wakes the GPUs",
    "numpy": "0.1 s",
    "pydantic": "0.1 s and 10 MB; typer asks it about options that are plain words",
    "pynvml": "there is no driver here to be asked",
    "pyroute2.ndb": "a database",
    "pyroute2.ipdb": "loads all of pyroute2",
    "sqlite3": "of pyroute2's database",
    "lxml": "for tests alone",
    "dns": "only where name servers are asked one by one",
    "zeroconf": "a second mDNS stack",
    "email": "importlib.metadata's parser of packages",
    "http": "nothing here talks HTTP unasked",
    "xml.dom": "expat alone reads service files",
    "rich.progress": "nothing here shows progress",
    "concurrent.futures.process": "pools of processes",
}
# of these the doctor has need; the mere entry point has not
LATER = ("asyncio", "dbus_next", "jinja2", "rich.console", "pyroute2", "typer")

_ASK = """
import json, sys
{code}
sys.stdout.flush()
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""
_DOCTOR = """
from avahi_gpu.cli import app
sys.argv = ["avahi-gpu", "doctor", "--json"]
try:
    app.main()
except SystemExit:
    pass
"""


def loaded(code: str) -> set[str]:
    """Return the modules that a Python of its own has loaded after ``code``."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK.format(code=code)], capture_output=True, text=True, timeout=60, check=True
    )
    return set(json.loads(done.stderr.rpartition("\n")[2]))


def test_the_entry_point_loads_next_to_nothing() -> None:
    modules = loaded("import avahi_gpu.cli.app")

    assert modules & {*NEVER, *LATER} == set()


def test_a_run_of_the_doctor_loads_what_it_needs_and_no_more() -> None:
    modules = loaded(_DOCTOR)

    assert "avahi_gpu.checks.names" in modules  # it has run indeed
    assert {name: why for name, why in NEVER.items() if name in modules} == {}


@pytest.mark.parametrize("command", ["peers", "explain", "undo", "setup"])
def test_other_commands_are_spared_what_only_the_doctor_needs(command: str) -> None:
    modules = loaded(f"import avahi_gpu.cli.program, avahi_gpu.cli.{command}")

    assert set() == modules & {"torch", "numpy", "pydantic", "pyroute2", "pynvml"}


def test_the_lan_is_asked_before_what_is_not_needed_for_that_is_loaded() -> None:
    """Its answers take 0.2 s and more: they come while the rest is being loaded."""
    modules = loaded("import avahi_gpu.cli.program, avahi_gpu.cli.doctor, avahi_gpu.cli.diagnosis")

    assert modules & {*NEVER, "jinja2", "rich.console", "pyroute2"} == set()


@pytest.mark.parametrize(
    "words", ["['']", "['doctor', '--f']", "['explain', 'AG']", "['launch', '--interface', '']"]
)
def test_a_completion_loads_no_more_than_its_words(words: str) -> None:
    """It runs at every press of the tab key."""
    modules = loaded(f"from avahi_gpu.cli.complete import answer\nassert answer('zsh', {words})")

    assert modules & {*NEVER, *LATER, "msgspec", "avahi_gpu.model", "avahi_gpu.checks"} == set()


@pytest.mark.parametrize("command", ["doctor", "explain", "setup", "key", "completion"])
def test_the_help_of_a_command_loads_neither_checks_nor_their_like(command: str) -> None:
    modules = loaded(f"from avahi_gpu.cli.program import run\nrun(['{command}', '--help'])")

    assert f"avahi_gpu.cli.{command}" in modules
    heavy = {"asyncio", "rich.console", "jinja2", "dbus_next", "avahi_gpu.checks", "avahi_gpu.host.facts"}
    assert modules & {*NEVER, *heavy} == set()


def test_the_help_of_all_commands_loads_none_of_them() -> None:
    modules = loaded("from avahi_gpu.cli.program import run\nrun(['--help'])")

    assert "avahi_gpu.render.help" in modules
    assert modules & {*NEVER, "asyncio", "rich.console", "avahi_gpu.model", "avahi_gpu.cli.doctor"} == set()
