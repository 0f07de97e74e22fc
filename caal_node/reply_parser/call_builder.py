"""Calls on their way from a reply to its events: named, given arguments, ended or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from caal_node.reply_parser.arguments import BadArguments, from_json, from_value
from caal_node.reply_parser.events import (
    BrokenCall,
    Event,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)
from caal_node.reply_parser.tool_index import ToolIndex, has_gap, plausible

_NUMBERED = re.compile(r"^(?:functions\.)?(.+?)(?::\d+(?:\.\d+)*)?$", re.DOTALL)
"""How some models dress a name: `functions.set_timer:0`, or `:1.0`."""
_MAX_UNKNOWN_NAME_CHARS = 64
CUT_OFF: Final = "The call was cut off."


class OpenCall:
    """A call whose name has been read. It is ended once; what comes later is ignored."""

    def __init__(self, calls: CallBuilder, name: str) -> None:
        tools = calls.tools
        self._calls = calls
        self._done = False
        self.name = name
        """What the model calls the tool."""
        self.tool = tools.find(name) if name else None
        """The tool that is called; None while it is unknown, or where any name is allowed."""
        self._own_name = self.tool.name if self.tool is not None else None
        if self.tool is None and tools.accepts_any_name and name.strip() and not has_gap(name):
            self._own_name = _NUMBERED.sub(r"\1", name)

    def end_json(self, text: str, *, ended: bool = False) -> None:
        """End the call with arguments that are JSON text. ended: see `from_json`."""
        if not self._done:
            try:
                self._make(from_json(text, self.tool, ended=ended))
            except BadArguments as problem:
                self.fail(str(problem))

    def end(self, arguments: Any) -> None:
        """End the call with arguments that are an object, or JSON of one."""
        if not self._done:
            try:
                self._make(from_value(arguments, self.tool))
            except BadArguments as problem:
                self.fail(str(problem))

    def _make(self, arguments: dict[str, Any]) -> None:
        self._done = True
        name = self._own_name
        if name is None and self.name.isdigit():
            # Numbered instead of named: the arguments may fit one tool only.
            meant = self._calls.tools.by_arguments(set(arguments))
            name = meant.name if meant is not None else None
        if name is None:
            self._calls.unknown(self.name)
        else:
            self._calls.finished(name, arguments)

    def fail(self, problem: str) -> None:
        """End the call, which cannot be made. problem: one sentence for the model."""
        if self._done:
            return
        self._done = True
        if self._own_name is None:
            self._calls.unknown(self.name)
        else:
            self._calls.broken(self._own_name, problem)

    def cut_off(self) -> None:
        """End the call, as the reply ended in the middle of it."""
        self.fail(CUT_OFF)


class CallBuilder:
    """Opens calls, numbers them, and emits their events.

    tools: the tools that may be called.
    emit: takes each event.
    id_prefix: what the ids of calls begin with.
    """

    def __init__(self, tools: ToolIndex, emit: Callable[[Event], None], id_prefix: str) -> None:
        self.tools = tools
        self._emit = emit
        self._prefix = id_prefix
        self._count = 0
        self._last: str | None = None
        """The last call that was finished, as JSON."""
        self._restarted: str | None = None
        """The call that the model may begin again."""

    def open(self, name: str) -> OpenCall:
        """Begin the call of the tool that `name` means."""
        return OpenCall(self, name.strip() if plausible(name.strip()) else name)

    def unknown(self, name: str) -> None:
        """Report a call of a tool that does not exist."""
        shown = name.strip()[:_MAX_UNKNOWN_NAME_CHARS]
        self._emit(UnknownCall(shown, self.tools.nearest(shown)))

    def broken(self, name: str, problem: str) -> None:
        """Report a call that cannot be made. name: "" where it has none."""
        tool = self.tools.find(name) if name else None
        if name and tool is None and not self.tools.accepts_any_name:
            self.unknown(name)
        else:
            self._emit(BrokenCall(self._next_id(), tool.name if tool else name, problem))

    def restarted(self) -> None:
        """Note that the model broke off behind its last call and begins again: the same call that
        comes next is no second one."""
        self._restarted = self._last

    def finished(self, name: str, arguments: dict[str, Any]) -> None:
        """Report a call that can be made."""
        call = json.dumps([name, arguments], sort_keys=True, default=str)
        restarted, self._restarted = self._restarted, None
        if call == restarted:
            self.broken(name, "The same call was begun twice; one was made.")
            return
        self._last = call
        call_id = self._next_id()
        self._emit(ToolCallStart(call_id, name))
        self._emit(ToolCallEnd(call_id, name, arguments))

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"
