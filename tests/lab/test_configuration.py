"""The settings at work: setup follows them, shows where each comes from, and refuses what is wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.tree import changed, take_picture

CONFIG = "/etc/avahi-gpu/config.toml"
SERVICE = "/etc/avahi/services/torch.service"
KEY = "/etc/avahi-gpu/key"
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
# avahi-daemon hears of a changed file by inotify, and announces it anew within a second or two
RELOAD_S = 30.0
# a Python whose torch is 9.8.7, as far as anybody looks
PYTHON = """#!/bin/sh
PYTHONPATH=/var/lib/train exec {} "$@"
"""


@pytest.fixture(scope="module")
def lab() -> Any:
    with cluster(1, bare=True) as lab:
        yield lab


def listed(host: Host, *words: str) -> str:
    """Return what Avahi tells of the host, once it holds all ``words``."""
    end = time.monotonic() + RELOAD_S
    while True:
        told = host.run(["avahi-browse", "-rpt", "_torch._tcp"], check=True).stdout
        if all(word in told for word in words) or time.monotonic() > end:
            return told


def shown(host: Host, *options: str, **environ: str) -> dict[str, Any]:
    said = [f"{k}={v}" for k, v in environ.items()]
    done = host.run(
        [*NOBODY, "env", *said, "avahi-gpu", "setup", "--show-config", "--json", *options], check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["command"], told["status"], told["data"]["path"]) == ("setup", "ok", CONFIG)
    config: dict[str, Any] = told["data"]["config"]
    return config


def test_setup_follows_the_settings_and_the_daemon_what_setup_writes(lab: Cluster) -> None:
    host = lab[0]
    host.write("/var/lib/train/torch/__init__.py", "")
    host.write("/var/lib/train/torch/version.py", "__version__ = '9.8.7'\ncuda = None\n")
    python = host.run(["python3", "-c", "import sys; print(sys.executable)"], check=True).stdout.strip()
    host.write("/var/lib/train/python", PYTHON.format(python))
    host.run(["chmod", "755", "/var/lib/train/python"], check=True)
    host.run(["avahi-gpu", "setup", "--yes", "--cluster", "attic"], check=True)
    assert "cluster=attic" in listed(host)

    host.write(CONFIG, 'cluster = "lab"\nport = 29501\npriority = 7\npython = "/var/lib/train/python"\n')
    host.run(["avahi-gpu", "setup", "--yes"], check=True)
    told = listed(host, ";29501;", '"cluster=lab"', '"prio=7"', '"torch=9.8.7"')
    assert ";29501;" in told and '"cluster=lab"' in told and '"prio=7"' in told and '"torch=9.8.7"' in told
    assert "cluster=attic" not in told

    before = take_picture(host)
    again = host.run(["avahi-gpu", "setup", "--yes"], check=True)
    assert again.stdout.startswith("nothing to do\n")
    assert changed(before, take_picture(host)) == []

    host.write(CONFIG, 'interfaces = ["eth0", "ib0"]\n')
    assert f"note: {CONFIG}:1: interfaces names ib0" in host.run(["avahi-gpu", "setup", "--check"]).stdout
    host.write(CONFIG, 'cluster = "lab"\npriority = 7\n')

    env = ["env", "AVAHI_GPU_PORT=29502", "AVAHI_GPU_CLUSTER=loft"]
    host.run([*env, "avahi-gpu", "setup", "--yes", "--cluster", "roof"], check=True)
    told = listed(host, ";29502;", '"cluster=roof"')
    assert ";29502;" in told and '"cluster=roof"' in told and '"prio=7"' in told
    host.run(["avahi-gpu", "undo", "--yes"], check=True)
    assert not host.path(SERVICE).exists()


def test_each_setting_is_shown_with_where_it_comes_from_to_everybody(lab: Cluster) -> None:
    host = lab[0]
    host.write(CONFIG, '# ours\ncluster = "lab"\nport = 29501\ninterfaces = [\n  "eth0",\n]\n')
    before = [take_picture(host, folder) for folder in ("/etc", "/var/lib")]

    config = shown(host, "--cluster", "roof", AVAHI_GPU_PORT="29502", AVAHI_GPU_KEY_FILE="~/k")
    text = host.run(["avahi-gpu", "setup", "--show-config"], check=True).stdout

    assert config["cluster"] == {"value": "roof", "source": "flag --cluster"}
    assert config["port"] == {"value": 29502, "source": "environment variable AVAHI_GPU_PORT"}
    assert config["key_file"] == {"value": "~/k", "source": "environment variable AVAHI_GPU_KEY_FILE"}
    assert config["interfaces"] == {"value": ["eth0"], "source": f"{CONFIG}:4"}
    assert config["priority"] == {"value": 0, "source": "default"}
    assert config["python"] == {"value": None, "source": "default"}
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == [CONFIG]
    assert ["cluster", f"{CONFIG}:2", "lab"] in rows
    assert ["port", f"{CONFIG}:3", "29501"] in rows
    assert [take_picture(host, folder) for folder in ("/etc", "/var/lib")] == before
    assert host.run(["avahi-gpu", "setup", "--show-config", "--yes"]).returncode == 2


@pytest.mark.parametrize(
    ("content", "environ", "where"),
    [
        ('# x\ncluster = "a\\u001b[1m"\n', "", f"{CONFIG}:2: the value of cluster is 'a\\x1b[1m'"),
        ('"\\u001b[31mx" = 1\n', "", f"{CONFIG}:1: “\\x1b[31mx” is not a setting"),
        ('\n\npython = "/no/python"\n', "", f"{CONFIG}:3: python: there is no Python /no/python"),
        ('\nkey_file = "/no/key"\n', "", f"{CONFIG}:2: key_file: there is no cluster key at /no/key"),
        ('\ninterfaces = ["ib0"]\n', "", f"{CONFIG}:2: interfaces names ib0, which this machine"),
        ("", "AVAHI_GPU_PYTHON=/no/python", "variable AVAHI_GPU_PYTHON: python: there is no Python"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_done(
    lab: Cluster, content: str, environ: str, where: str
) -> None:
    host = lab[0]
    host.write(CONFIG, content)
    before = take_picture(host)

    done = host.run(["env", *environ.split(), "avahi-gpu", "setup", "--yes"])

    assert done.returncode == 2, done.stderr
    assert where in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "\x1b" not in done.stderr
    assert changed(before, take_picture(host)) == []


def test_a_key_that_others_may_read_stops_setup_but_one_for_root_alone_no_look(
    lab: Cluster,
) -> None:
    host = lab[0]
    host.write(CONFIG, "")
    host.run(["avahi-gpu", "key", "new"], check=True)
    assert host.run([*NOBODY, "avahi-gpu", "setup", "--check"]).returncode == 5
    host.run(["chown", "65534", KEY], check=True)
    assert f"{KEY} belongs to nobody" in host.run(["avahi-gpu", "setup", "--check"]).stdout
    host.run(["chown", "0", KEY], check=True)
    host.run(["chmod", "640", KEY], check=True)
    before = take_picture(host)

    done = host.run(["avahi-gpu", "setup", "--yes"])

    assert done.returncode == 2
    assert f"the cluster key {KEY} is open to other users (mode 0640)" in done.stderr
    assert f"chmod 600 {KEY}" in done.stderr
    assert changed(before, take_picture(host)) == []
