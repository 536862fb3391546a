"""Tables of the bench: on the terminal, and in a page."""

from __future__ import annotations

from bench.measure import Chapter, Series, Wanted
from bench.table import fill, mark_down, number, show, summary
from tests.unit.bench.chapters import chapter


def many() -> Chapter:
    series = Series("many", [float(n) for n in range(1, 31)], wanted=Wanted(median=15.0, tail=40.0))
    return Chapter("many", "Many", "", [series])


def test_the_table_shows_median_extremes_runs_ratio_what_was_wanted_and_outcomes() -> None:
    lines = show(chapter()).splitlines()
    assert lines[:2] == ["A title", "  from here to there"]
    assert lines[3].split() == ["median", "min", "max", "runs", "ratio", "wanted"]
    assert lines[4].split()[:7] == ["ours", "2.000", "s", "1.000", "3.000", "3", "0.50"]
    assert lines[4].endswith("ratio ≤ 1.05: yes")
    assert lines[6].endswith("  2 x job lost, too late")


def test_a_table_of_many_runs_has_a_95th_percentile() -> None:
    table = show(many())
    assert "95 %" in table
    assert "29.000" in table
    assert ": NO" in table  # the median is 15.5


def test_markdown_has_a_row_for_each_series_and_escapes_bars() -> None:
    c = chapter()
    c.series[1].name = c.baseline = "a | b"
    lines = mark_down(c).splitlines()
    assert lines[0] == "|  | median | from … to | runs | ratio |"
    assert lines[1] == "| --- | --- | --- | --- | --- |"
    assert lines[2] == "| ours | 2.00 s | 1.00 … 3.00 s | 3 | 0.50 |"
    assert lines[3].startswith("| a \\| b | 4.00 s | 4.00 … 5.00 s |")
    assert lines[4].startswith("| another | 2 x job lost, too late |  | 3 |")


def test_the_summary_has_what_was_wanted_and_nothing_else() -> None:
    lines = summary([chapter(), many()]).splitlines()
    assert lines[0] == "| measured | wanted | median | reached |"
    assert lines[2] == "| A title: ours | ratio ≤ 1.05 | 2.00 s, ratio 0.50 | yes |"
    assert lines[3] == "| Many: many | ≤ 15 s, 95 % ≤ 40 s | 15.5 s, 95 %: 29.0 s | **no** |"
    assert len(lines) == 4


def test_a_figure_above_what_is_wanted_never_looks_as_if_it_were_not() -> None:
    assert number(0.1004, "%", 0.1) == "0.1004 %"
    assert number(0.1004, "%", 0.11) == "0.10 %"
    assert number(0.0996, "%", 0.1) == "0.100 %"
    assert number(0.1, "%", 0.1) == "0.10 %"
    assert number(8.003, "s", 8.0) == "8.003 s"
    assert number(1.0 + 1e-9, "s", 1.0) == "1.000000 s"
    series = Series("slow", [0.1004], unit="%", wanted=Wanted(median=0.1))
    assert "| ≤ 0.1 % | 0.1004 % | **no** |" in summary([Chapter("a", "A", "", [series])])


def test_what_is_wanted_of_every_run_is_shown_as_so_many_of_all() -> None:
    wanted = Wanted(always="no restart")
    fine = Series("fine", [6.7, 6.9, 6.8], wanted=wanted)
    poor = Series("poor", [6.7], ["job lost", "job lost"], wanted=wanted)
    never = Series("never", [], ["job lost"], wanted=wanted)
    lines = summary([Chapter("a", "A", "", [fine, poor, never])]).splitlines()[2:]
    assert lines == [
        "| A: fine | no restart | no restart in 3 of 3 (next step after 6.80 s) | yes |",
        "| A: poor | no restart | no restart in 1 of 3 (next step after 6.70 s); 2 x job lost | **no** |",
        "| A: never | no restart | no restart in 0 of 1; job lost | **no** |",
    ]


def test_blocks_of_a_page_are_filled_and_the_rest_of_it_stays() -> None:
    page = (
        "# Title\n\n<!-- bench:a-key -->\nold\n<!-- /bench -->\nwords\n"
        "<!-- bench:nothing -->\nstays\n<!-- /bench -->\n<!-- bench:wanted -->\n<!-- /bench -->\nend\n"
    )
    text, unknown = fill(page, [chapter()], "two cores")
    assert "old" not in text
    assert mark_down(chapter()) in text
    assert summary([chapter()]) in text
    assert text.startswith("# Title\n\n<!-- bench:a-key -->\n|")
    assert text.endswith("<!-- /bench -->\nend\n")
    assert "<!-- bench:nothing -->\nstays\n<!-- /bench -->" in text
    assert unknown == ["nothing"]
    assert fill(text, [chapter()], "two cores") == (text, ["nothing"])  # twice is once


def test_numbers_have_the_digits_that_count() -> None:
    assert [number(v, "s") for v in (0.04567, 0.4567, 4.567, 45.67, 456.7)] == [
        "0.046 s",
        "0.46 s",
        "4.57 s",
        "45.7 s",
        "457 s",
    ]
    assert number(-0.02, "") == "-0.020"
