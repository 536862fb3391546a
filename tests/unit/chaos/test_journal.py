"""Journals are read as they grow; a line that its writer's death cut off is no line."""

from __future__ import annotations

from pathlib import Path

from chaos.journal import Journals, Life, Step, training
from chaos.train import Journal


def test_what_a_worker_writes_is_what_is_read(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    writer = Journal(tmp_path, "gpu-node-2")
    assert journals.read() == []
    writer.write("start", rank=1, size=2, restarts=0, master="10.0.0.1:29500")
    (life,) = journals.read()
    assert (life.host, life.rank, life.size, life.group) == ("gpu-node-2", 1, 2, None)

    writer.write("group", generation=4, members=["gpu-node-1", "gpu-node-2"], source=(3, 6), held=(2, 9))
    writer.write("saved", step=6)
    writer.write("committed", step=6)
    writer.write("step", step=7, loss=0.5, begin=1.0, end=2.0)
    writer.write("finished", step=7)
    (life,) = journals.read()
    assert life.group == (4, ("gpu-node-1", "gpu-node-2"))
    assert (life.source, life.held) == ((3, 6), (2, 9))
    assert (life.saved, life.committed, life.finished) == ([6], [6], True)
    assert life.steps == [Step(7, 0.5, 1.0, 2.0)]
    assert life.last > life.start


def test_each_start_of_a_worker_is_a_life_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        Journal(tmp_path, "gpu-node-1").write("start", rank=0, size=1, restarts=0, master="")

    assert [life.host for life in Journals(tmp_path).read()] == ["gpu-node-1", "gpu-node-1"]


def test_half_a_line_is_read_once_it_is_whole_and_never_where_it_stays_so(tmp_path: Path) -> None:
    Journal(tmp_path, "gpu-node-1").write("start", rank=0, size=1, restarts=0, master="")
    (file,) = tmp_path.iterdir()
    journals = Journals(tmp_path)
    with file.open("a") as more:
        more.write('{"kind": "saved", "at"')
        more.flush()
        assert journals.read()[0].saved == []
        more.write(': 1.0, "step": 3}\n{"kind": "sa')
        more.flush()
        assert journals.read()[0].saved == [3]
        assert journals.read()[0].saved == [3]


def test_a_group_trains_when_all_its_members_have_begun_and_ended_a_step() -> None:
    group = (1, ("a", "b"))
    one = Life("a", 0.0, 0, 2, group=group, steps=[Step(1, 0.0, 5.0, 6.0)])
    other = Life("b", 0.0, 1, 2, group=group, steps=[Step(1, 0.0, 5.5, 6.0)])

    assert training([one], 4.0) == set()
    assert training([one, other], 4.0) == {group}
    assert training([one, other], 5.2) == set()
