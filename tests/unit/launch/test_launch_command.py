"""What the words of ``avahi-gpu launch`` mean, and what is refused with which sentence."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import Misuse
from avahi_gpu.launch import command as asked


def request(**changes: object) -> asked.Request:
    program = asked.Program((), "train.py", ())
    return asked.Request(**{"program": program, "job": "train", "min_nodes": 3, "max_nodes": 3, **changes})


@pytest.mark.parametrize(
    ("text", "nodes"), [("3", (3, 3)), ("2:3", (2, 3)), (" 1 ", (1, 1)), ("64", (64, 64))]
)
def test_a_number_of_nodes_is_one_number_or_two(text: str, nodes: tuple[int, int]) -> None:
    assert asked.parse_nodes(text) == nodes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3:2", "--nnodes 3:2 puts the larger number first"),
        ("x", "--nnodes x is not a number of nodes"),
        ("", "is not a number of nodes"),
        ("0", "--nnodes 0 asks for no node at all"),
        ("0:3", "asks for no node at all"),
        ("-1", "is not a number"),
        ("1:2:3", "is not a number"),
        ("2:", "is not a number"),
        ("٣", "is not a number"),  # a digit, but not one of ours
        ("65", "is more than 64 nodes"),
    ],
)
def test_a_wrong_number_of_nodes_is_a_sentence(text: str, says: str) -> None:
    with pytest.raises(Misuse) as error:
        asked.parse_nodes(text)
    assert says in error.value.message
    assert error.value.hint


def test_the_hint_for_swapped_numbers_is_the_command_that_was_meant() -> None:
    with pytest.raises(Misuse) as error:
        asked.parse_nodes("5:2")
    assert error.value.hint.endswith("--nnodes 2:5")


@pytest.mark.parametrize(("text", "word"), [("auto", "auto"), ("GPU", "gpu"), ("cpu", "cpu"), ("08", "8")])
def test_processes_are_a_device_or_a_number(text: str, word: str) -> None:
    assert asked.parse_processes(text) == word


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "1.5", "99999"])
def test_other_numbers_of_processes_are_refused(text: str) -> None:
    with pytest.raises(Misuse, match="--nproc-per-node"):
        asked.parse_processes(text)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["train.py"], asked.Program((), "train.py", ())),
        (["train.py", "--nnodes", "9"], asked.Program((), "train.py", ("--nnodes", "9"))),
        (["train.py", "--", "-x"], asked.Program((), "train.py", ("--", "-x"))),
        (
            ["--max-restarts=2", "--log-dir", "x", "train.py", "--epochs", "3"],
            asked.Program(("--max-restarts=2", "--log-dir", "x"), "train.py", ("--epochs", "3")),
        ),
        (["--log_dir", "x", "train.py"], asked.Program(("--log_dir", "x"), "train.py", ())),
        (["-t", "3", "train.py"], asked.Program(("-t", "3"), "train.py", ())),
        (["-t3", "train.py"], asked.Program(("-t3",), "train.py", ())),
        (["-m", "pkg.train", "-x"], asked.Program(("-m",), "pkg.train", ("-x",), "module")),
        (["--no-python", "bash", "run.sh"], asked.Program(("--no-python",), "bash", ("run.sh",), "program")),
        (["--no_python", "bash"], asked.Program(("--no_python",), "bash", (), "program")),
        (["--", "-odd.py"], asked.Program((), "-odd.py", ())),
    ],
)
def test_the_script_is_found_behind_torchruns_options(words: list[str], program: asked.Program) -> None:
    assert asked.split_words(words) == program


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (["--max-restrats", "2", "train.py"], "--max-restrats", "--max-restarts"),
        (["--foo", "train.py"], "--foo", "torchrun --help"),
        (["-x", "train.py"], "-x", "torchrun --help"),
    ],
)
def test_an_option_that_torchrun_does_not_know_does_not_swallow_the_script(
    words: list[str], says: str, hint: str
) -> None:
    with pytest.raises(Misuse) as error:
        asked.split_words(words)
    assert f"torchrun has no option {says}" in error.value.message
    assert hint in error.value.hint


def test_what_a_newer_torchrun_may_know_is_left_to_it_where_it_hides_no_script() -> None:
    assert asked.split_words(["--of-tomorrow=1", "train.py"]).script == "train.py"
    assert asked.split_words(["--max-restart", "1", "train.py"]).script == "train.py"  # cut short is fine


@pytest.mark.parametrize("words", [[], ["--max-restarts=2"], ["--standalone-not"], ["--module"], ["--"]])
def test_a_missing_script_is_told(words: list[str]) -> None:
    with pytest.raises(Misuse):
        asked.split_words(words)


@pytest.mark.parametrize("option", sorted(asked.OURS))
@pytest.mark.parametrize("form", ["{} x", "{}=x", "{}"])
def test_options_that_launch_sets_itself_are_refused_with_what_to_give_instead(
    option: str, form: str
) -> None:
    for name in (option, "--" + option[2:].replace("-", "_")):
        with pytest.raises(Misuse, match=option) as error:
            asked.split_words([*form.format(name).split(), "train.py"])
        assert error.value.hint


@given(st.lists(st.text(string.printable, min_size=1), max_size=6))
def test_whatever_is_typed_ends_in_a_program_or_a_sentence(words: list[str]) -> None:
    try:
        program = asked.split_words(words)
    except Misuse as error:
        assert error.message
        return
    rest = [w for w in words if w != "--"]
    found = [*program.options, program.script, *program.arguments]
    assert [w for w in found if w != "--"] == rest


@pytest.mark.parametrize(
    ("words", "job"),
    [
        (["/home/me/train.py"], "train"),
        (["my script (2).py"], "my-script-2"),
        (["-m", "pkg.jobs.finetune"], "finetune"),
        (["--no-python", "/usr/bin/bash"], "bash"),
        (["ünïcode.py"], "n-code"),
        (["???.py"], "job"),
        (["a" * 99 + ".py"], "a" * 63),
        (["../x/.py"], "job"),
    ],
)
def test_a_job_without_a_name_is_named_after_its_script(words: list[str], job: str) -> None:
    found = asked.default_job(asked.split_words(words))
    assert found == job
    assert asked.check_job(found) == found


@pytest.mark.parametrize("name", ["", "-x", "a b", "a" * 64, "x\n", "ü", "a,b", "a=b"])
def test_names_that_cannot_be_published_are_refused(name: str) -> None:
    with pytest.raises(Misuse, match="--job"):
        asked.check_job(name)


@pytest.mark.parametrize("name", ["", "a\n", "x" * 64, "ü" * 32, "a,b"])
def test_clusters_that_cannot_be_published_are_refused(name: str) -> None:
    with pytest.raises(Misuse, match="--cluster"):
        asked.check_cluster(name)


@pytest.mark.parametrize(
    ("host", "bare"), [("gpu-node-1.local", "gpu-node-1"), ("gpu-node-1.", "gpu-node-1"), (" a ", "a")]
)
def test_the_master_may_be_given_with_its_domain(host: str, bare: str) -> None:
    assert asked.check_master(host) == bare


@pytest.mark.parametrize("host", ["", "..", ".", "a..b", "-a", "a b", ".local"])
def test_a_master_that_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(Misuse, match="--master") as error:
        asked.check_master(host)
    assert error.value.hint


def test_hostile_or_empty_peers_are_refused_or_left_out() -> None:
    assert asked.split_peers("a, b,,fd77::1") == ("a", "b", "fd77::1")
    for text in ("", ",,", " ", "a b", "a;b", "x" * 300, ",".join(map(str, range(65)))):
        with pytest.raises(Misuse, match="--peers"):
            asked.split_peers(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1.9, 1e9])
def test_seconds_out_of_bounds_are_refused(value: float) -> None:
    with pytest.raises(Misuse, match="--lost-after"):
        asked.check_seconds("--lost-after", value, 2.0)


def test_the_torchrun_line_is_short_where_nothing_special_is_asked() -> None:
    program = asked.Program(("--max-restarts=2",), "train.py", ("--epochs", "3"))
    assert asked.torchrun_arguments(request(program=program), 2) == [
        "--nnodes=3",
        "--nproc-per-node=2",
        "--rdzv-backend=avahi",
        "--rdzv-id=train",
        "--max-restarts=2",
        "train.py",
        "--epochs",
        "3",
    ]


def test_the_torchrun_line_carries_what_differs_from_the_backends_defaults() -> None:
    full = request(
        min_nodes=2,
        cluster="lab",
        master="gpu-node-2",
        peers=("a", "b"),
        interface="eth1",
        lost_after_s=3.0,
        join_timeout_s=60.0,
        last_call_s=0.5,
        allow_skew=True,
    )
    line = asked.torchrun_arguments(full, "gpu")
    assert line[0] == "--nnodes=2:3"
    assert line[4] == (
        "--rdzv-conf=cluster=lab,master=gpu-node-2,interface=eth1,peers=a+b,"
        "lost_after=3,last_call_timeout=0.5,join_timeout=60,allow_skew=1"
    )


def test_leftover_variables_of_torchrun_are_found() -> None:
    assert asked.leftovers({"PET_NNODES": "2", "PATH": "/bin", "PET_RDZV_ID": "x"}) == [
        "PET_NNODES",
        "PET_RDZV_ID",
    ]
