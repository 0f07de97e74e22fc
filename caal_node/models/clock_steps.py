"""Keeps a conversation in order when the machine's clock is set back.

LiveKit orders a conversation by the wall clock's time of each item. After a step back whatever is
said would be put before what had been said already, until the clock is there again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from livekit.agents import llm

STEP_S: Final = 0.5
"""A smaller step is a clock that is being slewed, and is less than two turns are apart."""
_MARGIN_S: Final = 0.001
"""The two clocks are not read at once. So much further back than need be does no harm."""


class ClockSteps:
    """Follows the wall clock by one that is never set."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall: Final = wall
        self._steady: Final = steady
        self._offset = wall() - steady()
        self._seen: set[str] = set()

    def follow(self, *contexts: llm.ChatContext) -> None:
        """Move back, with the clock, what was said before it was set back; once for each item.

        Call it whenever a reply is asked for. What it has seen then, or what lies in the future,
        was said before.
        """
        now = self._wall()
        offset = now - self._steady()
        step, self._offset = offset - self._offset, offset
        items = {id(item): item for context in contexts for item in context.items}
        if step < -STEP_S:
            for item in items.values():
                if item.id in self._seen or item.created_at > now:
                    item.created_at += step - _MARGIN_S
            for context in contexts:
                if not context.readonly:
                    context.items.sort(key=lambda item: item.created_at)
        self._seen = {item.id for item in items.values()}
