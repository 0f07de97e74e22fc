"""Lets a person speak while a tool runs: they are answered at once, and the tool goes on.

LiveKit waits five seconds for the tools of a reply that was interrupted, and answers nothing
meanwhile. A call that has reported progress (`RunContext.update`) is not waited for: its result
joins the history when it is there, and is told at the next pause. So an interruption is what a call
reports its progress for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from livekit.agents import RunContext

STILL_RUNNING: Final = "The tool call is still in progress."
"""The model reads it as the call's result until there is one. LiveKit writes the same words where a
request is sent before they are in the history, so the prompt's beginning stays as it is."""


WATCHED_AFTER_S: Final = 0.2
"""Seconds of a call before its speech is watched. Most calls are over by then, and a wait of that
length is not noticed."""


@asynccontextmanager
async def not_waited_for_when_spoken_over(
    context: RunContext[Any] | None,
) -> AsyncGenerator[None]:
    """Wait for a call's turn and do its work inside; None is a call outside of a conversation."""
    if context is None:
        yield
        return
    watching: list[asyncio.Task[None]] = []

    def watch() -> None:
        name = "caal-spoken-over"
        watching.append(asyncio.create_task(_report_when_spoken_over(context), name=name))

    later = asyncio.get_running_loop().call_later(WATCHED_AFTER_S, watch)
    try:
        yield
    finally:
        later.cancel()
        for task in watching:
            task.cancel()
        if watching:
            await asyncio.gather(*watching, return_exceptions=True)


async def _report_when_spoken_over(context: RunContext[Any]) -> None:
    never = asyncio.get_running_loop().create_future()
    await context.speech_handle.wait_if_not_interrupted([never])
    if not getattr(context, "_updates", ()):  # else the tool has reported something by itself
        await context.update(STILL_RUNNING, template="{message}", silent=True)
