"""What the bench keeps while it runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.measure import Chapter, Series
from bench.results import Results
from bench.run import PARTS, main
from tests.unit.bench.chapters import MACHINE, chapter


def test_the_file_is_whole_after_every_measurement(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.json", {"cores": 2})
    results.begin("start", load_at_start="0.1")
    growing = Chapter("grows", "t", "", [Series("s")])
    for value in (1.0, 2.0):
        growing.series[0].add(value)
        results.put("start", growing)
        data = json.loads((tmp_path / "r.json").read_text())
        assert data["chapters"][0]["series"][0]["values"][-1] == value
        assert data["parts"]["start"] == {"complete": False, "load_at_start": "0.1"}
    results.end("start", took_s=3.0)
    assert json.loads((tmp_path / "r.json").read_text())["parts"]["start"]["complete"] is True
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_part_that_is_measured_again_replaces_its_own_chapters_alone(tmp_path: Path) -> None:
    first = Results(tmp_path / "r.json", {})
    for part in ("start", "cost"):
        first.begin(part)
        first.put(part, chapter())
        first.end(part)

    second = Results(tmp_path / "r.json", {})
    assert second.all() == [chapter(), chapter()]
    second.begin("cost")
    second.put("cost", Chapter("other", "t", "", [Series("s", [1.0])]))
    third = Results(tmp_path / "r.json", {})
    assert [c.key for c in third.of("start")] == ["a-key"]
    assert [c.key for c in third.of("cost")] == ["other"]


def test_a_file_of_another_version_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text('{"version": 1, "chapters": []}')
    with pytest.raises(ValueError, match="another version"):
        Results(file, {})
    assert file.read_text() == '{"version": 1, "chapters": []}'


def test_rendering_fills_a_page_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "r.json", MACHINE)
    results.begin("start", load_at_start="0.25 0.20 0.10")
    results.put("start", chapter())
    page = tmp_path / "page.md"
    page.write_text("<!-- bench:a-key -->\n<!-- /bench -->\n<!-- bench:machine -->\n<!-- /bench -->\n")

    assert main(["--render", str(tmp_path / "r.json"), "--into", str(page)]) == 0
    assert "| ours | 2.00 s |" in page.read_text()
    assert "torch 2.13" in page.read_text()
    assert "Not complete: start" in page.read_text()
    page.write_text("<!-- bench:nobody -->\n<!-- /bench -->\n")
    assert main(["--render", str(tmp_path / "r.json"), "--into", str(page)]) == 1
    assert "nobody" in capsys.readouterr().err
    assert main(["--render", str(tmp_path / "r.json")]) == 0
    assert "| A title: ours | ratio ≤ 1.05 |" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}'])
def test_rendering_a_file_that_is_none_is_an_error_in_words(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.json"
    if text:
        file.write_text(text)
    assert main(["--render", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_the_page_has_a_place_for_every_part() -> None:
    page = (Path(__file__).parents[3] / "docs" / "bench.md").read_text()
    places = set(re.findall(r"<!-- bench:([\w-]+) -->", page))
    assert [n for n in PARTS if not any(p == n or p.startswith(f"{n}-") for p in places)] == []
