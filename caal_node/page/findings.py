"""What `caal-node doctor` finds, for the page: asked for once at a time and kept for some seconds.

The command line gives the way to look, since the page does not import it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from pydantic import BaseModel

from caal_node.core.errors import CaalError
from caal_node.redaction.secret_shapes import without_secrets

KEPT_S: Final = 20.0
LOOK_S: Final = 150.0
"""Seconds for all checks. They take some ten, and a minute where a server starts or hangs."""


class ShownFinding(BaseModel):
    """What was found of one part; `fix` says what to do, or gives a hint."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    fix: str = ""


class FindingsResponse(BaseModel):
    findings: list[ShownFinding]


class CannotLook(CaalError):
    """The checks did not come to an end; `str()` says what to do."""

    kind = "findings"


class Findings:
    """The newest findings.

    Args:
        look: Runs all checks. It may raise CannotLook, and is cancelled after LOOK_S.
        now: A clock in seconds.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[Sequence[ShownFinding]]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look: Final = look
        self._now: Final = now
        self._run: asyncio.Task[FindingsResponse] | None = None
        self._kept: tuple[float, FindingsResponse] | None = None

    async def newest(self) -> FindingsResponse:
        """Return what the last run has found, if that was just now, else what the next one finds.

        Raises:
            CannotLook: the run did not come to an end.
        """
        if self._kept is not None and self._now() - self._kept[0] < KEPT_S:
            return self._kept[1]
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self._found(), name="caal-findings")
        return await asyncio.shield(self._run)

    async def aclose(self) -> None:
        """End the run that is under way, and wait until it has ended."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def _found(self) -> FindingsResponse:
        try:
            async with asyncio.timeout(LOOK_S):
                found = await self._look()
        except TimeoutError:
            raise CannotLook(
                f"The checks took more than {LOOK_S:g} seconds; run: caal-node doctor"
            ) from None
        # Doctor quotes servers' own words.
        plain = [
            each.model_copy(
                update={"found": without_secrets(each.found), "fix": without_secrets(each.fix)}
            )
            for each in found
        ]
        answer = FindingsResponse(findings=plain)
        self._kept = self._now(), answer
        return answer
