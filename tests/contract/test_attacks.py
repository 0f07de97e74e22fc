"""Each attack of `tests/attack`, held to what `make attack` prints of it."""

from __future__ import annotations

import asyncio

import pytest

from tests.attack.harness import Attack
from tests.attack.runner import all_attacks, outcome_of


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: one.name)
async def test_a_hostile_peer_holds_nothing_up_and_the_person_is_told(one: Attack) -> None:
    outcome = await asyncio.to_thread(outcome_of, one)
    assert not outcome.faults
