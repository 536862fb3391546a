"""The Ansible role on booted machines, by ssh: told before, done, done again without a change, undone."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.host import REPOSITORY
from tests.lab.tree import Picture, changed, take_picture
from tests.machines import wheels
from tests.machines.lab import Lab
from tests.machines.machine import Machine

MakeMachines = Callable[..., Lab]

ANSIBLE = REPOSITORY / "ansible"
PLAY_S = 600.0  # three machines on two cores that others use, too
KEY = "00112233445566778899aabbccddeeff" * 2
NSSWITCH = "/etc/nsswitch.conf"
SERVICE = "/etc/avahi/services/torch.service"
CONFIG = "/etc/avahi-gpu/config.toml"
BOOT_UNIT = "/etc/systemd/system/avahi-gpu-facts.service"
DAEMON_CONFIG = "/etc/avahi/avahi-daemon.conf"
HAND_WRITTEN = """<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group>
  <name>my GPU box</name>
  <service><type>_torch._tcp</type><port>29500</port></service>
</service-group>
"""
OWN_CONFIG = "# by hand\npriority = 3\n"
# where a trace could be left, beside /etc
PLACES = ("/etc", "/opt", "/usr/local", "/home", "/root", "/tmp", "/var/tmp", "/var/lib", "/var/cache")
# what a login by ssh and systemd's own clocks write
NOT_OURS = re.compile(r"/var/lib/systemd/|/root/\.ansible|/var/lib/private|/var/cache/ldconfig|/tmp/systemd-")

# what apt makes of /etc, tried on a copy of the machine that vanishes with its namespace
ONLY_PACKAGES = """set -eu
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
# layers may lie upon each other only twice: on an outer machine of layers it has to be a real copy
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root 2>/dev/null ||
    tar --one-file-system -C / -c . | tar -C /mnt/root -x
mount -t proc proc /mnt/root/proc
mount --rbind /dev /mnt/root/dev
chroot /mnt/root apt-get install --yes -qq --no-install-recommends "$@" >/dev/null 2>&1
tar -C /mnt/root -c etc | tar -C "$OUT" -x
"""


@dataclass(frozen=True)
class Play:
    """How a run of ansible-playbook ended."""

    code: int
    output: str

    def recap(self, host: str) -> dict[str, int]:
        """Return the numbers of the last lines: ok, changed, failed and so on."""
        line = re.search(rf"^{re.escape(host)} +: (.*)$", self.output, re.MULTILINE)
        assert line is not None, self.output
        return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", line[1])}

    def shown(self, task: str, host: str) -> str:
        """Return what ``--diff`` shows of one task on one host."""
        part = self.output.split(f"TASK [avahi_gpu : {task}] ", 1)[1].split("\nTASK [", 1)[0]
        before = part.split(f"\nchanged: [{host}]", 1)[0]
        return re.split(r"^(?:changed|ok): \[.*\]$", before, flags=re.MULTILINE)[-1]


class Site:
    """The playbook with an inventory of a lab's machines."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.inventory = "/run/inventory.json"  # in the control room, whose /run vanishes with the lab
        self.variables: dict[str, object] = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": lab.ssh_key,
            "ansible_ssh_common_args": "-F /dev/null -o StrictHostKeyChecking=no"
            " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            "avahi_gpu_wheels": str(wheels.all_wheels(lab.release)),
        }

    def write(self, hosts: dict[str, dict[str, object]]) -> None:
        """Write the inventory; each host has variables of its own beside the common ones."""
        text = json.dumps({"all": {"vars": self.variables, "hosts": hosts}})
        self.lab.control(["tee", self.inventory], input=text, check=True)

    def play(self, *arguments: str) -> Play:
        """Run ansible-playbook to its end."""
        argv = ["ansible-playbook", "-i", self.inventory, "site.yml", *arguments]
        env = {"ANSIBLE_LOCAL_TEMP": "/run/ansible", "ANSIBLE_FORKS": "8", "ANSIBLE_NOCOLOR": "1"}
        done = self.lab.control(argv, cwd=ANSIBLE, timeout=PLAY_S, env=env)
        return Play(done.returncode, done.stdout + done.stderr)


def pictures(machine: Machine, places: Sequence[str] = PLACES) -> Picture:
    """Return everything under some folders of a machine, by full path."""
    found = {f"{top}{path}": one for top in places for path, one in take_picture(machine, top).items()}
    return {path: one for path, one in found.items() if not NOT_OURS.match(path)}


def with_packages(machine: Machine, *packages: str) -> Picture:
    """Return /etc as the machine's own package manager alone would make it, which is left as it is."""
    machine.run(["mkdir", "/run/expected"], check=True)
    script = ["sh", "-c", ONLY_PACKAGES, "sh", *packages]
    machine.run(["unshare", "--mount", *script], env={"OUT": "/run/expected"}, timeout=300, check=True)
    return take_picture(machine, "/run/expected/etc")


def together(work: Callable[[Machine], object], machines: Sequence[Machine]) -> None:
    """Do something on machines side by side."""
    with ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(work, machines))


def lines_of(shown: str, path: str) -> tuple[list[str], list[str]]:
    """Return the lines that a shown diff takes from a file, and those that it adds."""
    part = re.split(r"^\+\+\+ ", shown, flags=re.MULTILINE)
    diff = next(p for p in part if p.startswith((f"{path}\n", f"after: {path}\n")))
    body = re.split(r"^(?:--- |run: )", diff.partition("\n")[2], flags=re.MULTILINE)[0].splitlines()
    return [x[1:] for x in body if x.startswith("-")], [x[1:] for x in body if x.startswith("+")]


def test_three_machines_of_different_pasts_become_nodes_and_what_they_were(
    make_machines: MakeMachines,
) -> None:
    lab = make_machines(4)
    bare, broken, edited, strange = lab
    nodes = [bare, broken, edited]

    def prepare(machine: Machine) -> None:
        if machine is broken:
            machine.apt_install("avahi-daemon", "libnss-mdns")
            machine.write(NSSWITCH, "passwd: files\ngroup: files\nhosts: files dns # mended\n")
        elif machine is edited:
            machine.apt_install("avahi-daemon")
            machine.write(SERVICE, HAND_WRITTEN)
            settings = (machine.read(DAEMON_CONFIG) or b"").decode()
            machine.write(
                DAEMON_CONFIG, settings.replace("[server]", "[server]\n# by hand\nallow-interfaces=eth0")
            )
            machine.write(CONFIG, OWN_CONFIG, mode=0o640)
            machine.run(["systemctl", "restart", "avahi-daemon"], check=True)
        elif machine is strange:
            machine.run(["rm", "/etc/os-release", "/usr/bin/python3"], check=True)
            machine.write("/etc/os-release", 'ID=alpine\nPRETTY_NAME="Alpine Linux v3.20"\n')
            machine.run(["useradd", "--create-home", "visitor"], check=True)
            key = machine.read("/root/.ssh/authorized_keys") or b""
            machine.write("/home/visitor/.ssh/authorized_keys", key)

    lab.allow_ssh()
    together(prepare, list(lab))
    site = Site(lab)
    wanted: dict[str, dict[str, object]] = {m.name: {"ansible_host": m.address} for m in nodes}
    wanted[bare.name] |= {"avahi_gpu_cluster": "lab", "avahi_gpu_key": KEY}
    wanted[broken.name] |= {"avahi_gpu_setup_arguments": ["--cluster", "lab"]}  # no configuration at all
    wanted[edited.name] |= {"avahi_gpu_cluster": "lab", "avahi_gpu_priority": 5}
    place = {"ansible_host": strange.address}
    unfit: dict[str, dict[str, object]] = {
        "other-system": {**place},
        "no-sudo": {**place, "ansible_user": "visitor", "avahi_gpu_distributions": ["alpine"]},
        "no-python": {**place, "avahi_gpu_distributions": ["alpine"]},
    }
    before = {m.name: pictures(m) for m in nodes}
    expected = {
        bare.name: with_packages(bare, "avahi-daemon", "libnss-mdns"),
        broken.name: take_picture(broken),
        edited.name: with_packages(edited, "libnss-mdns"),
    }

    # told before anything is installed, and nothing is changed by that; who cannot take part is named
    site.write({**wanted, **unfit})
    told = site.play("--check", "--diff")

    for name, reason in {
        "other-system": "it runs Alpine Linux v3.20, which this role does not know",
        "no-sudo": "visitor is not root there, and there is no sudo",
        "no-python": "there is no python3",
    }.items():
        assert f"{name} cannot be a node: {reason}" in told.output, told.output
        assert told.recap(name)["failed"] == 1
    for machine in nodes:
        assert told.recap(machine.name)["failed"] == 0, told.output
        assert told.recap(machine.name)["changed"] > 0
        assert changed(before[machine.name], pictures(machine)) == []
    assert KEY not in told.output

    # done by one run, as it was told
    site.write(wanted)
    done = site.play()

    assert done.code == 0, done.output
    for machine in nodes:
        assert done.recap(machine.name)["changed"] > 0
        shown = told.shown("See what setup would change", machine.name)
        assert ("run: apt-get install" in shown) is (machine is not broken)
        for path in (NSSWITCH, SERVICE, BOOT_UNIT):
            gone, new = lines_of(shown, path)
            now = (machine.read(path) or b"").decode().splitlines()
            assert set(new) <= set(now)
            assert not {*gone} - {*new} & {*now}
        assert b"cluster=lab" in (machine.read(SERVICE) or b"")
    for machine in (bare, edited):
        settings = told.shown("See whether the configuration would change", machine.name)
        config = (machine.read(CONFIG) or b"").decode().splitlines()
        assert lines_of(settings, CONFIG)[1] == config
    assert bare.path("/etc/avahi-gpu/key").stat().st_mode & 0o777 == 0o600
    assert bare.read("/etc/avahi-gpu/key") == f"{KEY}\n".encode()
    assert broken.read(CONFIG) is None
    assert KEY not in done.output
    seen = bare.run(["avahi-gpu", "peers", "--expect", "3", "--timeout", "30"])
    assert seen.returncode == 0, seen.stdout + seen.stderr

    # done again: nothing is left to do, and the doctor, who was asked, has found no error
    again = site.play()

    assert again.code == 0, again.output
    for machine in nodes:
        assert again.recap(machine.name)["changed"] == 0, again.output
    assert "TASK [avahi_gpu : Run the doctor]" in again.output

    # undone: what is left are packages, and what they bring along
    gone_again = site.play("-e", "avahi_gpu_state=absent")

    assert gone_again.code == 0, gone_again.output
    for machine in nodes:
        assert changed(expected[machine.name], take_picture(machine)) == []
        assert (
            machine.run(
                ["sh", "-c", "ls -d /opt/avahi-gpu /usr/local/bin/avahi-gpu /var/lib/avahi-gpu*"]
            ).stdout
            == ""
        )


@pytest.mark.faults
def test_a_user_with_sudo_an_environment_that_was_there_and_values_that_are_wrong(
    make_machines: MakeMachines, tmp_path: Path
) -> None:
    """What the other test leaves out, on Debian 13: others' environments, wrong values, what got lost."""
    lab = make_machines(1, "trixie")
    machine = lab[0]
    lab.allow_ssh()
    machine.apt_install("sudo", "python3-venv")
    machine.run(["useradd", "--create-home", "--shell", "/bin/sh", "admin"], check=True)
    machine.write("/etc/sudoers.d/admin", "admin ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
    key = machine.read("/root/.ssh/authorized_keys") or b""
    machine.write("/home/admin/.ssh/authorized_keys", key)
    machine.run(["python3", "-m", "venv", "/opt/train"], check=True)
    machine.write("/usr/local/bin/avahi-gpu", "#!/bin/sh\n# not ours\n", mode=0o755)
    expected = with_packages(machine, "avahi-daemon", "libnss-mdns")
    train = take_picture(machine, "/opt/train/bin")
    folder = tmp_path / "wheels"
    shutil.copytree(wheels.all_wheels(lab.release), folder)
    template = tmp_path / "torch.service.j2"
    shipped = (REPOSITORY / "templates" / "torch.service.j2").read_text()
    template.write_text(shipped.replace("%h", "own %h"))
    site = Site(lab)
    site.variables |= {
        "ansible_user": "admin",
        "avahi_gpu_wheels": str(folder),
        "avahi_gpu_virtualenv": "/opt/train",
        "avahi_gpu_service_template": str(template),
        "avahi_gpu_doctor_ignore": ["gpu"],
    }
    site.write({machine.name: {"ansible_host": machine.address}})
    etc = take_picture(machine)

    # refused before anything is written, by name and place
    for wrong, told in {
        "avahi_gpu_priority=high": "argument 'avahi_gpu_priority' is of type str and we were unable",
        "avahi_gpu_state=gone": "value of avahi_gpu_state must be one of: present, absent, got: gone",
        "avahi_gpu_virtualenv=train": "train is not a full path. Begin avahi_gpu_virtualenv with /.",
        "avahi_gpu_wheels=/nowhere": "wheels: there is no /nowhere on this machine, which runs Ansible",
        "avahi_gpu_port=70000": "/etc/avahi-gpu/config.toml:2: the value of port is 70000. Write",
        "avahi_gpu_key=abc": "the variable avahi_gpu_key holds no key",
        "avahi_gpu_version=0.0.9": "No matching distribution found for avahi-gpu==0.0.9",
    }.items():
        refused = site.play("-e", wrong)
        assert (refused.code, told in refused.output) == (2, True), refused.output
        assert changed(etc, take_picture(machine)) == []

    given = ["-e", "avahi_gpu_port=29501", "-e", f"avahi_gpu_key={KEY}"]
    done = site.play(*given, "-e", "avahi_gpu_doctor_ignore=gpu,AG601")

    assert done.code == 0, done.output
    assert b"own %h" in (machine.read(SERVICE) or b"")
    assert b"29501" in (machine.read(SERVICE) or b"")
    assert "/usr/local/bin/avahi-gpu is not ours and stays as it is" in done.output

    # a setting that is no longer given goes; another build of the same version comes
    wheel = next(folder.glob("avahi_gpu-*.whl"))
    with zipfile.ZipFile(wheel, "a") as other:
        other.comment = b"another build"
    less = site.play("--diff")

    assert less.code == 0, less.output
    assert "-port = 29501" in less.shown("Put the configuration in place", machine.name)
    assert "TASK [avahi_gpu : Install avahi-gpu]" in less.output
    assert "sha256:" in less.shown("Install avahi-gpu", machine.name)
    assert machine.read(CONFIG) is None
    assert machine.read("/etc/avahi-gpu/key") is None
    assert site.play("--check", "-e", "avahi_gpu_doctor=no").recap(machine.name)["changed"] == 0

    # what was installed is lost: it is brought for undo, and leaves no trace
    machine.run(["rm", "/opt/train/bin/avahi-gpu"], check=True)
    only_told = site.play("-e", "avahi_gpu_state=absent", "--check", "--diff")
    assert "+++ /dev/null" in only_told.shown("Run undo", machine.name)
    undone = site.play("-e", "avahi_gpu_state=absent")

    assert undone.code == 0, undone.output
    assert changed(expected, take_picture(machine)) == []
    assert machine.run(["/opt/train/bin/python", "-c", "import avahi_gpu"]).returncode == 1
    assert set(train) <= set(take_picture(machine, "/opt/train/bin"))
    assert machine.read("/usr/local/bin/avahi-gpu") == b"#!/bin/sh\n# not ours\n"
    assert site.play("-e", "avahi_gpu_state=absent").recap(machine.name)["changed"] == 0
