"""One run for all who wait for it: who shares which, and what becomes of those who give up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.control.app import SharedRun, TooManyRequests
from tests.stand_ins import virtual_loop

RUN_S = 1.0


class Runs:
    """What was run, each run taking a second of the virtual clock."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []

    async def __call__(self, requests: tuple[int, ...]) -> int:
        self.seen.append(requests)
        await asyncio.sleep(RUN_S)
        return len(self.seen)


def play(story: Coroutine[Any, Any, None]) -> None:
    virtual_loop.run(story)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), max_size=20))
def test_whoever_asks_gets_a_run_that_began_after_they_asked(
    callers: list[tuple[int, float]],
) -> None:
    async def story() -> None:
        runs, began = Runs(), asyncio.get_running_loop().time()
        shared = SharedRun(runs, 4)

        async def ask(request: int, at: float) -> None:
            await asyncio.sleep(at)
            asked = asyncio.get_running_loop().time() - began
            number = await shared.result(request)
            assert request in runs.seen[number - 1]
            ended = asyncio.get_running_loop().time() - began
            # The rest of the run before it, and the run itself.
            assert asked + RUN_S - 1e-6 <= ended <= asked + 2 * RUN_S + 1e-6

        await asyncio.gather(*(ask(*caller) for caller in callers))
        await asyncio.sleep(0)
        assert shared.is_idle

    play(story())


def test_more_different_requests_than_a_run_may_have_are_refused_and_equal_ones_are_not() -> None:
    async def story() -> None:
        runs = Runs()
        shared = SharedRun(runs, 2)
        asked = [asyncio.create_task(shared.result(n)) for n in (1, 2, 1, 2, 3)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert results[:4] == [1, 1, 1, 1]
        assert isinstance(results[4], TooManyRequests)
        assert runs.seen == [(1, 2)]

    play(story())


def test_a_run_goes_on_when_a_caller_gives_up_and_fails_for_all_at_once() -> None:
    async def story() -> None:
        ran = 0

        async def fail(_: tuple[int, ...]) -> None:
            nonlocal ran
            await asyncio.sleep(RUN_S)
            ran += 1
            raise ValueError("no")

        shared = SharedRun(fail, 2)
        impatient = asyncio.create_task(shared.result(1))
        patient = asyncio.create_task(shared.result(1))
        await asyncio.sleep(RUN_S / 2)
        impatient.cancel()
        with pytest.raises(ValueError, match="no"):
            await patient
        assert ran == 1

    play(story())


def test_closing_cancels_what_runs_and_what_waits() -> None:
    async def story() -> None:
        runs = Runs()
        shared = SharedRun(runs, 2)
        first = asyncio.create_task(shared.result(1))
        await asyncio.sleep(RUN_S / 2)
        second = asyncio.create_task(shared.result(2))
        await asyncio.sleep(0)
        await shared.aclose()
        assert shared.is_idle
        assert [type(r) for r in await asyncio.gather(first, second, return_exceptions=True)] == [
            asyncio.CancelledError,
            asyncio.CancelledError,
        ]
        assert runs.seen == [(1,)]

    play(story())
