"""Begin a coroutine at once, not when the event loop comes to it.

`asyncio.create_task` queues a coroutine behind everything that is ready, and a tool's own code is
among that: one blocking call in it would hold back the very ping that announces it. Python 3.12
has `eager_start` for this; 3.11, which we support, has not.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """Run `work` up to its first wait, now; what is left is returned, to be awaited in a task.

    Raises:
        Exception: whatever `work` raises before its first wait.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return _nothing()
    return _rest(work, waits_for)


async def _nothing() -> None:
    return None


async def _rest(work: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await _go_on(work, waits_for)


@types.coroutine
def _go_on(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """What `await` does with a coroutine, for one that has already come to its first wait."""
    while True:
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield waits_for
        except BaseException as error:  # a cancellation too is `work`'s to handle
            thrown = error
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration:
            return
