"""A real model's conversations are heard as they were: the same requests, calls and words."""

from __future__ import annotations

import pytest

from tests.replayed_conversations import heard, replayed

HEARD = heard()


@pytest.mark.parametrize("name", HEARD)
async def test_a_recorded_conversation_is_heard_again_word_for_word(name: str) -> None:
    turns, unknown = await replayed(name)
    assert turns == HEARD[name]
    assert unknown == 0
