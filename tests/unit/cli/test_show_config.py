"""``setup --show-config`` of an image: what its files say, and nothing of the machine that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from avahi_gpu.cli.program import app


def test_the_settings_of_an_image_come_from_its_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("usr", "etc/avahi-gpu"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text("ID=debian\n")
    (tmp_path / "etc/avahi-gpu/config.toml").write_text("port = 29555\n")
    monkeypatch.setenv("AVAHI_GPU_PORT", "29556")
    monkeypatch.setenv("AVAHI_GPU_CLUSTER", "loft")

    done = CliRunner().invoke(app, ["setup", "--root", str(tmp_path), "--show-config", "--json"])

    assert done.exit_code == 0, done.output
    config = json.loads(done.stdout)["data"]["config"]
    assert config["port"] == {"value": 29555, "source": "/etc/avahi-gpu/config.toml:1"}
    assert config["cluster"] == {"value": "default", "source": "default"}
