"""What programs may rely on: the JSON of every command, and the exit codes, from real runs on real hosts."""

from __future__ import annotations

import json
import platform
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from avahi_gpu import __version__
from tests.contract.shape import mismatch
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.jobs import Job

pytestmark = pytest.mark.lab

NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")

VERDICT = ("ok", "info", "warn", "error", "skip", "unknown")
AREA = ("names", "network", "host", "gpu", "service", "cluster")
ERROR = {"code": str, "message": str, "hint": str}
FINDING = {
    "id": str,
    "slug": str,
    "area": AREA,
    "verdict": VERDICT,
    "says": str,
    "evidence": [str],
    "fix": (None, {"title": str, "commands": [str]}),
}
VERSIONS = {"python": str, "torch": str, "cuda": str, "nccl": str, "driver": str}
PEER = {
    "id": str,
    "name": str,
    "host": str,
    "address": (str, None),
    "interface": (str, None),
    "port": int,
    "alive": (True, False, None),
    "self": bool,
    "cluster": str,
    "gpus": int,
    "gpu": str,
    "vram_mib": [int],
    "versions": VERSIONS,
}
JOB_NODE = {
    "id": str,
    "host": str,
    "address": str,
    "interface": (str, None),
    "port": int,
    "rank": (int, None),
    "processes": int,
    "alive": (True, False, None),
    "self": bool,
}
JOB = {
    "name": str,
    "cluster": str,
    "state": ("running", "waiting"),
    "leader": (str, None),
    "round": (int, None),
    "size": int,
    "since": (int, None),
    "began": (int, None),
    "restarts": int,
    "min_nodes": int,
    "max_nodes": int,
    "wants": int,
    "members": [JOB_NODE],
    "waiting": [JOB_NODE],
    "absent": [{"name": str, "alive": (True, False, None)}],
    "notes": [str],
}
WATCHED = {
    **PEER,
    "rtt_ms": (float, None),
    "silent_s": (float, None),
    "speed_mbit": (int, None),
    "vram_free_mib": ([int], None),
    "jobs": [{"job": str, "rank": (int, None), "size": (int, None)}],
}
EVENT = {
    "version": 1,
    "command": "peers",
    "event": (
        *("joined", "left", "moved", "dead", "alive", "job"),  # of a node
        *("avahi", "network", "complete", "incomplete", "more"),
    ),
    "at": str,
    "says": str,
    "node": (WATCHED, None),
}
CHANGE = (
    {"kind": "file", "path": str, "diff": str},
    {"kind": ("package", "command", "daemon"), "argv": [str], "diff": str},
)
TRACE = {
    "asked": str,
    "name": str,
    "hosts_line": str,
    "steps": [
        {
            "module": str,
            "actions": str,
            "asked": bool,
            "status": ("success", "notfound", "unavail", "tryagain", None),
            "addresses": [str],
            "elapsed_s": float,
            "ends": bool,
            "why": str,
        }
    ],
    "glibc": {"addresses": [str], "elapsed_s": float, "error": str},
    "avahi": {
        "asked": bool,
        "addresses": [{"address": str, "interface": str}],
        "elapsed_s": float,
        "error": str,
    },
    "answers": [{"address": str, "alive": (True, False, None)}],
    "says": str,
}
TRIAL = {"ok": (True, False, None), "words": str, "took_s": float}
NODE = {
    "name": str,
    "host": str,
    "address": (str, None),
    "self": bool,
    "asked": bool,
    "why": str,
    "id": str,
    "hostname": str,
    "mtu": (int, None),
    "gpus": int,
    "gpu": str,
    "clock_s": (float, None),
    "clock_error_s": float,
    "versions": VERSIONS,
}
WAY = {
    "from": str,
    "to": str,
    "state": ("ok", "names", "frames", "ports", "blocked", "unknown"),
    "glibc": TRIAL,
    "avahi": TRIAL,
    "ping": TRIAL,
    "full_frame": TRIAL,
    "tcp": [
        {
            "port": int,
            "purpose": ("control", "store", "workers", "high", "doctor"),
            "ok": (True, False, None),
            "words": str,
        }
    ],
}
GAUGED_LINK = {
    "from": str,
    "to": str,
    "bits_per_s": (int, None),
    "share_of_cards": (float, None),
    "round_trip_s": (float, None),
    "round_trip_best_s": (float, None),
    "round_trip_p99_s": (float, None),
    "resent": float,
    "slow": bool,
    "error": str,
}
GAUGED_NODE = {
    "name": str,
    "address": str,
    "interface": str,
    "link": str,
    "speed_mbit": (int, None),
    "duplex": ("full", "half", None),
}
REDUCTION = {"bytes": int, "seconds": float, "count": int, "algbw_gb_per_s": float, "busbw_gb_per_s": float}
BENCH = {
    "nodes": [GAUGED_NODE],
    "links": [GAUGED_LINK],
    "all_reduce": {"backend": str, "ranks": int, "torch": str, "omitted": str, "sizes": [REDUCTION]},
    "slowest": ({"from": str, "to": str}, None),
    "summary": str,
    "troubles": [str],
    "gradients": [
        {"parameters": int, "dtype": str, "bytes": int, "seconds": (float, None), "measured": bool}
    ],
    "leader": str,
}
SETTING = {"value": (str, int, [str], None), "source": str}
SETTINGS = ("cluster", "priority", "port", "interface", "interfaces", "python", "peers", "key_file")
DATA: dict[str, Any] = {
    "bench": BENCH,
    "doctor --cluster": {"findings": [FINDING], "trace": [TRACE], "nodes": [NODE], "matrix": [WAY]},
    "doctor --serve": {"served": int},
    "doctor": {"findings": [FINDING], "trace": [TRACE]},
    "peers": {"peers": [PEER]},
    "jobs": {"jobs": [JOB]},
    "setup": {"changes": [CHANGE], "changed": bool},
    "setup --show-config": {"config": dict.fromkeys(SETTINGS, SETTING), "path": str},
    "undo": {"changes": [CHANGE], "changed": bool, "kept": [str]},
    "key": {"path": str, "fingerprint": str, "created": bool},
    "version": dict.fromkeys(("avahi_gpu", "avahi", "interpreter", "python", "torch", "cuda", "nccl"), str),
}


def torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def envelope_of(command: str, data: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "command": command,
        "status": ("ok", "partial", "error"),
        "exit_code": int,
        "data": (data, {}),
        "errors": [ERROR],
    }


def ask(
    host: Host, *arguments: str, before: tuple[str, ...] = (), shape: str | None = None
) -> dict[str, Any]:
    """Run a command with ``--json`` and hold its output to the promise."""
    done = host.run([*before, "avahi-gpu", *arguments, "--json"], timeout=90)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.endswith("}\n") and done.stdout.count("\n") == 1, done.stdout
    envelope: dict[str, Any] = json.loads(done.stdout)
    assert mismatch(envelope, envelope_of(arguments[0], DATA[shape or arguments[0]])) == ""
    assert envelope["exit_code"] == done.returncode
    assert envelope["status"] == "ok" or envelope["exit_code"] != 0 or envelope["errors"]
    return envelope


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """gpu-node-1, set up, and gpu-node-2, where avahi-daemon does not even run."""
    with cluster(2, bare=True) as hosts:
        hosts[0].run(["avahi-gpu", "setup", "--yes"], check=True, timeout=90)
        yield hosts


# --- the helper can fail --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"a": 1}, {"a": str}),
        ({"a": 1, "b": 2}, {"a": int}),
        ({}, {"a": int}),
        ([1, "x"], [int]),
        (True, int),
        (1, True),
        ("x", ("y", None)),
        (None, {}),
    ],
)
def test_a_wrong_shape_is_told(value: object, shape: object) -> None:
    assert mismatch(value, shape).startswith("$")


# --- JSON -----------------------------------------------------------------------------------------------


def test_doctor_of_a_node(lab: Cluster) -> None:
    told = ask(lab[0], "doctor")

    assert (told["status"], told["exit_code"], told["errors"]) == ("ok", 0, [])
    assert all(re.fullmatch(r"AG[1-6]\d\d", f["id"]) for f in told["data"]["findings"])


def test_doctor_of_a_name_has_its_way(lab: Cluster) -> None:
    told = ask(lab[0], "doctor", "localhost.localdomain")

    assert [t["asked"] for t in told["data"]["trace"]] == ["localhost.localdomain"]
    assert [s["module"] for s in told["data"]["trace"][0]["steps"]] == ["files", "mdns4_minimal", "dns"]


def test_doctor_of_a_machine_that_is_no_node_has_fixes(lab: Cluster) -> None:
    told = ask(lab[1], "doctor")

    assert (told["status"], told["exit_code"]) == ("partial", 1)
    fixes = [f["fix"] for f in told["data"]["findings"] if f["verdict"] == "error"]
    assert fixes and any(fix["commands"] for fix in fixes)


def test_doctor_of_all_nodes(lab: Cluster) -> None:
    serving = lab[1].follow(["avahi-gpu", "doctor", "--serve", "30", "--json", "--peers", lab[0].address])
    peers = ("--peers", lab[1].address)
    for _ in range(10):  # the other one says nothing under --json until it ends
        told = ask(lab[0], "doctor", "--cluster", "--wait", "3", *peers, shape="doctor --cluster")
        if told["data"]["nodes"][1]["asked"]:
            break
    serving.end()

    assert [n["self"] for n in told["data"]["nodes"]] == [True, False]
    assert {(w["from"], w["to"]) for w in told["data"]["matrix"]} == {
        ("gpu-node-1", "gpu-node-2"),
        ("gpu-node-2", "gpu-node-1"),
    }
    assert {t["purpose"] for w in told["data"]["matrix"] for t in w["tcp"]} == {
        "control",
        "store",
        "workers",
        "high",
    }


def test_doctor_that_answers_ends_with_an_object(lab: Cluster) -> None:
    told = ask(lab[0], "doctor", "--serve", "0.5", shape="doctor --serve")

    assert (told["status"], told["exit_code"], told["data"]) == ("ok", 0, {"served": 0})


def test_bench_of_two_nodes(lab: Cluster) -> None:
    words = ("bench", "--nnodes", "2", "--quick", "--tcp", "--peers")
    other = lab[1].popen(["avahi-gpu", *words, lab[0].address])
    told = ask(lab[0], *words, lab[1].address)

    assert other.wait(30) == 0
    assert (told["status"], told["exit_code"], told["errors"]) == ("ok", 0, [])
    assert {(x["from"], x["to"]) for x in told["data"]["links"]} == {
        ("gpu-node-1", "gpu-node-2"),
        ("gpu-node-2", "gpu-node-1"),
    }
    assert all(x["bits_per_s"] > 0 and x["error"] == "" for x in told["data"]["links"])
    assert [g["bytes"] for g in told["data"]["gradients"]] == [40_000_000, 2_000_000_000, 14_000_000_000]


def test_peers_of_a_node(lab: Cluster) -> None:
    told = ask(lab[0], "peers")

    assert (told["status"], told["exit_code"]) == ("ok", 0)
    (peer,) = told["data"]["peers"]
    assert (peer["name"], peer["self"], peer["address"]) == ("gpu-node-1", True, lab[0].address)
    assert re.fullmatch(r"[0-9a-f]{12}", peer["id"])


def test_a_watch_tells_an_object_for_each_event_and_ends_with_the_usual_one(lab: Cluster) -> None:
    done = run(lab[0], "peers", "--watch", "--json", "--expect", "1", "--timeout", "1.5")

    assert (done.returncode, done.stderr) == (0, "")
    *events, end = map(json.loads, done.stdout.splitlines())
    assert [mismatch(event, EVENT) for event in events] == ["", ""]
    assert [event["event"] for event in events] == ["joined", "complete"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", events[0]["at"])
    assert mismatch(end, envelope_of("peers", {})) == "" and end["exit_code"] == 0


def test_peers_without_avahi_is_an_error_with_a_code(lab: Cluster) -> None:
    told = ask(lab[1], "peers")

    assert (told["status"], told["exit_code"], told["data"]) == ("error", 1, {})
    assert [e["code"] for e in told["errors"]] == ["avahi-unavailable"]
    assert told["errors"][0]["hint"]


def test_jobs_of_a_node(lab: Cluster) -> None:
    with Job(lab.hosts[:1], (1, 2), job="alone") as job, Job(lab.hosts[:1], (2, 2), job="waits") as waiting:
        job.start()
        waiting.start()
        job.rounds(30)
        for _ in range(10):  # its record says so a second later
            told = ask(lab[0], "jobs")
            if [j["state"] for j in told["data"]["jobs"]] == ["running", "waiting"]:
                break

    assert (told["status"], told["exit_code"], told["errors"]) == ("ok", 0, [])
    alone, waits = told["data"]["jobs"]
    assert (alone["name"], alone["leader"], alone["members"][0]["self"]) == ("alone", "gpu-node-1", True)
    assert (waits["leader"], waits["round"], waits["wants"]) == (None, None, 1)


def test_jobs_without_avahi_is_an_error_with_a_code(lab: Cluster) -> None:
    told = ask(lab[1], "jobs")

    assert (told["status"], told["exit_code"], told["data"]) == ("error", 1, {})
    assert [e["code"] for e in told["errors"]] == ["avahi-unavailable"]


def test_too_few_peers_are_told_with_those_who_are_there(lab: Cluster) -> None:
    told = ask(lab[0], "peers", "--expect", "5", "--timeout", "0.5")

    assert (told["status"], told["exit_code"]) == ("partial", 3)
    assert [e["code"] for e in told["errors"]] == ["too-few-peers"]
    assert len(told["data"]["peers"]) == 1


def test_setup_check_of_a_node_and_of_a_bare_machine(lab: Cluster) -> None:
    node = ask(lab[0], "setup", "--check")
    bare = ask(lab[1], "setup", "--check")

    assert (node["status"], node["exit_code"]) == ("ok", 0)
    assert node["data"] == {"changes": [], "changed": False}
    assert (bare["status"], bare["exit_code"], bare["data"]["changed"]) == ("ok", 5, False)
    assert {c["kind"] for c in bare["data"]["changes"]} == {"file", "daemon"}


def test_the_settings_are_shown_to_everybody(lab: Cluster) -> None:
    shown = ask(lab[0], "setup", "--show-config", before=NOBODY, shape="setup --show-config")

    assert shown["data"]["config"]["port"] == {"value": 29500, "source": "default"}


def test_undo_of_a_machine_that_nobody_touched(lab: Cluster) -> None:
    told = ask(lab[1], "undo")

    assert (told["exit_code"], told["data"]) == (0, {"changes": [], "changed": False, "kept": []})


def test_key_makes_a_key_once_and_shows_its_fingerprint(lab: Cluster) -> None:
    file = "/etc/lab/key"
    none = ask(lab[0], "key", "check", "--file", file)
    made = ask(lab[0], "key", "new", "--file", file)
    again = ask(lab[0], "key", "new", "--file", file)
    seen = ask(lab[0], "key", "check", "--file", file)
    lab[0].path(file).chmod(0o640)
    told = ask(lab[0], "key", "check", "--file", file)

    assert (none["exit_code"], [e["code"] for e in none["errors"]]) == (2, ["bad-key-file"])
    assert (made["exit_code"], made["data"]["path"], made["data"]["created"]) == (0, file, True)
    assert re.fullmatch(r"[0-9a-f]{4}(-[0-9a-f]{4}){2}", made["data"]["fingerprint"])
    assert (again["exit_code"], again["status"]) == (1, "error")
    assert seen["data"] == {**made["data"], "created": False}
    assert (told["exit_code"], [e["code"] for e in told["errors"]]) == (2, ["bad-key-file"])
    secret = lab[0].read(file).strip()
    assert not [answer for answer in (none, made, again, seen, told) if secret in json.dumps(answer)]


def test_the_versions_are_those_of_what_runs_here(lab: Cluster) -> None:
    shape = envelope_of("version", DATA["version"])
    plain = lab[0].run(["avahi-gpu", "--version"], check=True).stdout.splitlines()
    told = {}
    for name, words in {
        "here": (),
        "other": ("--python", "/usr/bin/python3"),
        "none": ("--python", "/nowhere"),
    }.items():
        done = lab[0].run(["avahi-gpu", "--version", "--json", *words])
        told[name] = json.loads(done.stdout)
        assert mismatch(told[name], shape) == "" and told[name]["exit_code"] == done.returncode
    here, other = told["here"]["data"], told["other"]["data"]
    without = json.loads(lab[1].run(["avahi-gpu", "--json", "--version"], check=True).stdout)["data"]

    assert plain[0] == f"avahi-gpu {__version__}" and here["avahi_gpu"] == __version__
    assert re.fullmatch(r"0\.\d+[\w.-]*", here["avahi"]) and f"Avahi     {here['avahi']}" in plain
    assert here["python"] == platform.python_version()
    assert here["torch"].partition("+")[0] == torch_version().partition("+")[0]
    assert (other["interpreter"], told["none"]["exit_code"]) == ("/usr/bin/python3", 2)
    assert without == {**here, "avahi": ""}  # where no daemon runs that is told, and no failure


@pytest.mark.parametrize("arguments", [("setup", "--yes"), ("undo", "--yes"), ("doctor", "--fix", "--yes")])
def test_who_is_not_root_is_told_so(arguments: tuple[str, ...], lab: Cluster) -> None:
    told = ask(lab[1], *arguments, before=NOBODY)

    assert (told["status"], told["exit_code"]) == ("error", 4)
    assert [e["code"] for e in told["errors"]] == ["needs-root"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("setup", "--only", "nonsense"),
        ("setup",),  # changes are wanted, and nobody can be asked
        ("doctor", "--only", "AG999"),
        ("doctor", "--python", ""),
        ("doctor", "--fix"),
        ("doctor", "--cluster", "--fix", "--yes"),
        ("doctor", "--cluster", "--wait", "0"),
        ("doctor", "--cluster", "--peers", "a b"),
        ("doctor", "--cluster", "--serve", "5"),
        ("doctor", "--serve", "0"),
        ("doctor", "--serve", "nan"),
        ("doctor", "--ssh"),
        ("doctor", "--peers", "10.0.0.1"),
        ("jobs", "--timeout", "0"),
        ("peers", "--expect", "0"),
        ("peers", "--format", "nonsense"),
        ("peers", "--nonsense"),  # what the parser itself refuses
        ("peers", "--expect", "many"),
        ("doctor", "--fail-on", "nothing"),
        ("undo", "nonsense"),
        ("setup", "--check", "--config-folder", "/nowhere"),
        ("setup", "--check", "--program", "avahi-gpu"),
        ("setup", "--yes", "--program", "/opt/avahi-gpu/bin/avahi-gpu"),
        ("bench",),
        ("bench", "--nnodes", "1"),
        ("bench", "--nnodes", "2:3"),
        ("bench", "--nnodes", "2", "--model", "huge"),
        ("bench", "--nnodes", "2", "--dtype", "int3"),
        ("bench", "--nnodes", "2", "--nproc-per-node", "xpu"),
        ("bench", "--nnodes", "2", "--svg", "/nowhere/x.svg"),
        ("key", "nonsense"),
        ("key", "check", "--force"),
    ],
)
def test_a_misuse_is_told_with_its_code(arguments: tuple[str, ...], lab: Cluster) -> None:
    told = ask(lab[1], *arguments)

    assert (told["status"], told["exit_code"], told["data"]) == ("error", 2, {})
    assert [e["code"] for e in told["errors"]] == ["usage"]


# --- exit codes and streams -----------------------------------------------------------------------------


def run(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    return host.run(["avahi-gpu", *arguments], timeout=90)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("--python", "python3"), 2),  # of --version alone
        (("doctor", "--list"), 0),
        (("explain", "AG104"), 0),
        (("explain", "AG999"), 2),
        (("nonsense",), 2),
        (("doctor", "--nonsense"), 2),
        (("doctor",), 1),
        (("peers",), 1),
        (("key", "check", "--file", "/nowhere"), 2),
        (("setup", "--check"), 5),
        (("bench", "--nnodes", "2", "--join-timeout", "60"), 1),  # no avahi-daemon here
        (("bench", "--nnodes", "2", "--join-timeout", "1", "--peers", "127.0.0.1"), 3),
        (("launch", "--nnodes", "0", "x.py"), 2),
        (("launch", "--nnodes", "2", "/nowhere/x.py"), 2),
        (("launch", "--nnodes", "2", "examples/allreduce.py"), 125),  # no avahi-daemon here
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int, lab: Cluster) -> None:
    done = run(lab[1], *arguments)

    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_ctrl_c_ends_with_130_and_no_traceback(lab: Cluster) -> None:
    watching = lab[0].follow(["avahi-gpu", "peers", "--watch"])
    watching.wait_for("gpu-node-1")

    watching.ctrl_c()

    assert watching.wait() == 128 + signal.SIGINT
    assert "Traceback" not in watching.output


def test_ctrl_c_under_json_is_an_object_too(lab: Cluster) -> None:
    waiting = lab[0].follow(["avahi-gpu", "peers", "--json", "--expect", "5", "--timeout", "60"])
    time.sleep(2.0)  # wherever it is by then, Python itself has started

    waiting.ctrl_c()

    assert waiting.wait() == 128 + signal.SIGINT
    (line,) = waiting.lines
    envelope = json.loads(line)
    assert mismatch(envelope, envelope_of("peers", {})) == ""
    assert (envelope["exit_code"], envelope["errors"][0]["code"]) == (130, "interrupted")


def test_errors_go_to_stderr_and_say_what_to_do(lab: Cluster) -> None:
    done = run(lab[1], "peers")

    assert done.stdout == ""
    what_is, what_to_do = done.stderr.splitlines()
    assert what_is.startswith("avahi-gpu: ") and what_to_do.startswith("  ")


def test_a_reader_that_goes_early_is_no_error(lab: Cluster) -> None:
    done = lab[0].run(["bash", "-c", "avahi-gpu doctor --list | head -1; echo ${PIPESTATUS[0]}"], timeout=60)

    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
