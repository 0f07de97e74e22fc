"""Three callbacks for simple front ends, such as a lamp, a face or a log on a screen.

They follow the same events as everything else, so a reply that was begun early and thrown away
calls none of them. `on_event` gets every event.
"""

from __future__ import annotations

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
from caal_node.room.callback_queue import CallbackQueue

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
