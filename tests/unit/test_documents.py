"""Every link of the project's pages leads somewhere, and every page is found from docs/README.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
KINDS = {"tutorial": "Tutorial", "how-to": "How-to", "reference": "Reference", "explanation": "Explanation"}
FOLDERS = ("docs", "ansible", "examples", "bench", "chaos", "tests", "templates", "scripts", "man")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^\n|\A)(?:^ {4}.*\n)+", re.MULTILINE)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]*(?:\([^()]*\))?[^()\s]*)\)")
SOURCE = re.compile(r"""(?:src|srcset)=["']([^"'\s]+)""")
MENTION = re.compile(r"(?<![\w/.:-])(docs/[\w./-]+\.(?:md|svg))\b")


def all_pages() -> list[Path]:
    """Return the project's own pages: not those that installed packages have brought."""
    found = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


@cache
def prose(page: Path) -> str:
    """Return the page without code that stands apart."""
    return INDENTED.sub("\n", FENCE.sub("", page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> set[str]:
    """Return what ``#…`` may name there, by GitHub's rule: small, no punctuation, hyphens for blanks."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.*?)\s*#*$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        again = 1
        while (name := slug if again == 1 else f"{slug}-{again - 1}") in found:
            again += 1
        found.add(name)
    return found


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, anchor) of each link that leads to a file of ours."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for target in LINK.findall(text) + SOURCE.findall(text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def test_every_link_leads_to_a_file_and_a_heading_of_the_project() -> None:
    wrong = []
    for page in all_pages():
        for path, anchor in links(page):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or ROOT not in (target, *target.parents):
                wrong.append(f"{page.relative_to(ROOT)}: {path}")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                wrong.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert wrong == []


def test_every_page_is_reached_from_the_index() -> None:
    """By links; a folder that is linked shows its files."""
    reached, ahead = set(), [DOCS / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        for path, _ in links(page):
            target = (page.parent / path).resolve() if path else page
            new = sorted(target.glob("*.md")) if target.is_dir() else [target]
            ahead += [one for one in new if one.suffix == ".md" and one.is_file()]
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_index_names_every_page_of_a_kind_under_its_heading(kind: str) -> None:
    parts = re.split(r"^## (.+)$", (DOCS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    named = set(re.findall(r"\]\(([^)#\s]+\.md)", sections.get(KINDS[kind], "")))

    missing = [p.name for p in (DOCS / kind).rglob("*.md") if str(p.relative_to(DOCS)) not in named]
    assert missing == [], f"add them to docs/README.md, under {KINDS[kind]}"


def test_documents_that_code_and_findings_name_are_there() -> None:
    places = [ROOT / name for name in ("Makefile", "pyproject.toml", "CHANGELOG.md")]
    for folder in (*FOLDERS, "avahi_gpu"):
        if folder != "tests":  # what a test names it opens, or has made up
            for suffix in ("*.py", "*.md", "*.yml", "*.j2", "*.sh"):
                places += (ROOT / folder).rglob(suffix)
    places += [p for p in (ROOT / "scripts").iterdir() if p.is_file()]
    lost = {
        f"{place.relative_to(ROOT)}: {name}"
        for place in places
        for name in MENTION.findall(place.read_text(encoding="utf-8", errors="replace"))
        if not (ROOT / name).is_file()
    }
    assert lost == set()
