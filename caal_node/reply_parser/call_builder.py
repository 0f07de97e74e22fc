"""Calls on their way from a reply to the events: named, given arguments, ended or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from caal_node.reply_parser.arguments import BadArguments, from_json, from_value
from caal_node.reply_parser.events import BrokenCall, Event, ToolCallEnd, ToolCallStart, UnknownCall
from caal_node.reply_parser.spelling import plausible, torn
from caal_node.reply_parser.tool_index import ToolIndex, ToolSignature

_NUMBERED = re.compile(r"^(?:functions\.)?(.+?)(?::\d+)?$", re.DOTALL)
"""How some models dress a name: `functions.set_timer:0`."""
_CUT_OFF = "The call was cut off."


class OpenCall:
    """One call. `ToolCallStart` goes out as soon as the name is known to be a tool's."""

    def __init__(self, desk: CallBuilder, name: str) -> None:
        self._desk = desk
        self._written = name
        self.tool: ToolSignature | None = None
        self._id: str | None = None
        self._done = False
        if name:
            self._name(name)

    @property
    def known(self) -> bool:
        """Whether the name is one that may be called."""
        return self._id is not None

    def _name(self, name: str) -> None:
        box = self._desk.box
        self.tool = box.find(name)
        if self.tool is not None:
            name = self.tool.name
        elif box.open and name.strip() and not torn(name):
            name = _NUMBERED.sub(r"\1", name)
        else:
            return
        self._written = name
        self._id = self._desk.next_id()
        self._desk.emit(ToolCallStart(self._id, name))

    def end_json(self, text: str) -> None:
        """The arguments as JSON text."""
        self._end(lambda tool: from_json(text, tool))

    def end_value(self, value: Any) -> None:
        """The arguments as a value: an object, or JSON of one."""
        self._end(lambda tool: from_value(value, tool))

    def end(self, arguments: Mapping[str, Any]) -> None:
        self._end(lambda tool: from_value(dict(arguments), tool))

    def _end(self, read: Callable[[ToolSignature | None], dict[str, Any]]) -> None:
        if self._done:
            return
        try:
            arguments = read(self.tool)
        except BadArguments as problem:
            self.fail(str(problem))
            return
        if self._id is None and self._written.isdigit():
            # Numbered instead of named: the arguments may fit one tool only.
            meant = self._desk.box.by_arguments(set(arguments))
            if meant is not None:
                self._name(meant.name)
        if self._id is None:
            self._unknown()
            return
        self._done = True
        self._desk.finished(self._id, self._written, arguments)

    def fail(self, problem: str) -> None:
        """The call cannot be made."""
        if self._done:
            return
        if self._id is None:
            self._unknown()
            return
        self._done = True
        self._desk.emit(BrokenCall(self._id, self._written, problem))

    def cut_off(self) -> None:
        """The reply ended in the middle of the call."""
        self.fail(_CUT_OFF)

    def _unknown(self) -> None:
        self._done = True
        self._desk.unknown(self._written)


class CallBuilder:
    """Where calls are opened; knows the tools, numbers the calls, emits their events."""

    def __init__(self, box: ToolIndex, emit: Callable[[Event], None], id_prefix: str) -> None:
        self.box = box
        self.emit = emit
        self._prefix = id_prefix
        self._count = 0
        self._restart: str | None = None
        self._last: str | None = None

    def next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def open(self, name: str) -> OpenCall:
        return OpenCall(self, name.strip() if plausible(name.strip()) else name)

    def unknown(self, name: str) -> None:
        shown = name.strip()[:64]
        self.emit(UnknownCall(shown, self.box.nearest(shown)))

    def broken(self, name: str, problem: str) -> None:
        """A call that cannot even be opened."""
        tool = self.box.find(name) if name else None
        if name and tool is None and not self.box.open:
            self.unknown(name)
            return
        self.emit(BrokenCall(self.next_id(), tool.name if tool else name, problem))

    def restarted(self) -> None:
        """The model broke off after its last call and begins again: the same call is no second."""
        self._restart = self._last

    def finished(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        same = json.dumps([name, arguments], sort_keys=True, default=str)
        if self._restart is not None and same == self._restart:
            self._restart = None
            self.emit(BrokenCall(call_id, name, "The same call was begun twice; one was made."))
            return
        self._restart = None
        self._last = same
        self.emit(ToolCallEnd(call_id, name, arguments))
