"""Clocks that run ahead: a day passes in minutes, for everything in this process.

Import it before anything that keeps `time.time` or `time.monotonic` for itself, as LiveKit's
messages do.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

LEAP_S: Final = 5.0
"""So far the clocks run on at once; then the loop and its peers work a little."""
WORK_S: Final = 0.004

_monotonic, _time = time.monotonic, time.time
_ahead = 0.0

time.monotonic = lambda: _monotonic() + _ahead
time.time = lambda: _time() + _ahead


async def pass_time(seconds: float) -> None:
    """Let the clocks run on so far; all that is due meanwhile happens, in its order."""
    global _ahead
    while seconds > 0:
        _ahead += min(LEAP_S, seconds)
        seconds -= LEAP_S
        await asyncio.sleep(WORK_S)
