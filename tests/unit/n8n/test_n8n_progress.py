"""Telling that a call still runs: ticks, and the steps of a run that streams its answer."""

from __future__ import annotations

import asyncio

import pytest

from n8n.calls.results import LAST_STEP_S, STEP_GAP_S, Progress, report_progress
from tests.stand_ins.virtual_loop import run

DEADLINE_S = 20.0


def test_a_step_is_told_at_once_and_with_each_tick_after_it() -> None:
    told: list[Progress] = []

    async def work() -> None:
        with report_progress(5.0, DEADLINE_S, told.append) as at_step:
            await asyncio.sleep(1)
            assert at_step is not None
            at_step("Looking.", True)
            await asyncio.sleep(10)
        await asyncio.sleep(60)

    run(work())
    assert [(p.elapsed_s, p.step) for p in told] == [
        (pytest.approx(1), "Looking."),
        (pytest.approx(5), "Looking."),
        (pytest.approx(10), "Looking."),
    ]


def test_of_a_flood_of_steps_few_are_told_and_the_last_with_the_next_tick() -> None:
    told: list[Progress] = []

    async def work() -> None:
        with report_progress(5.0, DEADLINE_S, told.append) as at_step:
            assert at_step is not None
            for number in range(1000):
                at_step(f"{number}", True)
                await asyncio.sleep(STEP_GAP_S / 100)
            await asyncio.sleep(5)

    run(work())
    assert len(told) < 13
    assert told[0].step == "0"
    assert told[-1].step == "999"


def test_words_that_may_be_the_answer_are_told_where_the_run_goes_on_after_them() -> None:
    told: list[Progress] = []

    async def work() -> None:
        with report_progress(50.0, DEADLINE_S, told.append) as at_step:
            assert at_step is not None
            at_step("Collecting.", False)
            await asyncio.sleep(10)
            at_step("Collecting.", True)
            at_step("Here it is.", False)
        await asyncio.sleep(60)

    run(work())
    assert [(p.elapsed_s, p.step) for p in told] == [(pytest.approx(LAST_STEP_S), "Collecting.")]


def test_where_nobody_listens_there_is_nothing_to_tell() -> None:
    with report_progress(5.0, DEADLINE_S, None) as at_step:
        assert at_step is None
