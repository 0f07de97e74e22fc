"""What computes for long does so in a worker thread, and one at a time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mcp_bridge.core.computing import computed


class Computing:
    """Counts how many threads compute at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0
        self.order: list[int] = []

    def step(self, number: int) -> int:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        sum(range(300_000))  # long enough for another thread to get its turn meanwhile
        with self._lock:
            self._now -= 1
            self.order.append(number)
        return number


async def test_one_thread_computes_at_a_time_and_all_are_served_in_turn() -> None:
    computing = Computing()
    numbers = range(12)
    found = await asyncio.gather(*(computed(computing.step, number) for number in numbers))
    assert found == computing.order == list(numbers)
    assert computing.most == 1


async def test_who_waits_no_longer_holds_up_nobody() -> None:
    goes_on = threading.Event()
    task = asyncio.create_task(computed(goes_on.wait, 5.0))
    waiting = asyncio.create_task(computed(int, "1"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    try:
        assert await asyncio.wait_for(computed(int, "2"), 5.0) == 2
    finally:
        goes_on.set()
    assert waiting.cancelled()


async def test_an_error_is_the_callers() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await computed(int, "x")
    assert await computed(int, "3") == 3


def test_each_event_loop_has_its_own_turn() -> None:
    assert [asyncio.run(computed(int, text)) for text in ("1", "2")] == [1, 2]
