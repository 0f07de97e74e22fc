"""When a lost server is tried again, and when its calls are refused at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

Uniform: TypeAlias = Callable[[float, float], float]
"""A function that gives a number between two, as `random.uniform` does."""
CircuitState: TypeAlias = Literal["closed", "open", "half-open"]


class Backoff:
    """Gives the seconds to wait, try by try: exponential, with full jitter.

    Full jitter means any time between nothing and the bound, so that hosts which lost one server do
    not return as one. Source:
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """

    def __init__(self, first_s: float, longest_s: float, uniform: Uniform = random.uniform) -> None:
        self._first_s: Final = first_s
        self._longest_s: Final = longest_s
        self._uniform: Final = uniform
        self.tries = 0
        """The number of waits that were given since the last reset."""

    def next(self) -> float:
        # Past 2**32 the bound has long been reached, and a float would overflow in the end.
        bound = min(self._longest_s, self._first_s * 2 ** min(self.tries, 32))
        self.tries += 1
        return self._uniform(0.0, bound)

    def reset(self) -> None:
        self.tries = 0


class CircuitBreaker:
    """Refuses calls of a server that only ever fails, until a probe succeeds.

    It is closed; after `threshold` failures in a row it opens; `open_s` later it is half-open, for
    one probe. Times are seconds of one clock, whichever its owner reads. A failure counts by when
    its attempt began: ten calls that end with one crash are one failure. A probe that ends neither
    way (its caller went away) gives its place to another after `open_s` more.
    """

    def __init__(self, threshold: int, open_s: float) -> None:
        self._threshold: Final = threshold
        self._open_s: Final = open_s
        self._failed_at = float("-inf")
        self._open_until = float("-inf")
        self.failures = 0
        """Failures in a row."""

    def state(self, now: float) -> CircuitState:
        if self.failures < self._threshold:
            return "closed"
        return "open" if now < self._open_until else "half-open"

    def admit(self, now: float) -> float:
        """Gives the seconds until a probe may be made; 0 lets the call through as the probe."""
        state = self.state(now)
        if state == "open":
            return self._open_until - now
        if state == "half-open":
            self._open_until = now + self._open_s
        return 0.0

    def failed(self, began: float, now: float) -> bool:
        """Notes that an attempt which began then has failed; tells whether the breaker is open."""
        if began < self._failed_at:
            return False
        self.failures += 1
        self._failed_at = now
        if self.failures < self._threshold:
            return False
        self._open_until = now + self._open_s
        return True

    def succeeded(self) -> None:
        self.failures = 0
