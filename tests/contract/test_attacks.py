"""Each attack of `tests/attack`, held to what `make attack` prints of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from tests.attack.harness import Attack
from tests.attack.runner import Runner, all_attacks

pytestmark = pytest.mark.long

HOLD_MAX_MS: Final = 100.0
LATE_S: Final = 10.0
"""`make attack` has the machine to itself, and holds each to an audio frame and a second. Beside
other tests the loop gets its turn later; what these are here to find takes far longer."""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as found:
        yield found


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: one.name)
async def test_a_hostile_peer_holds_nothing_up_and_the_person_is_told(
    runner: Runner, one: Attack
) -> None:
    outcome = await asyncio.to_thread(runner.outcome_of, one)
    assert not outcome.faults(HOLD_MAX_MS, LATE_S)
