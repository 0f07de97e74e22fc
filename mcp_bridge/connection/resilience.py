"""Bounds on a server that fails: how long calls wait, when it is tried again or refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, Literal, Self, TypeAlias

Uniform: TypeAlias = Callable[[float, float], float]
"""A function that gives a number between two, as `random.uniform` does."""
CircuitState: TypeAlias = Literal["closed", "open", "half-open"]


_REST_SHARE: Final = 10.0


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

    It is closed; after `threshold` failures in a row it opens. It is half-open, for one probe, ten
    times as long after the last failure as that took to fail, `open_s` at most: a server that hung
    is left alone, and one that refuses at once is tried again when a person asks again. Times are
    seconds of one clock, whichever its owner reads. A failure counts by when its attempt began: ten
    calls that end with one crash are one failure. A probe that ends neither way (its caller went
    away) gives its place to another after `open_s` more.
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
        self._open_until = now + min(self._open_s, _REST_SHARE * (now - began))
        return True

    def succeeded(self) -> None:
        self.failures = 0


class CallDeadline:
    """Bounds how long a caller waits: silence has one bound, the whole call another.

    A server that tells of its progress is not silent, and may take longer than one that says
    nothing; but no progress takes it past the cap, since a server may tell of progress for ever.
    Use it as `async with`; it raises TimeoutError. `note_progress` and `hold` may be called from
    any task.
    """

    def __init__(self, quiet_s: float, cap_s: float) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._quiet_s: Final = quiet_s
        self._cap_s: Final = max(cap_s, quiet_s)
        self._cap: Final = self._loop.time() + self._cap_s
        self._held_until = 0.0
        self._timeout: Final = asyncio.timeout(quiet_s)
        self._waiting = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._waiting = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._waiting = False
        await self._timeout.__aexit__(*error)  # type: ignore[arg-type]  # as it was given to us

    @property
    def waited_s(self) -> float:
        """The bound that a caller who ran out of time has reached: of silence, or of the whole."""
        return self._cap_s if self._loop.time() >= self._cap else self._quiet_s

    def note_progress(self) -> None:
        """Notes that the server shows that it is at work."""
        self.hold(0.0)

    def hold(self, seconds: float) -> None:
        """Lets the server be silent for so long, as it waits for an answer of ours."""
        now = self._loop.time()
        self._held_until = max(self._held_until, now + seconds)
        if self._waiting and not self._timeout.expired():
            self._timeout.reschedule(min(self._held_until + self._quiet_s, self._cap))
