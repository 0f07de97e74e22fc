"""Counts calls in sliding windows of time, with a bounded memory.

A call is in its window from when it begins until the window's length has passed since its end. So
however long a call waits for a person's yes or for its server, no stretch of time of that length
ever holds more calls than are allowed.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

COUNTS_MAX: Final = 1_024
"""Counts that are kept, such as one for each of some tools and participants. Past that the count
that was asked for least lately is forgotten, and begins at none again."""


@dataclass(slots=True)
class _Window:
    running: int = 0
    ended: deque[float] = field(default_factory=deque[float])
    """When calls ended, the oldest first; never more than are allowed in the window."""


class CallCounts:
    """Counts by a key. `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], *, counts_max: int = COUNTS_MAX) -> None:
        self._clock: Final = clock
        self._counts_max: Final = counts_max
        self._windows: Final[OrderedDict[Hashable, _Window]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def wait_s(self, key: Hashable, most: int, length_s: float) -> float:
        """Return the seconds until one more call fits into the window of `length_s`; 0 for none.

        Where only calls that still run fill the window, it is the least that it can be.
        """
        if (window := self._windows.get(key)) is None:
            return 0.0
        self._windows.move_to_end(key)
        now = self._clock()
        while window.ended and now - window.ended[0] >= length_s:
            window.ended.popleft()
        if window.running + len(window.ended) < most:
            return 0.0
        return max(math.ulp(0), window.ended[0] + length_s - now) if window.ended else length_s

    def begin(self, key: Hashable) -> None:
        """Count a call that begins. `wait_s` has to be asked first."""
        window = self._windows.setdefault(key, _Window())
        self._windows.move_to_end(key)
        window.running += 1
        if len(self._windows) > self._counts_max:
            # Calls that run are counted whatever happens: each is a task, which costs more.
            oldest = next((k for k, each in self._windows.items() if not each.running), None)
            if oldest is not None:
                del self._windows[oldest]

    def end(self, key: Hashable, *, counts: bool) -> None:
        """End a call that was begun; without `counts` it is as if it had never been."""
        window = self._windows[key]
        window.running -= 1
        if counts:
            window.ended.append(self._clock())
        elif not (window.running or window.ended):
            del self._windows[key]
