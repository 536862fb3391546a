"""So many at once, the newest and the oldest of those who wait by turns, and no turn is ever lost."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.avahi.turns import Turns


def test_the_newest_comes_before_a_crowd_and_the_oldest_waits_for_one_turn_alone() -> None:
    async def play() -> list[int]:
        turns, served = Turns(1), []
        door = asyncio.Event()

        async def work(number: int) -> None:
            async with turns.turn():
                await door.wait()
                served.append(number)

        tasks = [asyncio.ensure_future(work(number)) for number in range(7)]
        await asyncio.sleep(0)
        door.set()
        await asyncio.gather(*tasks)
        return served

    assert asyncio.run(play()) == [0, 6, 1, 5, 2, 4, 3]


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=20))
def test_never_more_than_so_many_and_everybody_who_stays_is_served(
    limit: int, workers: list[tuple[int, int]]
) -> None:
    """Each worker needs some steps of the loop, and may give up after some others."""

    async def play() -> None:
        turns, inside = Turns(limit), 0

        async def work(steps: int) -> None:
            nonlocal inside
            async with turns.turn():
                inside += 1
                assert inside <= limit
                try:
                    for _ in range(steps):
                        await asyncio.sleep(0)
                finally:
                    inside -= 1

        tasks = [asyncio.ensure_future(work(steps)) for steps, _ in workers]
        for moment in range(7):
            for task, (_, patience) in zip(tasks, workers, strict=True):
                if 0 < patience == moment:
                    task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        for _ in range(limit):  # every turn has been given back
            await asyncio.wait_for(turns.turn().__aenter__(), 5)

    asyncio.run(play())
