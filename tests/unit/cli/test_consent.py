"""Who is asked for what before the machine is changed."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import pytest
from rich.console import Console

from avahi_gpu.cli.consent import ask_for
from avahi_gpu.model import Change

FILE = Change("file", "write it", "/etc/x", b"x")
RULE = Change(
    "command",
    "let mDNS in",
    argv=("ufw", "allow", "5353/udp"),
    undo=("ufw", "delete", "allow", "5353/udp"),
    question="Open UDP port 5353 in the firewall?",
)
LATE = Change("command", "let torch in", argv=("ufw", "allow", "29500/tcp"), question="Open 29500 too?")


def ask(
    monkeypatch: pytest.MonkeyPatch, answers: str, wanted: Sequence[Change], *steps: Sequence[Change]
) -> tuple[list[Sequence[Change] | None] | None, str, str]:
    """Return what each step was answered, and what was written to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{a}\n" for a in answers)))
    monkeypatch.setattr(sys, "stderr", err)
    approve = ask_for(wanted, Console(file=out, width=200), yes=answers == "--yes", with_diffs=True)
    told = [approve(step) for step in steps] if approve is not None else None
    return told, out.getvalue(), err.getvalue()


def test_what_touches_the_firewall_is_asked_for_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _, err = ask(monkeypatch, "yn", [FILE, RULE], [FILE], [RULE])

    assert told == [[FILE], []]
    assert err == "Make them? [y/N] Open UDP port 5353 in the firewall? [y/N] "


def test_what_is_asked_in_the_same_words_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Change("file", "keep it open", "/etc/rules", b"x", question=RULE.question)

    assert ask(monkeypatch, "yn", [FILE, same, RULE], [FILE, same], [RULE])[0] == [[FILE], []]
    told, _, err = ask(monkeypatch, "yy", [FILE, same, RULE], [FILE, same], [RULE])
    assert (told, err.count("Open UDP port 5353")) == ([[FILE, same], [RULE]], 1)


def test_yes_answers_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _, err = ask(monkeypatch, "--yes", [FILE, RULE], [FILE], [RULE], [LATE])

    assert (told, err) == ([[FILE], [RULE], [LATE]], "")


def test_a_no_to_all_asks_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told, out, err = ask(monkeypatch, "ny", [FILE, RULE])
    assert (told, err) == (None, "Make them? [y/N] ")
    # the diffs have filled the screen: what they are stands once more before the question
    assert out == "In short:\n  write it: /etc/x\n  let mDNS in: ufw allow 5353/udp\n"
    assert ask(monkeypatch, "yn", [RULE])[0] is None  # and a no to all that there is
    assert ask(monkeypatch, "", [FILE])[0] is None  # and silence


def test_what_nobody_foresaw_is_shown_and_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    told, out, err = ask(monkeypatch, "yyn", [FILE], [FILE], [LATE])

    assert told == [[FILE], []]
    assert "let torch in: ufw allow 29500/tcp" in out
    assert err.endswith("Make these changes too? [y/N] Open 29500 too? [y/N] ")


def test_a_no_to_what_nobody_foresaw_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(monkeypatch, "yn", [FILE], [LATE])[0] == [None]


def test_a_question_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = Change("command", "t", argv=("true",), question="Open \x1b[2J it?")

    assert "\x1b" not in ask(monkeypatch, "yy", [evil], [evil])[2]


def test_the_command_and_what_undoes_it_are_shown() -> None:
    from avahi_gpu.render.diff import show_changes

    out = io.StringIO()
    show_changes(Console(file=out, width=200), [RULE], with_diffs=True)

    assert out.getvalue().splitlines() == [
        "  let mDNS in: ufw allow 5353/udp",
        "    undo runs: ufw delete allow 5353/udp",
    ]
