"""Findings as people, programs and monitoring systems read them."""

from __future__ import annotations

import io

from rich.console import Console

from avahi_gpu.model import Change, Finding, Fix
from avahi_gpu.render.findings import findings_data, nagios_line, show_findings, summarize

OK = Finding("AG101", "nsswitch-valid", "names", "ok", "nsswitch.conf is well-formed")
WARN = Finding(
    "AG106", "lookups-fast", "names", "warn", "looking it up took 6 s", ("took 6.0 s",), hint="correct it"
)
ERROR = Finding(
    "AG304",
    "avahi-running",
    "host",
    "error",
    "avahi-daemon does not run",
    ("no owner\x1b[2J",),
    Fix("start it", (Change("daemon", "start it", argv=("avahi-daemon", "-D", "a b")),)),
)


def shown(*findings: Finding) -> list[str]:
    stream = io.StringIO()
    show_findings(findings, Console(file=stream, width=200, soft_wrap=True, markup=False, highlight=False))
    return stream.getvalue().splitlines()


def test_errors_stand_last_and_one_line_tells_the_verdict() -> None:
    lines = shown(ERROR, OK, WARN)

    assert [line.split()[:2] for line in lines if line[:1].strip()][:3] == [
        ["ok", "names"],
        ["warn", "AG106"],
        ["error", "AG304"],
    ]
    assert lines[-1] == "1 error, 1 warning (1 fine): avahi-daemon does not run"


def test_what_is_fine_is_one_line_an_area_unless_all_is_asked_for() -> None:
    skipped = Finding("AG105", "own-name", "names", "skip", "not asked, because of AG304")
    stream = io.StringIO()
    show_findings([OK, skipped, ERROR], Console(file=stream, width=200), whole=True)

    assert [line for line in shown(OK, skipped, ERROR) if "fine" in line or "AG105" in line] == [
        "ok      names    1 fine, 1 not asked",
        "1 error (1 fine): avahi-daemon does not run",
    ]
    assert [line.split()[1] for line in stream.getvalue().splitlines()[:2]] == ["AG101", "AG105"]


def test_commands_are_quoted_for_a_shell_and_outside_words_cannot_steer_the_terminal() -> None:
    lines = shown(ERROR)

    assert any(line.endswith("this runs: avahi-daemon -D 'a b'") for line in lines)
    assert any("no owner\\x1b[2J" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_no_error_is_said_in_words() -> None:
    assert summarize([OK]) == "no error found (1 fine)"
    assert summarize([]) == "no error found (nothing was asked)"


def test_what_nobody_could_tell_is_seen_in_the_verdict() -> None:
    unknown = Finding("AG203", "joined", "network", "unknown", "nobody could read it")

    assert summarize([OK, unknown]) == "no error found, 1 unknown (1 fine): nobody could read it"
    assert summarize([ERROR]) == "1 error: avahi-daemon does not run"
    assert summarize([OK, unknown, ERROR]).startswith("1 error (1 fine, 1 unknown): ")


def test_data_holds_the_commands_of_a_fix_and_advice_without_any() -> None:
    first, second, third = findings_data([OK, WARN, ERROR])["findings"]

    assert first["fix"] is None
    assert second["fix"] == {"title": "correct it", "commands": []}
    assert third["fix"] == {"title": "start it", "commands": ["avahi-daemon -D 'a b'"]}
    assert set(third) == {"id", "slug", "area", "verdict", "says", "evidence", "fix"}


def test_a_monitoring_line_has_the_codes_of_its_guidelines() -> None:
    assert [nagios_line(f)[1] for f in ([OK], [OK, WARN], [WARN, ERROR], [])] == [0, 1, 2, 3]
    assert nagios_line([OK, ERROR])[0].startswith("AVAHI-GPU CRITICAL - ")
    assert nagios_line([ERROR])[0].count("|") == 1


def test_the_second_look_shows_what_needs_a_reader_and_judges_all() -> None:
    stream = io.StringIO()

    show_findings([OK, WARN], Console(file=stream, width=200), brief=True)

    lines = stream.getvalue().splitlines()
    assert lines[0].split()[:2] == ["warn", "AG106"]
    assert lines[-1].startswith("1 warning (1 fine): ")


def test_one_command_mends_and_whoever_is_not_root_is_told_to_use_sudo() -> None:
    stream = io.StringIO()
    show_findings([ERROR], Console(file=stream, width=200, soft_wrap=True), is_root=False)

    assert [line.strip() for line in shown(ERROR) if "to mend" in line] == [
        "to mend: avahi-gpu doctor --fix   # start it"
    ]
    assert 'to mend: sudo "$(command -v avahi-gpu)" doctor --fix   # start it' in stream.getvalue()


def test_what_could_not_be_told_for_one_reason_is_one_line() -> None:
    findings = [Finding(f"AG20{n}", "firewall", "network", "unknown", "only root can") for n in (4, 5)]
    other = Finding("AG108", "dns", "names", "unknown", "nobody asked")

    assert [line for line in shown(*findings, other) if line.startswith("unknown")] == [
        "unknown AG204, AG205  only root can",
        "unknown AG108  nobody asked",
    ]


def test_a_terminals_lines_go_on_below_their_own_beginning_and_commands_stay_whole() -> None:
    stream = io.StringIO()
    long = Fix("start it " * 9, ERROR.fix.changes if ERROR.fix else ())
    finding = Finding("AG304", "a", "host", "error", "word " * 30, ("proof " * 20,), long, "hint " * 20)
    show_findings([finding], Console(file=stream, width=60, force_terminal=True, color_system=None))

    lines = stream.getvalue().splitlines()
    told = [line for line in lines if "to mend" not in line and not line.startswith("1 error")]
    assert all(len(line) < 60 for line in told) and len(told) > 8
    assert all(line.startswith(("error ", "            ")) for line in told if "word" not in line)
    assert sum("start it start it" in line for line in lines) == 1


def test_a_proof_that_says_the_same_is_not_said_twice() -> None:
    finding = Finding("AG328", "a", "host", "error", "there is no enp3s0", ("there is no enp3s0", "eth0 is"))

    assert [line.strip() for line in shown(finding) if line[:1].isspace()][:1] == ["eth0 is"]
