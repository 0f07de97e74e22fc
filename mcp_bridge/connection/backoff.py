"""How long to wait before the next try: exponential, with full jitter.

Full jitter after https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/: any
time between nothing and the bound, so that hosts which lost one server do not return as one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, TypeAlias

Uniform: TypeAlias = Callable[[float, float], float]
"""A number between two, as `random.uniform`."""


class Backoff:
    """Seconds to wait, try by try. `reset` begins anew."""

    def __init__(self, first_s: float, longest_s: float, uniform: Uniform = random.uniform) -> None:
        self._first_s: Final = first_s
        self._longest_s: Final = longest_s
        self._uniform: Final = uniform
        self.tries = 0
        """Waits given out since the last reset."""

    def next(self) -> float:
        # Past 2**32 the bound has long been reached, and a float would overflow in the end.
        bound = min(self._longest_s, self._first_s * 2 ** min(self.tries, 32))
        self.tries += 1
        return self._uniform(0.0, bound)

    def reset(self) -> None:
        self.tries = 0
