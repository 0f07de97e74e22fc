"""Starts a coroutine at once, not when the event loop comes to it.

`asyncio.create_task` queues a coroutine behind everything that is ready, such as a tool's own code:
a blocking call in it would delay the cue that announces it. Python 3.12 has `eager_start` for this;
3.11, which we support, does not.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """Run `work` up to its first wait now, and return the rest, which a task has to await.

    Raises:
        Exception: Whatever `work` raises before its first wait.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return _return_none()
    return _rest(work, waits_for)


async def _return_none() -> None:
    return None


async def _rest(work: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await _continue(work, waits_for)


@types.coroutine
def _continue(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Continue a coroutine that has reached its first wait, as `await` would."""
    while True:
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield waits_for
        except BaseException as error:  # `work` handles cancellations too
            thrown = error
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration:
            return
