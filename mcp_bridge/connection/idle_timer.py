"""Since when nobody has used a connection."""

from __future__ import annotations

from typing import Final


class IdleTimer:
    """Times are seconds of one clock, whichever its owner reads."""

    def __init__(self, ttl_s: float, now: float) -> None:
        self._ttl_s: Final = ttl_s
        self._used = now

    def touch(self, now: float) -> None:
        """It is in use, or was until now."""
        self._used = now

    def due(self) -> float:
        """When it will have been idle for long enough, if nobody uses it until then."""
        return self._used + self._ttl_s

    def over(self, now: float) -> bool:
        return now >= self.due()
