"""Tools that the model's server runs by itself, heard and told like those that are run here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from caal_node.core.events import Event, Outcome, ToolCallEnded, ToolCallStarted
from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.room.call_tracker import arguments_of
from caal_node.room.clock import Clock

SOURCE: Final = "model server"


class ServerTools:
    """The calls of one session that a model's server runs.

    `begin(call_id, tool)` and `end(call_id, outcome)` sound the cues, `tell` takes the events.
    """

    def __init__(
        self,
        clock: Clock,
        tell: Callable[[Event], None],
        begin: Callable[[str, str], None],
        end: Callable[[str, Outcome], None],
    ) -> None:
        self._clock = clock
        self._tell = tell
        self._begin = begin
        self._end = end
        self._open: dict[str, tuple[str, float]] = {}

    def note(self, run: ServerCall | ServerResult) -> None:
        if isinstance(run, ServerCall):
            self._open[run.id] = (run.name, self._clock.now())
            self._begin(run.id, run.name)
            arguments = arguments_of(run.arguments)
            self._tell(ToolCallStarted(run.id, run.name, "mcp", SOURCE, arguments))
        else:
            self._close(run.id, "error" if run.failed else "ok")

    def reply_over(self) -> None:
        """The stream has ended: what it did not tell the end of was broken off."""
        for call_id in list(self._open):
            self._close(call_id, "cancelled")

    def _close(self, call_id: str, outcome: Outcome) -> None:
        if (known := self._open.pop(call_id, None)) is None:
            return
        tool, began = known
        took_ms = round((self._clock.now() - began) * 1000)
        self._tell(ToolCallEnded(call_id, tool, "mcp", outcome, took_ms))
        self._end(call_id, outcome)
