"""Keeps a conversation in its order when the machine's clock is set back.

LiveKit sorts a history by the wall clock. Where that clock is set back, as on small machines
without one of their own, what is said from then on would stand before all that was said earlier,
and the model would answer an old message until the clock has caught up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from livekit.agents import llm

STEP_S: Final = 1.0
"""A wall clock that falls behind by so much between two turns was set; time servers that slow it
down take far less."""


class ClockSteps:
    """Notices by the monotonic clock how far the wall clock was set back."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset: float | None = None
        self._seen: frozenset[str] = frozenset()

    def mend(self, *histories: list[llm.ChatItem]) -> None:
        """Set the messages from before a step back as well, and sort `histories`.

        The first of them is the one that a turn is made of. A message may stand in several: it is
        the same object in all, or a copy with the same id.
        """
        now = self._wall()
        offset = now - self._monotonic()
        step = 0.0 if self._offset is None else self._offset - offset
        self._offset = offset
        if step > STEP_S:
            moved: set[int] = set()
            for history in histories:
                for item in history:
                    was_there = item.id in self._seen or item.created_at > now
                    if was_there and id(item) not in moved:
                        moved.add(id(item))
                        item.created_at -= step
                history.sort(key=lambda item: item.created_at)
        self._seen = frozenset(item.id for item in histories[0])
