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
from caal_node.reply_parser.tool_index import ToolIndex, ToolSignature, has_gap, plausible

_NUMBERED = re.compile(r"^(?:functions\.)?(.+?)(?::\d+(?:\.\d+)*)?$", re.DOTALL)
"""How some models dress a name: `functions.set_timer:0`, or `:1.0`."""
_MAX_UNKNOWN_NAME_CHARS = 64
CUT_OFF: Final = "The call was cut off."


class OpenCall:
    """A call that is being read. `ToolCallStart` is emitted as soon as its name is a tool's."""

    def __init__(self, calls: CallBuilder, name: str) -> None:
        self._calls = calls
        self._name = name
        self.tool: ToolSignature | None = None
        """The tool that is called; None while it is unknown, or where any name is allowed."""
        self._id: str | None = None
        self._done = False
        if name:
            self._start(name)

    def _start(self, name: str) -> None:
        tools = self._calls.tools
        self.tool = tools.find(name)
        if self.tool is not None:
            name = self.tool.name
        elif tools.accepts_any_name and name.strip() and not has_gap(name):
            name = _NUMBERED.sub(r"\1", name)
        else:
            return
        self._name = name
        self._id = self._calls.next_id()
        self._calls.emit(ToolCallStart(self._id, name))

    def end_json(self, text: str, *, ended: bool = False) -> None:
        """End the call with arguments that are JSON text. ended: see `from_json`."""
        self._end(lambda tool: from_json(text, tool, ended=ended))

    def end(self, arguments: Any) -> None:
        """End the call with arguments that are an object, or JSON of one."""
        self._end(lambda tool: from_value(arguments, tool))

    def _end(self, read: Callable[[ToolSignature | None], dict[str, Any]]) -> None:
        if self._done:
            return
        try:
            arguments = read(self.tool)
        except BadArguments as problem:
            self.fail(str(problem))
            return
        if self._id is None and self._name.isdigit():
            # Numbered instead of named: the arguments may fit one tool only.
            meant = self._calls.tools.by_arguments(set(arguments))
            if meant is not None:
                self._start(meant.name)
        self._done = True
        if self._id is None:
            self._calls.unknown(self._name)
        else:
            self._calls.finished(self._id, self._name, arguments)

    def fail(self, problem: str) -> None:
        """End the call, which cannot be made. problem: one sentence for the model."""
        if self._done:
            return
        self._done = True
        if self._id is None:
            self._calls.unknown(self._name)
        else:
            self._calls.emit(BrokenCall(self._id, self._name, problem))

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
        self.emit = emit
        self._prefix = id_prefix
        self._count = 0
        self._last: str | None = None
        """The last call that was finished, as JSON."""
        self._restarted: str | None = None
        """The call that the model may begin again."""

    def next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def open(self, name: str) -> OpenCall:
        """Begin the call of the tool that `name` means."""
        return OpenCall(self, name.strip() if plausible(name.strip()) else name)

    def unknown(self, name: str) -> None:
        """Report a call of a tool that does not exist."""
        shown = name.strip()[:_MAX_UNKNOWN_NAME_CHARS]
        self.emit(UnknownCall(shown, self.tools.nearest(shown)))

    def broken(self, name: str, problem: str) -> None:
        """Report a call that cannot even be opened. name: "" where it has none."""
        tool = self.tools.find(name) if name else None
        if name and tool is None and not self.tools.accepts_any_name:
            self.unknown(name)
            return
        self.emit(BrokenCall(self.next_id(), tool.name if tool else name, problem))

    def restarted(self) -> None:
        """Note that the model broke off behind its last call and begins again: the same call that
        comes next is no second one."""
        self._restarted = self._last

    def finished(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        """Report a call that can be made."""
        call = json.dumps([name, arguments], sort_keys=True, default=str)
        restarted, self._restarted = self._restarted, None
        if call == restarted:
            self.emit(BrokenCall(call_id, name, "The same call was begun twice; one was made."))
            return
        self._last = call
        self.emit(ToolCallEnd(call_id, name, arguments))
