"""The settings on a machine: who says what comes first, and nothing wrong passes unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from avahi_gpu.errors import ExitCode, MalformedConfiguration
from avahi_gpu.files.config import PATH, Config
from avahi_gpu.files.settings import Settings
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.system import System

SERVICE = """<service-group><name>%h</name><service><type>_torch._tcp</type><port>29500</port>
<txt-record>id=0123456789ab</txt-record><txt-record>cluster=attic</txt-record></service></service-group>
"""
SERVICE_PATH = "/etc/avahi/services/torch.service"


def put(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def read(root: Path, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    named = {name: (f"--{name}", value) for name, value in flags.items()}
    return read_settings(System(root), environ or {}, named)


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path)

    assert settings.config == Config()
    assert set(settings.sources.values()) == {"default"}


def test_what_cannot_be_read_is_not_taken_for_missing(tmp_path: Path) -> None:
    (tmp_path / "etc/avahi-gpu/config.toml").mkdir(parents=True)

    with pytest.raises(MalformedConfiguration):
        read(tmp_path)


def test_a_file_of_megabytes_is_refused_unread(tmp_path: Path) -> None:
    put(tmp_path, PATH, "#" * (5 << 20))

    with pytest.raises(MalformedConfiguration, match="larger than"):
        read(tmp_path)


def test_a_flag_comes_before_a_variable_that_before_the_file_and_that_before_what_setup_published(
    tmp_path: Path,
) -> None:
    def cluster(environ: dict[str, str], flag: str | None) -> tuple[str, str]:
        settings = read(tmp_path, environ, cluster=flag)
        return settings.config.cluster, settings.sources["cluster"]

    variable = {"AVAHI_GPU_CLUSTER": "loft"}
    assert cluster({}, None) == ("default", "default")
    put(tmp_path, SERVICE_PATH, SERVICE)
    assert cluster({}, None) == ("attic", SERVICE_PATH)
    put(tmp_path, PATH, '# ours\n\ncluster = "default"\n')
    assert cluster({}, None) == ("default", f"{PATH}:3")  # said is said
    put(tmp_path, PATH, '# ours\n\ncluster = "lab"\n')
    assert cluster({}, None) == ("lab", f"{PATH}:3")
    assert cluster(variable, None) == ("loft", "environment variable AVAHI_GPU_CLUSTER")
    assert cluster(variable, "roof") == ("roof", "flag --cluster")
    assert cluster({"AVAHI_GPU_CLUSTER": ""}, None) == ("lab", f"{PATH}:3")


def test_a_broken_service_file_stops_nobody_but_a_broken_configuration_does(tmp_path: Path) -> None:
    put(tmp_path, SERVICE_PATH, SERVICE.replace("</service>", ""))
    assert read(tmp_path).config.cluster == "default"

    put(tmp_path, PATH, "cluster = \n")
    with pytest.raises(MalformedConfiguration, match=r"config\.toml:1"):
        read(tmp_path, cluster="lab")  # even where it would not count


def test_every_setting_has_its_variable(tmp_path: Path) -> None:
    environ = {
        "AVAHI_GPU_CLUSTER": "lab",
        "AVAHI_GPU_PRIORITY": "-3",
        "AVAHI_GPU_PORT": "29501",
        "AVAHI_GPU_INTERFACE": "eth1",
        "AVAHI_GPU_PYTHON": "/opt/venv/bin/python",
        "AVAHI_GPU_PEERS": "10.0.0.2,gpu-node-3+fe80::1%eth0",
        "AVAHI_GPU_KEY_FILE": "keys/ours",
        "AVAHI_GPU_INTERFACES": "eth0, eth1",
    }

    settings = read(tmp_path, environ)

    peers = ("10.0.0.2", "gpu-node-3", "fe80::1%eth0")
    assert settings.config == Config(
        "lab", -3, 29501, "eth1", "/opt/venv/bin/python", peers, "keys/ours", ("eth0", "eth1")
    )
    assert set(settings.sources.values()) == {f"environment variable {name}" for name in environ}


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("AVAHI_GPU_PORT", "0", ["1 to 65535", "AVAHI_GPU_PORT=29500"]),
        ("AVAHI_GPU_PORT", "29500.0", ["port"]),
        ("AVAHI_GPU_PORT", "9" * 5000, ["…"]),
        ("AVAHI_GPU_PORT", "\u0663", ["port"]),
        ("AVAHI_GPU_PRIORITY", "high", ["9999", "AVAHI_GPU_PRIORITY=10"]),
        ("AVAHI_GPU_CLUSTER", "\udcff", ["cluster"]),
        ("AVAHI_GPU_CLUSTER", "a\x1b[1m", ["cluster", "\\x1b"]),
        ("AVAHI_GPU_INTERFACE", "\udcff", ["interface"]),
        ("AVAHI_GPU_INTERFACE", "eth0,eth1", ["one interface"]),
        ("AVAHI_GPU_INTERFACES", "eth0,,eth1", ["AVAHI_GPU_INTERFACES=eth0,eth1"]),
        ("AVAHI_GPU_PYTHON", "python3", ["full path"]),
        ("AVAHI_GPU_PEERS", "-oProxyCommand=x", ["AVAHI_GPU_PEERS=gpu-node-2,10.0.0.3"]),
        ("AVAHI_GPU_KEY_FILE", "", ["key_file", "unset"]),
        ("AVAHI_GPU_KEY_FILE", " ", ["key_file", "unset"]),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(MalformedConfiguration) as caught:
        read(tmp_path, {variable: value})

    error = caught.value
    assert error.exit_code == ExitCode.USAGE
    assert error.where == variable
    assert len(error.message) < 200
    for word in words:
        assert word in f"{error.message} {error.hint}"


def test_whoever_names_one_interface_or_several_decides_both(tmp_path: Path) -> None:
    put(tmp_path, PATH, 'interfaces = ["eth0", "eth1"]\ninterface = "eth1"\n')

    def chosen(environ: dict[str, str], **flags: str) -> tuple[str | None, tuple[str, ...]]:
        config = read(tmp_path, environ, **flags).config
        return config.interface, config.interfaces

    assert chosen({}) == ("eth1", ("eth0", "eth1"))
    assert chosen({"AVAHI_GPU_INTERFACES": "ib0"}) == (None, ("ib0",))
    assert chosen({"AVAHI_GPU_INTERFACES": "ib0"}, interface="eth0") == ("eth0", ())
    with pytest.raises(MalformedConfiguration, match="none of interfaces"):
        chosen({"AVAHI_GPU_INTERFACES": "ib0", "AVAHI_GPU_INTERFACE": "eth0"})
