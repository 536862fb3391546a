"""The picture of the rooms is the one of the code as it is."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pictures.architecture import HOLDS, crossings, draw_architecture, lay_out, read_rooms, reduced
from tests.unit.test_arrows import ARROWS

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "pictures"


def test_the_committed_picture_is_the_one_of_the_code() -> None:
    committed = (FOLDER / "architecture.svg").read_text(encoding="utf-8")

    assert committed == draw_architecture(), "run: .venv/bin/python -m pictures architecture"


def test_every_room_is_there_and_imports_what_it_may() -> None:
    rooms = read_rooms()

    assert set(rooms) == set(ARROWS) == set(HOLDS)
    for name, room in rooms.items():
        assert room.imports <= ARROWS[name] | {"model"}
    assert rooms["avahi"].libraries == ("dbus_next",)
    assert rooms["model"].pure == rooms["files"].pure == rooms["checks"].pure == "pure"
    assert rooms["host"].pure == ""


def test_arrows_that_follow_from_others_are_left_out_and_no_others() -> None:
    rooms = read_rooms()
    arrows = reduced(rooms)

    def reach(name: str) -> set[str]:
        return set(arrows[name]).union(*(reach(other) for other in arrows[name]))

    for name, room in rooms.items():
        assert room.imports <= reach(name)
    assert "model" not in arrows["cli"]


def test_rooms_stand_apart_and_every_arrow_leads_down_onto_its_room() -> None:
    arrows = reduced(read_rooms())
    spots = lay_out(arrows)

    for one, other in combinations(spots.values(), 2):
        assert one.top != other.top or one.right < other.left or other.right < one.left
    assert crossings(arrows, spots) == []


@pytest.mark.parametrize("picture", sorted(p.name for p in FOLDER.glob("*.svg")))
def test_the_pictures_of_the_documents_need_nothing_from_outside(picture: str) -> None:
    text = (FOLDER / picture).read_text(encoding="utf-8")
    root = ET.fromstring(text)

    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert not tags & {"script", "foreignObject", "image", "use", "a"}
    assert "url(" not in text and "href" not in text and "@import" not in text
    assert [child.tag.partition("}")[2] for child in root][:2] == ["title", "desc"]
