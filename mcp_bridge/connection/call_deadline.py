"""How long a caller waits: silence has one bound, the whole call another.

A server that tells of its progress is not silent, and may take longer than one that says nothing;
but no progress takes it past the cap, since a server may tell of progress for ever.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self


class CallDeadline:
    """Use it as `async with`; raises TimeoutError. `heard` and `hold` may come from any task."""

    def __init__(self, quiet_s: float, cap_s: float) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._quiet_s: Final = quiet_s
        self.cap_s: Final = max(cap_s, quiet_s)
        self._cap: Final = self._loop.time() + self.cap_s
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
        """What a caller who ran out of time has waited for: silence, or the whole."""
        return self.cap_s if self._loop.time() >= self._cap else self._quiet_s

    def heard(self) -> None:
        """The server shows that it is at work."""
        self.hold(0.0)

    def hold(self, seconds: float) -> None:
        """For so long the server need not be heard of: it waits for an answer of ours."""
        now = self._loop.time()
        self._held_until = max(self._held_until, now + seconds)
        if self._waiting and not self._timeout.expired():
            self._timeout.reschedule(min(self._held_until + self._quiet_s, self._cap))
