"""Three callbacks for simple front ends, and the queue in which owners' callbacks run.

They follow the same events as everything else, so a reply that was begun early and thrown away
calls none of them. `on_event` gets every event.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from caal_node.core.events import (
    API_CALL,
    Event,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    UserSaid,
)

# Calls an owner's callback, plain or async, in the order of its events.

Callback: TypeAlias = Callable[..., Awaitable[None] | None]

CALLBACK_S: Final = 10.0
"""Seconds that an async callback may take; the next one waits for it."""
MAX_WAITING: Final = 1_000
"""Calls that wait behind a slow callback: the events of an hour's talk. More are left out."""

_log = logging.getLogger(__name__)


class CallbackQueue:
    """Makes one call after the other, and awaits what a callback returns before the next one.

    A plain function is called at once, on the event loop, unless an async one before it still
    runs. The conversation waits for neither. A callback that fails or takes too long is logged.
    """

    def __init__(self) -> None:
        self._waiting: Final[deque[tuple[Callback, tuple[Any, ...]]]] = deque()
        self._running: asyncio.Task[None] | None = None

    def call(self, callback: Callback, *args: Any) -> None:
        """Call `callback` now, or when those before it have ended."""
        if self._running is not None:
            if len(self._waiting) < MAX_WAITING:
                self._waiting.append((callback, args))
            else:
                _log.error("a callback is too slow; what came meanwhile is not told")
            return
        if (result := _called(callback, args)) is not None:
            self._running = asyncio.create_task(self._run(result), name="caal-callbacks")

    async def done(self) -> None:
        """Wait until every call that was asked for has ended."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def aclose(self) -> None:
        """Wait for what is under way, as long as one callback may take, then drop the rest."""
        if (running := self._running) is not None:
            await asyncio.wait([running], timeout=CALLBACK_S)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        self._waiting.clear()

    async def _run(self, first: Awaitable[None]) -> None:
        try:
            await _ended(first)
            while self._waiting:
                callback, args = self._waiting.popleft()
                if (result := _called(callback, args)) is not None:
                    await _ended(result)
        finally:
            self._running = None


def _called(callback: Callback, args: tuple[Any, ...]) -> Awaitable[None] | None:
    """Call it, and return what is to be awaited of it."""
    try:
        result = callback(*args)
    except Exception:
        _log.exception("a callback failed")
        return None
    return result if inspect.isawaitable(result) else None


async def _ended(result: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(CALLBACK_S):
            await result
    except TimeoutError:
        _log.exception("a callback did not end within %g seconds", CALLBACK_S)
    except Exception:
        _log.exception("a callback failed")


Phase: TypeAlias = Literal["thinking", "calling", "answering", "idle"]
"""In this order: the model is asked, tools run, the model has their results, the turn is over."""

MAX_INTERIM: Final = 64
"""Calls whose interim speech is kept. A reply has a few; calls of replies that were thrown away
never start, and newer ones replace them."""


def _do_nothing(*_: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks on the event loop, plain or async.

    They must not block. An async one is awaited before the next one is called, and the conversation
    goes on meanwhile. One that fails is logged.
    """

    on_status: Callable[[Phase], Awaitable[None] | None] = _do_nothing
    """It gets each phase of a turn once, as the phase begins."""
    on_interim_speech: Callable[[str], Awaitable[None] | None] = _do_nothing
    """It gets what a reply says before its calls ("Let me check that."), once these begin."""
    on_tool_call: Callable[[str, Mapping[str, Any]], Awaitable[None] | None] = _do_nothing
    """It gets the name and the arguments of a call that begins."""


class HookNotifier:
    """An event listener that calls `hooks`."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.queue: Final = CallbackQueue()
        """Makes the calls of all three, in order."""
        self._open: set[str] = set()
        self._phase: Phase = "idle"
        self._interim: dict[str, str] = {}

    def note_interim(self, call_id: str, text: str) -> None:
        """Note that the reply which makes the call `call_id` says `text` first."""
        self._interim[call_id] = text
        if len(self._interim) > MAX_INTERIM:
            del self._interim[next(iter(self._interim))]

    def __call__(self, event: Event) -> None:
        match event:
            case UserSaid():
                self._open.clear()  # calls of earlier turns do not count for this one
                self._enter("thinking")
            case ToolCallStarted(call_id=call_id, tool=tool, arguments=arguments):
                if not call_id.startswith(API_CALL):  # an API call belongs to no turn
                    self._open.add(call_id)
                    if text := self._interim.pop(call_id, ""):
                        self.queue.call(self._hooks.on_interim_speech, text)
                    self._enter("calling")
                self.queue.call(self._hooks.on_tool_call, tool, arguments or {})
            case ToolCallEnded(call_id=call_id) if call_id in self._open:
                self._open.discard(call_id)
                if not self._open:
                    self._enter("answering")
            case TurnEnded():
                self._open.clear()
                self._enter("idle")
            case _:
                pass

    def _enter(self, phase: Phase) -> None:
        if phase != self._phase:
            self._phase = phase
            self.queue.call(self._hooks.on_status, phase)
