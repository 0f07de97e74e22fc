"""How often an instance may be asked: n8n answers 429 after 100 requests in 5 minutes at its MCP
server, to everybody behind one address."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

MAX_REQUESTS: Final = 100
WINDOW_S: Final = 300.0
"""n8n 2.41.1's own limit in production. It counts in fixed windows; a sliding one is no looser."""
KEPT_FOR_LISTING: Final = 8
"""Requests that reading details leaves over: two listings of an instance with more than 200
workflows, so that a reload can tell at least which workflows came and went."""


class RateLimiter:
    """Counts the requests of the last WINDOW_S seconds, over all discoveries of one N8nTools."""

    def __init__(
        self,
        max_requests: int = MAX_REQUESTS,
        window_s: float = WINDOW_S,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_requests = max_requests
        self._window_s = window_s
        self._clock = clock
        self._sent: deque[float] = deque()

    def acquire(self, *, keep_back: int = 0) -> float:
        """Count a request and return 0.0, or return the seconds until it may be sent.

        `keep_back` is how many requests are to be left for others.
        """
        now = self._clock()
        while self._sent and now - self._sent[0] >= self._window_s:
            self._sent.popleft()
        free = self._max_requests - keep_back
        if len(self._sent) < free:
            self._sent.append(now)
            return 0.0
        waited_for = self._sent[len(self._sent) - free] if free > 0 else self._sent[-1]
        return max(waited_for + self._window_s - now, 0.001)
