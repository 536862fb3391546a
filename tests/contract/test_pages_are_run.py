"""The commands on a page are run by a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.pages import Block, read_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))
SAMPLE = """# A page
## First
```sh every-node
run --this
  and-this
```
    ```python train.py
    print(1)
    ```
## Second
````text
```
````
```sh one-node
x
```
"""


def test_blocks_are_read_as_they_are_marked() -> None:
    assert read_blocks("page.md", SAMPLE) == [
        Block("page.md", 4, "First", "sh", "every-node", "", "run --this\n  and-this"),
        Block("page.md", 8, "First", "python", "", "train.py", "print(1)"),
        Block("page.md", 12, "Second", "text", "", "", "```"),
        Block("page.md", 15, "Second", "sh", "one-node", "", "x"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```sh somewhere\nx\n```", "page.md:1: say where it runs"),
        ("\n```sh on every node\nx\n```", "page.md:2: one word behind the language"),
        ("```python ../train.py\nx\n```", "the name of a file"),
        ("```text\nx", "page.md:1: this block does not end"),
    ],
)
def test_a_block_marked_in_other_words_is_a_mistake(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_blocks("page.md", text)


def test_pages_with_commands_are_named_by_a_test() -> None:
    tests = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("*.py"))
    commanding = [
        page
        for page in PAGES
        if any(b.place not in ("", "not-tested") for b in read_blocks(page, (ROOT / page).read_text()))
    ]
    assert [page for page in commanding if page not in tests] == []
