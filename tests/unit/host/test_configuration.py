"""Our own configuration as it lies on a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from avahi_gpu.errors import MalformedConfiguration
from avahi_gpu.files.config import Config
from avahi_gpu.host.configuration import read_config
from avahi_gpu.host.system import System


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert read_config(System(tmp_path)) == Config()


def test_what_cannot_be_read_is_not_taken_for_missing(tmp_path: Path) -> None:
    (tmp_path / "etc/avahi-gpu/config.toml").mkdir(parents=True)

    with pytest.raises(MalformedConfiguration):
        read_config(System(tmp_path))
