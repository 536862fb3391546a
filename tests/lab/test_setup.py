"""setup on hosts as a fresh Debian leaves them: it makes nodes of them, once, and only when it may."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.tree import changed, take_picture

SETUP = ["avahi-gpu", "setup"]
SERVICE = "/etc/avahi/services/torch.service"
NSSWITCH = "/etc/nsswitch.conf"
TERMINAL = ["script", "--quiet", "--return", "--command"]
WANTED_LINE = "hosts:          files mdns4_minimal [NOTFOUND=return] dns\n"

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def host(make_cluster: MakeCluster) -> Host:
    """One host before setup."""
    return make_cluster(1, bare=True).hosts[0]


@pytest.fixture(scope="module")
def module_host() -> Iterator[Host]:
    """One host before setup for all tests of the module."""
    with cluster(1, bare=True) as lab:
        yield lab.hosts[0]


@pytest.fixture
def untouched(module_host: Host) -> Iterator[Host]:
    """One host before setup, which still is so after the test: /etc, our state, and no avahi-daemon."""
    before = {folder: take_picture(module_host, folder) for folder in ("/etc", "/var/lib")}
    yield module_host
    for folder, picture in before.items():
        assert changed(picture, take_picture(module_host, folder)) == []
    assert module_host.run(["avahi-daemon", "--check"]).returncode != 0


def together(hosts: list[Host], argv: list[str]) -> list[tuple[int, str]]:
    """Run ``argv`` on all hosts at the same time; return exit codes and outputs."""
    running = [host.follow(argv) for host in hosts]
    ended = [(process.wait(), process.output) for process in running]
    for process in running:
        process.end()
    return ended


def test_fresh_hosts_become_nodes_and_find_each_other() -> None:
    """The whole of it: setup proves itself, peers resolve by glibc, and a second run does nothing."""
    with cluster(2, bare=True) as lab:
        one, two = lab.hosts

        first = together(lab.hosts, [*SETUP, "--yes"])

        assert [code for code, _ in first] == [0, 0], first
        for host, (_, output) in zip(lab.hosts, first, strict=True):
            assert f"{host.name} is a node; _torch._tcp is seen on eth0" in output
            assert f"{host.name}.local is {host.address}" in output
        assert one.run(["getent", "hosts", f"{two.name}.local"], check=True).stdout.split()[0] == two.address
        assert two.run(["getent", "hosts", f"{one.name}.local"], check=True).stdout.split()[0] == one.address
        listed = one.run(["avahi-browse", "-rpt", "_torch._tcp"], check=True).stdout
        assert f"=;eth0;IPv4;{two.name};_torch._tcp;local;{two.name}.local;{two.address};29500;" in listed

        pictures = [take_picture(host) for host in lab]
        second = together(lab.hosts, [*SETUP, "--yes"])

        for (code, output), host, before in zip(second, lab, pictures, strict=True):
            assert code == 0
            assert output.startswith("nothing to do\n")
            assert changed(before, take_picture(host)) == []


def test_only_what_is_needed_is_changed(host: Host) -> None:
    before = take_picture(host)

    host.run([*SETUP, "--yes"], check=True)

    after = take_picture(host)
    assert changed(before, after) == ["/avahi/services/torch.service", "/nsswitch.conf"]
    mode, uid, gid, content = after["/avahi/services/torch.service"]
    assert (mode & 0o777, uid, gid) == (0o644, 0, 0)
    assert isinstance(content, bytes)
    assert b"id=" in content
    assert host.machine_id.encode() not in content
    assert host.read(NSSWITCH).count(WANTED_LINE) == 1


def test_check_writes_nothing_and_exits_5(untouched: Host) -> None:
    check = untouched.run([*SETUP, "--check"])
    diff = untouched.run([*SETUP, "--check", "--diff"])
    data = untouched.run([*SETUP, "--check", "--json"])

    assert (check.returncode, diff.returncode, data.returncode) == (5, 5, 5)
    assert "correct the hosts line" in check.stdout
    assert "+++" not in check.stdout
    assert f"-hosts:          files dns\n+{WANTED_LINE}" in diff.stdout
    assert "+    <type>_torch._tcp</type>\n" in diff.stdout
    answer = json.loads(data.stdout)
    assert (answer["command"], answer["status"], answer["exit_code"]) == ("setup", "ok", 5)
    assert answer["data"]["changed"] is False
    assert [c["kind"] for c in answer["data"]["changes"]] == ["file", "file", "daemon"]
    assert answer["data"]["changes"][2]["argv"] == ["avahi-daemon", "--daemonize"]


def test_check_judges_by_a_configuration_that_is_not_in_place_yet(untouched: Host) -> None:
    untouched.write("/run/wanted/config.toml", 'cluster = "lab"\n')
    untouched.write("/run/wrong/config.toml", "port = 70000\n")

    told = untouched.run([*SETUP, "--check", "--diff", "--config-folder", "/run/wanted"])
    wrong = untouched.run([*SETUP, "--check", "--config-folder", "/run/wrong"])
    done = untouched.run([*SETUP, "--yes", "--config-folder", "/run/wanted"])

    assert told.returncode == 5
    assert "+    <txt-record>cluster=lab</txt-record>\n" in told.stdout
    assert (wrong.returncode, done.returncode) == (2, 2)
    assert "/etc/avahi-gpu/config.toml:1: the value of port is 70000" in wrong.stderr
    assert "go with --check alone" in done.stderr


def test_json_of_a_real_run_and_of_the_run_after_it(host: Host) -> None:
    first = host.run([*SETUP, "--yes", "--json"], check=True)
    second = host.run([*SETUP, "--yes", "--json"], check=True)
    check = host.run([*SETUP, "--check", "--json"], check=True)

    done = json.loads(first.stdout)
    assert done["data"]["changed"] is True
    paths = [c.get("path") for c in done["data"]["changes"]]
    assert paths == [NSSWITCH, SERVICE, None]
    assert all(c["diff"].startswith("--- ") for c in done["data"]["changes"] if c["kind"] == "file")
    for later in (second, check):
        assert json.loads(later.stdout)["data"] == {"changes": [], "changed": False}


def test_a_malformed_nsswitch_conf_stops_it_before_anything_is_written(host: Host) -> None:
    host.write(NSSWITCH, "passwd: files\nhosts: files [NOTFOUND dns\n")
    before = take_picture(host)

    done = host.run([*SETUP, "--yes"])

    assert done.returncode == 1
    assert done.stderr.startswith("avahi-gpu: /etc/nsswitch.conf:2: ")
    assert len(done.stderr.splitlines()) == 2  # what is, what to do
    assert changed(before, take_picture(host)) == []
    assert host.run(["avahi-daemon", "--check"]).returncode != 0


@pytest.mark.parametrize("folder", ["/etc/avahi/services", "/var/lib/avahi-gpu"])
def test_a_file_in_a_folders_place_stops_it_before_anything_is_written(host: Host, folder: str) -> None:
    host.run(["sh", "-c", f"rm -rf {folder} && echo mine >{folder}"], check=True)
    before = host.run(["cat", "/etc/nsswitch.conf"]).stdout

    done = host.run(["avahi-gpu", "setup", "--yes"], timeout=60)

    assert done.returncode == 1
    assert f"{folder} should be a folder, and is none" in done.stderr
    assert host.run(["cat", "/etc/nsswitch.conf", folder]).stdout == before + "mine\n"


def test_who_is_not_root_is_told_so(untouched: Host) -> None:
    done = untouched.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *SETUP, "--yes"])

    assert done.returncode == 4, done.stderr
    assert "only root may do" in done.stderr
    assert "sudo" in done.stderr


def test_without_a_terminal_nobody_is_asked(untouched: Host) -> None:
    done = untouched.run(SETUP)
    data = untouched.run([*SETUP, "--json"])

    assert (done.returncode, data.returncode) == (2, 2)
    assert "avahi-gpu setup --yes" in done.stderr
    assert json.loads(data.stdout)["errors"][0]["code"] == "usage"


@pytest.mark.parametrize("answer", ["n", ""])
def test_on_a_terminal_it_shows_the_diff_and_asks(untouched: Host, answer: str) -> None:
    # script(1) gives the command a terminal of its own
    done = untouched.run([*TERMINAL, "avahi-gpu setup", "/dev/null"], input=f"{answer}\n")

    assert done.returncode == 5, done.stdout
    assert "mdns4_minimal [NOTFOUND=return] dns" in done.stdout
    assert "Make them? [y/N]" in done.stdout
    assert "nothing was changed" in done.stdout


def test_a_yes_on_the_terminal_is_enough(host: Host) -> None:
    done = host.run([*TERMINAL, "avahi-gpu setup", "/dev/null"], input="y\n", check=True)

    assert "gpu-node-1 is a node" in done.stdout


def test_ctrl_c_at_the_question_changes_nothing(untouched: Host) -> None:
    asking = untouched.popen([*TERMINAL, "avahi-gpu setup", "/dev/null"], stdin=subprocess.PIPE)
    assert asking.stdin is not None
    assert asking.stdout is not None
    shown = ""
    while "[y/N]" not in shown:
        shown += (part := os.read(asking.stdout.fileno(), 4096).decode())
        assert part, shown

    rest, _ = asking.communicate("\x03", 20)

    assert asking.returncode == 130, rest
    assert "interrupted" in rest
    assert "Traceback" not in rest


def test_wrong_arguments_are_usage(untouched: Host) -> None:
    for argv, word in (
        (["--only", "nonsense"], "nonsense"),
        (["--root", "/dev"], "--root"),
        (["--python", "/no/python"], "/no/python"),
        (["--python", "/bin/false"], "/bin/false"),
        (["--cluster", "a\nb"], "cluster"),
        (["--cluster", "x" * 64], "cluster"),
    ):
        done = untouched.run([*SETUP, "--yes", *argv])
        assert done.returncode == 2, argv
        assert word in done.stderr


def test_one_area_alone(host: Host) -> None:
    """The other areas are neither touched nor waited for."""
    before = take_picture(host)

    done = host.run([*SETUP, "--yes", "--only", "service"], check=True)

    assert changed(before, take_picture(host)) == ["/avahi/services/torch.service"]
    assert "not proven: avahi-daemon does not run" in done.stdout
    assert host.run([*SETUP, "--check"]).returncode == 5


def test_the_cluster_stays_until_another_is_given(host: Host) -> None:
    host.run([*SETUP, "--yes", "--cluster", "blue & <white>"], check=True)
    again = host.run([*SETUP, "--yes"], check=True)
    listed = host.run(["avahi-browse", "-rpt", "_torch._tcp"], check=True).stdout

    assert again.stdout.startswith("nothing to do\n")
    assert '"cluster=blue & <white>"' in listed
    other = host.run([*SETUP, "--yes", "--cluster", "red"], check=True)
    assert "write /etc/avahi/services/torch.service" in other.stdout
    assert "cluster=red" in host.read(SERVICE)


def test_an_administrators_template_is_used_before_ours(host: Host) -> None:
    host.write(
        "/etc/avahi-gpu/templates/torch.service.j2",
        """<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">GPUs of %h</name>
<service><type>{{ service_type }}</type><port>{{ port }}</port>
{% for item in txt %}<txt-record>{{ item.text }}</txt-record>{% endfor %}
<txt-record>room=12</txt-record></service></service-group>
""",
    )

    host.run([*SETUP, "--yes"], check=True)

    listed = host.run(["avahi-browse", "-rpt", "_torch._tcp"], check=True).stdout
    assert "GPUs\\032of\\032gpu-node-1" in listed
    assert '"room=12"' in listed


def test_a_broken_template_is_named_with_its_line_and_nothing_is_written(host: Host) -> None:
    host.write("/etc/avahi-gpu/templates/torch.service.j2", "<service-group>\n{% for x in %}\n")
    before = take_picture(host)

    done = host.run([*SETUP, "--yes"])

    assert done.returncode == 1
    assert "/etc/avahi-gpu/templates/torch.service.j2:2" in done.stderr
    assert changed(before, take_picture(host)) == []


def test_without_a_lan_the_cause_is_named_at_once(host: Host) -> None:
    host.cut()

    done = host.run([*SETUP, "--yes"])

    assert done.returncode == 1
    assert "LAN interface" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_daemon_that_will_not_start_is_a_sentence(host: Host) -> None:
    # what such a line was meant to be nobody can tell
    host.write("/etc/avahi/avahi-daemon.conf", f"[server]\nhost-name={'x' * 300}\n")

    done = host.run([*SETUP, "--yes"])

    assert done.returncode == 1
    assert "avahi-daemon" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_read_is_not_called_done(make_cluster: Callable[..., Cluster]) -> None:
    host = make_cluster(1, bare=True).hosts[0]
    host.run(["sh", "-c", "rm /etc/nsswitch.conf && mkdir /etc/nsswitch.conf"], check=True)

    done = host.run(["avahi-gpu", "setup", "--yes", "--only", "names", "--json"])

    assert done.returncode == 1
    assert json.loads(done.stdout)["errors"][0]["code"] == "AG100"


def test_a_machine_is_set_up_and_undone_whole_where_nobody_reads_of_it(host: Host) -> None:
    """It ended in the middle, with exit code 0, where a pager was left or a log could not grow."""
    before = take_picture(host)

    done = host.run(["bash", "-c", "avahi-gpu setup --yes | head -1; echo ${PIPESTATUS[0]}"], timeout=60)
    again = host.run([*SETUP, "--check"])
    undone = host.run(["sh", "-c", "avahi-gpu undo --yes > /dev/full"], timeout=60)

    assert done.stdout.splitlines() == ["These changes are wanted:", "0"]
    assert again.returncode == 0, again.stdout
    assert undone.returncode == 0
    assert changed(before, take_picture(host)) == []
