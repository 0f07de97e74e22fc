"""Each attack of `tests/attack`, held to what `make attack` prints of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, Final, cast

import pytest

from tests.attack.harness import Attack, Outcome
from tests.attack.runner import Runner, all_attacks

pytestmark = pytest.mark.long

HOLD_MAX_MS: Final = 100.0
LATE_S: Final = 10.0
"""`make attack` has the machine to itself, and holds each to an audio frame and a second. Beside
other tests the loop gets its turn later; what these are here to find takes far longer."""


AT_ONCE: Final = 2
"""Attacks that are played at the same time: most of each is waiting."""


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Outcome]]]:
    """How each attack of this run ends, by its name; all are begun."""
    chosen = [item for item in request.session.items if item.path == request.path]
    attacks = [cast("Any", item).callspec.params["one"] for item in chosen]
    free = SimpleQueue[Runner]()

    def play(one: Attack) -> Outcome:
        runner = free.get()
        try:
            return runner.outcome_of(one)
        finally:
            free.put(runner)

    with ExitStack() as runners, ThreadPoolExecutor(AT_ONCE) as players:
        for _ in range(AT_ONCE):
            free.put(runners.enter_context(Runner()))
        yield {one.name: players.submit(play, one) for one in attacks}
        players.shutdown(cancel_futures=True)


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: one.name)
async def test_a_hostile_peer_holds_nothing_up_and_the_person_is_told(
    outcomes: Mapping[str, Future[Outcome]], one: Attack
) -> None:
    outcome = await asyncio.wrap_future(outcomes[one.name])
    assert not outcome.faults(HOLD_MAX_MS, LATE_S)
