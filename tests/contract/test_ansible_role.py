"""The role as others read it: ansible-lint, ansible-doc, and variables that are declared and told of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ANSIBLE = REPOSITORY / "ansible"
ROLE = ANSIBLE / "roles" / "avahi_gpu"
MODULES = ("avahi_gpu", "avahi_gpu_configuration", "avahi_gpu_environment")
LINT_S = 300.0  # ten on a quiet machine

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11) and not os.environ.get("CI"), reason="ansible-core needs Python 3.11"
)


def run(argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run one of Ansible's programs of this environment, with a home folder of its own."""
    program = Path(sys.executable).with_name(argv[0])
    assert program.exists(), f"{program} is missing: scripts/bootstrap installs it"
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        [str(program), *argv[1:]],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LINT_S,
        check=False,
    )


def test_ansible_lint_finds_nothing_by_its_production_profile(tmp_path: Path) -> None:
    # a copy: the linter leaves folders beside what it reads
    shutil.copytree(ANSIBLE, tmp_path / "ansible", ignore=shutil.ignore_patterns("__pycache__", ".ansible"))
    shutil.copy(REPOSITORY / ".ansible-lint", tmp_path)

    argv = ["ansible-lint", "--strict", "--profile", "production", "--project-dir", str(tmp_path)]
    done = run([*argv, str(tmp_path / "ansible")], tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failure(s), 0 warning(s)" in done.stdout + done.stderr


def test_ansible_doc_has_a_page_for_each_module_and_the_role(tmp_path: Path) -> None:
    pages = run(["ansible-doc", "-t", "module", "-M", str(ROLE / "library"), *MODULES], tmp_path)
    role = run(["ansible-doc", "-t", "role", "--roles-path", str(ROLE.parent), "avahi_gpu"], tmp_path)

    assert pages.returncode == 0, pages.stderr
    assert all(f"> MODULE {name} " in pages.stdout.replace("\n", " ") for name in MODULES), pages.stdout
    assert role.returncode == 0, role.stderr
    assert "avahi_gpu_virtualenv" in role.stdout


def test_every_variable_of_the_role_is_declared_and_told_of() -> None:
    specs = (ROLE / "meta" / "argument_specs.yml").read_text()
    declared = set(re.findall(r"^      (avahi_gpu_\w+):$", specs, re.MULTILINE))
    readme = (ROLE / "README.md").read_text()
    used = set()
    for folder in ("defaults", "tasks", "vars", "templates"):
        for file in (ROLE / folder).iterdir():
            used |= set(re.findall(r"\bavahi_gpu_[a-z]\w*", file.read_text()))

    used -= {*MODULES, "avahi_gpu_environment", "avahi_gpu_configuration"}
    assert used <= declared
    assert {name for name in declared if f"`{name}`" not in readme} == set()
