"""Calls that a server sends as data: put together from pieces, and made once.

Servers differ in everything: all calls at `index: 0`, no index, no id, the id repeated or only
in the first piece, the name first and the arguments in pieces, arguments as an object. What
tells one call from the next is decided here, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caal_node.replies.arguments import BadArguments, from_json, from_value
from caal_node.replies.events import BrokenCall, ToolCall, ToolCallEnd, UnknownCall
from caal_node.replies.names import Toolbox
from caal_node.replies.values import load_json

MAX_CALLS = 64
"""More calls in one reply are a fault of the model; they are not made."""
MAX_ARGUMENT_CHARS = 1_000_000


@dataclass(slots=True)
class _Partial:
    index: int | None
    id: str
    name: str
    text: list[str] = field(default_factory=list[str])
    value: Any = None

    @property
    def length(self) -> int:
        return sum(map(len, self.text))

    def whole(self) -> bool:
        """Whether the arguments that came so far are complete JSON."""
        if self.value is not None:
            return True
        joined = "".join(self.text).strip()
        if not joined.endswith(("}", '"')):
            return False
        try:
            load_json(joined)
        except ValueError:
            return False
        return True


class CallPieces:
    """Collects the pieces of a reply's structured calls, in the order in which calls began."""

    def __init__(self) -> None:
        self._calls: list[_Partial] = []

    def add(
        self,
        *,
        index: int | None = None,
        id: str | None = None,
        name: str | None = None,
        arguments: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Take one delta.

        arguments: JSON text, a piece of it, or the object itself.
        """
        call = self._current(index, id or "", name or "", arguments)
        if call is None:
            return
        call.id = call.id or (id or "")
        if name and name != call.name:
            call.name += name  # A name that comes in pieces.
        if isinstance(arguments, str):
            if call.length + len(arguments) <= MAX_ARGUMENT_CHARS:
                call.text.append(arguments)
        elif arguments is not None:
            call.value = dict(arguments)

    def _current(
        self, index: int | None, id: str, name: str, arguments: str | Mapping[str, Any] | None
    ) -> _Partial | None:
        """The call that a delta belongs to; a new one when it begins one."""
        by_id = [call for call in self._calls if id and call.id == id]
        if by_id:
            return by_id[-1]
        same_index = [call for call in self._calls if index is None or call.index == index]
        last = same_index[-1] if same_index else None
        begins = last is None or (
            # Another id, or a name again, though the index is the same.
            (bool(id) and bool(last.id))
            or (bool(name) and bool(last.name) and (last.whole() or isinstance(arguments, Mapping)))
        )
        if not begins:
            return last
        if len(self._calls) >= MAX_CALLS:
            return None
        self._calls.append(_Partial(index, id, ""))
        return self._calls[-1]

    def finish(
        self, box: Toolbox, *, id_prefix: str = "native_"
    ) -> list[ToolCallEnd | BrokenCall | UnknownCall]:
        """The calls: named as the tools are, their arguments read, none of them twice."""
        ended: list[ToolCallEnd | BrokenCall | UnknownCall] = []
        seen_ids: set[str] = set()
        seen: set[str] = set()
        for number, call in enumerate(self._calls, 1):
            text = "".join(call.text)
            tool = box.find(call.name)
            call_id = call.id or f"{id_prefix}{number}"
            if tool is None and not (box.open and call.name):
                ended.append(UnknownCall(call.name, box.nearest(call.name), call.id))
                continue
            name = tool.name if tool else call.name
            try:
                arguments = (
                    from_value(call.value, tool)
                    if call.value is not None
                    else from_json(text, tool)
                    if text.strip()
                    else {}
                )
            except BadArguments as problem:
                ended.append(BrokenCall(call_id, name, str(problem)))
                continue
            key = call_key(name, arguments)
            if call.id in seen_ids or (not call.id and key in seen):
                continue
            if call.id:
                seen_ids.add(call.id)
            seen.add(key)
            ended.append(ToolCallEnd(call_id, name, arguments))
        return ended


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """Equal for calls of the same tool with the same arguments."""
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False, default=str)


def only_new(calls: Iterable[ToolCall], made: Iterable[ToolCall]) -> list[ToolCall]:
    """Of `calls`, those that are not among `made`: a server may send a call and leak its text."""
    known = {call_key(call.name, call.arguments) for call in made}
    fresh: list[ToolCall] = []
    for call in calls:
        if call_key(call.name, call.arguments) not in known:
            fresh.append(call)
    return fresh
