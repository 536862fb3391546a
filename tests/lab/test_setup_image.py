"""setup --root on a root file system that does not run: its files alone count, and nothing leaves it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.tree import Picture, changed, take_picture

SERVICE = "etc/avahi/services/torch.service"
UNIT = "avahi-gpu-facts.service"
PROGRAM = "/opt/avahi-gpu/bin/avahi-gpu"
HOSTS_LINE = "hosts: files mdns4_minimal [NOTFOUND=return] dns\n"
AVAHI_UNIT = """[Unit]
Description=Avahi
[Install]
WantedBy=multi-user.target
Also=avahi-daemon.socket
Alias=dbus-org.freedesktop.Avahi.service
"""
AVAHI_SOCKET = "[Socket]\nListenStream=/run/avahi-daemon/socket\n[Install]\nWantedBy=sockets.target\n"
AARCH64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44)


@pytest.fixture
def host(make_cluster: Callable[..., Cluster]) -> Host:
    """One host before setup, on which images are set up."""
    return make_cluster(1, bare=True).hosts[0]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The little of a Debian that setup looks at, with Avahi installed, and with links that are absolute."""
    root = tmp_path / "an image"
    files: dict[str, str | bytes] = {
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
        "etc/config/nsswitch.conf": "passwd: files\nhosts: files dns\n",
        "etc/hosts": "127.0.0.1 localhost\n",
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "etc/avahi/avahi-daemon.conf": "[server]\n# kept\nuse-ipv4=no\nuse-ipv6=yes\n",
        "etc/systemd/system/README": "",
        "usr/lib/systemd/systemd": "",
        "usr/lib/systemd/system/avahi-daemon.service": AVAHI_UNIT,
        "usr/lib/systemd/system/avahi-daemon.socket": AVAHI_SOCKET,
        "usr/lib/aarch64-linux-gnu/libnss_mdns4_minimal.so.2": "",
        "usr/lib/aarch64-linux-gnu/libc.so.6": "",
        "usr/sbin/avahi-daemon": AARCH64,
        "usr/bin/env": AARCH64,
        "usr/bin/apt-get": AARCH64,
        "var/lib/dpkg/status": "Package: dbus\nStatus: install ok installed\n\n",
        f"{PROGRAM[1:]}": "#!/opt/avahi-gpu/bin/python\n",
        "srv/services/README": "",
    }
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(0o755 if "/bin/" in name or "/sbin/" in name else 0o644)
    for link, target in (
        ("lib", "usr/lib"),
        ("sbin", "usr/sbin"),
        ("bin", "usr/bin"),
        ("usr/sbin/init", "/lib/systemd/systemd"),
        ("etc/nsswitch.conf", "/etc/config/nsswitch.conf"),
    ):
        (root / link).symlink_to(target)
    return root


def picture_of(host: Host, folder: Path) -> Picture:
    return take_picture(host, str(folder))


def test_an_image_is_set_up_by_its_files_alone_and_undone_byte_for_byte(host: Host, image: Path) -> None:
    """Whatever links it has lead nowhere else; the machine that works on it is neither asked nor changed."""
    setup = ["avahi-gpu", "setup", "--root", str(image)]
    machine, before = take_picture(host), picture_of(host, image)

    check = host.run([*setup, "--check", "--json", "--cluster", "lab"])
    assert (check.returncode, check.stderr) == (5, "")
    assert changed(before, picture_of(host, image)) == []
    pending = json.loads(check.stdout)["data"]["changes"]
    assert [c.get("path") or c["argv"] for c in pending] == [
        "/etc/nsswitch.conf",
        "/etc/avahi/avahi-daemon.conf",
        f"/{SERVICE}",
        f"/etc/systemd/system/{UNIT}",
        ["systemctl", "enable", "avahi-daemon.service"],
        ["systemctl", "enable", UNIT],
    ]

    done = host.run([*setup, "--yes", "--cluster", "lab"], check=True)

    assert f"a machine that boots {image} is a node" in done.stdout
    assert "note: the image holds a machine id" in done.stdout
    assert (image / "etc/config/nsswitch.conf").read_text().endswith(HOSTS_LINE)
    assert (image / "etc/nsswitch.conf").is_symlink()
    assert "# kept\nuse-ipv4=yes\n" in (image / "etc/avahi/avahi-daemon.conf").read_text()
    service = (image / SERVICE).read_text()
    assert "<txt-record>cluster=lab</txt-record>" in service
    assert "id=" not in service and "host=" not in service and "python=" not in service
    wants = image / "etc/systemd/system/multi-user.target.wants"
    assert (wants / UNIT).readlink() == Path(f"/etc/systemd/system/{UNIT}")
    assert f"ExecStart={PROGRAM} refresh\n" in (image / f"etc/systemd/system/{UNIT}").read_text()
    assert (image / "etc/machine-id").read_text() == "0123456789abcdef0123456789abcdef\n"
    assert not (image / "run").exists()  # no lock stays in it

    after = picture_of(host, image)
    again = host.run([*setup, "--yes"], check=True)
    assert again.stdout.startswith("nothing to do\n")
    assert changed(after, picture_of(host, image)) == []

    nobody = host.run(["avahi-gpu", "undo", "--yes"], check=True)
    assert nobody.stdout == "nothing to undo\n"  # this machine has no part in it
    undo = ["avahi-gpu", "undo", "--root", str(image)]
    assert host.run([*undo, "--check"]).returncode == 5
    assert changed(after, picture_of(host, image)) == []
    host.run([*undo, "--yes"], check=True)
    assert changed(before, picture_of(host, image)) == []
    assert changed(machine, take_picture(host)) == []


def test_its_units_are_enabled_as_systemctl_does_it(host: Host, image: Path, tmp_path: Path) -> None:
    if shutil.which("systemctl") is None:
        pytest.skip("there is no systemctl here to compare with")
    other = tmp_path / "other"
    shutil.copytree(image, other, symlinks=True)
    host.run(["avahi-gpu", "setup", "--root", str(image), "--yes"], check=True)
    for unit in ("avahi-daemon.service", UNIT):
        name = f"etc/systemd/system/{unit}"
        if (image / name).is_file():
            shutil.copy(image / name, other / name)
        subprocess.run(["systemctl", "--root", other, "enable", unit], check=True, capture_output=True)

    def links(root: Path) -> dict[str, str]:
        folder = root / "etc/systemd/system"
        found = [p for p in sorted(folder.rglob("*")) if p.is_symlink()]
        return {str(p.relative_to(folder)): p.readlink().name for p in found}

    assert len(links(image)) == 4
    assert links(image) == links(other)


def test_what_cannot_be_installed_is_told_as_a_command_and_nothing_is_written(
    host: Host, image: Path
) -> None:
    (image / "usr/sbin/avahi-daemon").unlink()
    before = picture_of(host, image)

    done = host.run(["avahi-gpu", "setup", "--root", str(image), "--yes"])

    assert done.returncode == 1
    assert "avahi-daemon is not installed" in done.stderr
    line = f"chroot '{image}' apt-get install --yes --no-install-recommends avahi-daemon"
    assert line in done.stderr
    assert changed(before, picture_of(host, image)) == []


def test_what_is_no_image_is_a_sentence(host: Host, tmp_path: Path, image: Path) -> None:
    for root, more, word in (
        (tmp_path, [], "no folder etc"),
        (tmp_path / "missing", [], "No such file"),
        (image / "etc/hosts", [], "no folder etc"),
        (image, ["--python", "/usr/bin/python3"], "config.toml"),
    ):
        done = host.run(["avahi-gpu", "setup", "--root", str(root), "--yes", *more])
        assert done.returncode == 2, root
        assert word in done.stderr
        assert "Traceback" not in done.stderr
    asked = host.run(["avahi-gpu", "setup", "--root", str(image)])
    assert asked.returncode == 2
    assert f"avahi-gpu setup --root '{image}' --yes" in asked.stderr


def test_the_root_of_the_machine_is_the_machine_itself(host: Host) -> None:
    done = host.run(["avahi-gpu", "setup", "--root", "/", "--check"])

    assert done.returncode == 5
    assert "start avahi-daemon: avahi-daemon --daemonize" in done.stdout


def test_everybody_may_look_and_root_alone_may_change(host: Host, image: Path) -> None:
    shutil.copytree(image, host.path("/var/image"), symlinks=True)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "avahi-gpu", "setup"]

    assert host.run([*nobody, "--root", "/var/image", "--check"]).returncode == 5
    refused = host.run([*nobody, "--root", "/var/image", "--yes"])

    assert refused.returncode == 4
    assert "setup --root /var/image" in refused.stderr
