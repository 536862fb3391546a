"""Machines that boot an image of setup --root are nodes, and tell at each boot what they are."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml import LIBRARY, ONE, STATE, make_library
from tests.lab.tree import changed, take_picture
from tests.machines.cache import NotMade
from tests.machines.image import root_of
from tests.machines.lab import Lab, machines
from tests.machines.machine import Machine

SERVICE = "/etc/avahi/services/torch.service"
JOURNAL = "/var/lib/avahi-gpu/journal"
UNIT = "avahi-gpu-facts.service"
IMAGE = "/srv/image"
BASE = "/srv/base"
LAY = f"""set -eu
mkdir /srv/layer {IMAGE}
mount -t tmpfs tmpfs /srv/layer
mkdir /srv/layer/upper /srv/layer/work
mount -t overlay overlay -o lowerdir={BASE},upperdir=/srv/layer/upper,workdir=/srv/layer/work {IMAGE}
rm -f {IMAGE}/var/lib/dbus/machine-id
: >{IMAGE}/etc/machine-id
cp -a /opt/avahi-gpu {IMAGE}/opt/
ln -s /opt/avahi-gpu/bin/avahi-gpu {IMAGE}/usr/local/bin/
"""


def build_image(builder: Machine, layer: Path) -> None:
    """Set up an image in a folder of ``builder``, and bring what differs from the base to ``layer``."""
    builder.install_avahi_gpu()
    builder.run(["sh", "-c", LAY], check=True)
    before = take_picture(builder)
    setup = ["avahi-gpu", "setup", "--root", IMAGE]

    done = builder.run([*setup, "--yes", "--cluster", "lab"], timeout=300, check=True)

    assert f"a machine that boots {IMAGE} is a node" in done.stdout
    assert "note:" not in done.stdout  # nothing is left to be done
    again = builder.run([*setup, "--check"], timeout=120, check=True)
    assert again.stdout.startswith("nothing to do\n")
    # apt has run in the image: nothing of it is left running, mounted or lying about, and none of it is here
    assert builder.read(f"{IMAGE}/usr/sbin/avahi-daemon") is not None
    assert builder.read(f"{IMAGE}/usr/sbin/policy-rc.d") is None
    processes = builder.run(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.split()
    assert "systemd" in processes and "avahi-daemon" not in processes
    assert f"{IMAGE}/" not in (builder.read("/proc/mounts") or b"").decode()
    assert changed(before, take_picture(builder)) == []
    assert builder.read(JOURNAL) is None
    service = (builder.read(f"{IMAGE}{SERVICE}") or b"").decode()
    assert "cluster=lab" in service and "id=" not in service
    links = sorted(builder.path(f"{IMAGE}/etc/systemd/system").rglob("*vahi*"))
    assert len([link for link in links if link.is_symlink()]) == 4, links
    tar = ["tar", "--xattrs", "--xattrs-include=*"]
    builder.run(["umount", IMAGE], check=True)
    builder.run([*tar, "-C", "/srv/layer/upper", "-cf", "/srv/layer.tar", "."], check=True)
    unpack = [*tar, "-C", layer, "-xf", builder.path("/srv/layer.tar")]
    subprocess.run(unpack, timeout=120, check=True)


def base_of(release: str) -> Path:
    """Return the root file system of a bare machine; where it cannot be made, the test is skipped."""
    try:
        return root_of(release)
    except NotMade as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no machines can be made here: {problem}")


def said_at_boot(machine: Machine) -> str:
    """Return what the unit has said since the machine booted."""
    machine.run(["journalctl", "--sync"], check=True)
    return machine.run(["journalctl", "-b", "-q", "-o", "cat", "-u", UNIT], check=True).stdout


def published(machine: Machine) -> dict[str, Any]:
    """Return the peers that a machine sees, by name."""
    done = machine.run(["avahi-gpu", "peers", "--expect", "2", "--timeout", "30", "--json"], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return {peer["name"]: peer for peer in json.loads(done.stdout)["data"]["peers"]}


@pytest.fixture
def layer() -> Iterator[Path]:
    """Return a folder for a layer of a root file system: the marks of one cannot be kept on another one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)  # it becomes /
        yield Path(folder)


# another root file system takes CI a minute
@pytest.mark.parametrize("release", ["bookworm", pytest.param("trixie", marks=pytest.mark.faults)])
def test_machines_that_boot_an_image_are_nodes_and_tell_at_each_boot_what_they_are(
    make_machines: Callable[..., Lab], layer: Path, tmp_path: Path, release: str
) -> None:
    driver = make_library(tmp_path)
    with machines(1, release, binds=[f"{base_of(release)}:{BASE}"]) as lab:  # off before the others are on
        build_image(lab[0], layer)

    one, two = make_machines(2, release, layer=layer)

    # nobody has run setup on them
    seen = published(one)
    assert set(seen) == {one.name, two.name}
    assert {peer["cluster"] for peer in seen.values()} == {"lab"}
    assert len({peer["id"] for peer in seen.values()} - {""}) == 2
    assert "was rendered anew" in said_at_boot(one)
    assert one.run(["avahi-gpu", "setup", "--check"], timeout=120, check=True).stdout.startswith("nothing")
    # and nothing of the boot waits for it
    waits = one.run(["systemctl", "show", "multi-user.target", "avahi-daemon.service", "-p", "After"]).stdout
    assert "avahi-daemon" in waits and UNIT not in waits

    # a machine that has changed tells so after its next boot; a file that was edited stays
    records = one.read(JOURNAL)
    assert records is not None
    one.write("/etc/machine-id", "1" * 32 + "\n")
    one.write("/etc/avahi-gpu/config.toml", "priority = 7\n")
    if driver is not None:  # the card is swapped
        one.write(f"/usr/lib/{platform.machine()}-linux-gnu/{LIBRARY}", driver.read_bytes())
        one.write(STATE, ONE)
    edited = (two.read(SERVICE) or b"") + b"<!-- by hand -->\n"
    two.write(SERVICE, edited)
    one.reboot()
    two.reboot()
    service = (one.read(SERVICE) or b"").decode()
    assert "<txt-record>prio=7</txt-record>" in service
    assert seen[one.name]["id"] not in service
    assert "<txt-record>gpus=0</txt-record>" in service or driver is not None
    assert "<txt-record>gpu=NVIDIA GeForce RTX 4090</txt-record>" in service or driver is None
    assert "<txt-record>driver=550.90.07</txt-record>" in service or driver is None
    assert len((one.read(JOURNAL) or b"").splitlines()) == len(records.splitlines())
    assert two.read(SERVICE) == edited
    assert "it is kept" in said_at_boot(two)
    doctor = one.run(["avahi-gpu", "doctor", "--only", "AG504", "--only", "AG513"], timeout=120)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr

    # what cannot be read is left as it is, and the boot goes on; mended, it is told
    one.write("/etc/avahi-gpu/config.toml", "priority = high\n")
    failed = one.run(["systemctl", "start", UNIT])
    assert failed.returncode != 0
    assert (one.read(SERVICE) or b"").decode() == service
    assert "stays as it is: /etc/avahi-gpu/config.toml:1" in said_at_boot(one)
    one.write("/etc/avahi-gpu/config.toml", "priority = 7\n")

    # and undo on the machine takes back what was done to the image
    one.run(["avahi-gpu", "undo", "--yes"], timeout=120, check=True)
    assert one.read(SERVICE) is None
    assert one.read(f"/etc/systemd/system/{UNIT}") is None
    assert one.run(["systemctl", "is-enabled", UNIT]).returncode != 0
    assert one.read(JOURNAL) is None
