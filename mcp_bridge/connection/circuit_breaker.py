"""Calls of a server that only ever fails are refused at once, until a probe succeeds."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["closed", "open", "half-open"]


class CircuitBreaker:
    """closed; after `threshold` failures in a row open; `open_s` later half-open, for one probe.

    Times are seconds of one clock, whichever its owner reads. A failure counts by when its attempt
    began: ten calls that end with one crash are one failure. A probe that ends neither way (its
    caller went away) gives its place to another after `open_s` more.
    """

    def __init__(self, threshold: int, open_s: float) -> None:
        self._threshold: Final = threshold
        self._open_s: Final = open_s
        self._failures = 0
        self._failed_at = float("-inf")
        self._until = float("-inf")

    def state(self, now: float) -> State:
        if self._failures < self._threshold:
            return "closed"
        return "open" if now < self._until else "half-open"

    def admit(self, now: float) -> float:
        """0: go on; else the seconds until a probe may be made. Takes the probe's place."""
        match self.state(now):
            case "closed":
                return 0.0
            case "open":
                return self._until - now
            case "half-open":
                self._until = now + self._open_s
                return 0.0

    @property
    def failures(self) -> int:
        """In a row."""
        return self._failures

    def failed(self, began: float, now: float) -> bool:
        """An attempt that began then has failed. Whether that opens the breaker, or holds it so."""
        if began < self._failed_at:
            return False
        self._failures += 1
        self._failed_at = now
        if self._failures < self._threshold:
            return False
        self._until = now + self._open_s
        return True

    def succeeded(self) -> None:
        self._failures = 0
