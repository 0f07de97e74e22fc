"""`begin` runs a coroutine to its first wait, and a task can take it from there."""

from __future__ import annotations

import asyncio

import pytest

from caal_node.room.cue_player import begin


async def test_what_comes_before_the_first_wait_is_done_at_once() -> None:
    done: list[str] = []
    go_on = asyncio.Event()

    async def work() -> None:
        done.append("at once")
        await go_on.wait()
        done.append("later")
        await asyncio.sleep(0)
        done.append("last")

    rest = asyncio.create_task(begin(work()))
    assert done == ["at once"]
    go_on.set()
    await rest
    assert done == ["at once", "later", "last"]


async def test_work_that_never_waits_is_done_at_once() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("done")

    rest = begin(work())
    assert done == ["done"]
    await rest


async def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    async def work() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the very one above
        begin(work())


async def test_an_error_after_the_first_wait_ends_the_task() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError

    rest = asyncio.create_task(begin(work()))
    with pytest.raises(ValueError):  # noqa: PT011 - the very one above
        await rest


async def test_a_cancellation_reaches_the_work() -> None:
    heard: list[str] = []
    started = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def outer() -> None:
        rest = begin(work())
        started.set()
        await rest

    rest = asyncio.create_task(outer())
    await started.wait()
    rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rest
    assert heard == ["cancelled"]
