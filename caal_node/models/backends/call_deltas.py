"""Tool calls that arrive in pieces, made whole.

Servers differ in everything: all calls at `index: 0`, no index, no id, the id in the first piece
or a fresh one in each, the name first and its arguments piece by piece (Granite), the name again
in each piece, arguments as an object. What tells one call from the next is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BaseModel, Field

from caal_node.core.errors import ModelReplyError
from caal_node.models.backends.base import NativeCall
from caal_node.models.backends.lenient_types import NULL_IS_EMPTY_OBJECT, Arguments

CALLS_MAX: Final = 64
"""Calls in one reply. A model that writes more is going round in circles."""
ARGUMENTS_MAX: Final = 1_000_000
"""Characters of one call's arguments. No tool takes more; a reply that has more never ends."""


class FunctionDelta(BaseModel):
    name: str | None = None
    arguments: Arguments = None


class CallDelta(BaseModel):
    """One element of `delta.tool_calls`. OpenAI's servers leave out what has not changed."""

    index: int | None = None
    id: str | None = None
    function: Annotated[FunctionDelta, NULL_IS_EMPTY_OBJECT] = Field(default_factory=FunctionDelta)


@dataclass(slots=True)
class _Open:
    index: int | None
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    length: int = 0

    def add(self, text: str) -> None:
        """Take a piece of the arguments.

        Raises:
            ModelReplyError: they are longer than `ARGUMENTS_MAX`.
        """
        self.length += len(text)
        if self.length > ARGUMENTS_MAX:
            raise ModelReplyError(f"a tool call has more than {ARGUMENTS_MAX} characters")
        self.arguments.append(text)

    @property
    def begun(self) -> bool:
        """Whether any of the arguments have come."""
        return self.length > 0

    def whole(self) -> bool:
        """Whether the arguments that have come are complete JSON."""
        text = "".join(self.arguments)
        if not text.rstrip().endswith("}"):
            return False
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True


def join_calls(deltas: Iterable[CallDelta]) -> tuple[NativeCall, ...]:
    """The calls that `deltas` make up, in the order in which they began, none of them twice.

    Pieces belong together by index, and by id where a server gives no index; where it gives
    neither, a piece with a name begins a call and one without continues the last. One index for
    several calls is seen by a second id or a second name, or by a name behind arguments that are
    complete. An id alone begins nothing: some servers give each piece a fresh one. Pieces of a
    call that never got a name are dropped, and empty arguments become `{}`.

    Raises:
        ModelReplyError: there are more than `CALLS_MAX` calls, or one is longer than
            `ARGUMENTS_MAX` characters.
    """
    calls: list[_Open] = []
    for delta in deltas:
        name = delta.function.name or ""
        arguments = delta.function.arguments
        call = _continued(calls, delta, name)
        if call is None:
            if not name:
                continue
            if len(calls) == CALLS_MAX:
                raise ModelReplyError(f"the reply has more than {CALLS_MAX} tool calls")
            call = _Open(delta.index, delta.id or "")
            calls.append(call)
        call.id = call.id or delta.id or ""
        if name != call.name and not call.begun:
            call.name += name  # a name may come in pieces; the whole name again is no piece
        if isinstance(arguments, str):
            call.add(arguments)
        elif arguments is not None:
            call.add(json.dumps(arguments, ensure_ascii=False))
    return distinct(
        NativeCall(call.id, call.name, "".join(call.arguments) or "{}") for call in calls
    )


def distinct(calls: Iterable[NativeCall]) -> tuple[NativeCall, ...]:
    """`calls`, but for those that a server sent again: the same id, else none, with the same name
    and arguments."""
    seen: set[tuple[str, str, str]] = set()
    kept: list[NativeCall] = []
    for call in calls:
        key = (call.id, call.name, _canonical(call.arguments))
        if key not in seen:
            seen.add(key)
            kept.append(call)
    return tuple(kept)


def _canonical(arguments: str) -> str:
    """Equal for equal JSON, however it is written."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _continued(calls: list[_Open], delta: CallDelta, name: str) -> _Open | None:
    """The call that `delta` goes on with, or None where it begins one or belongs to none."""
    near = [c for c in calls if delta.index is None or c.index == delta.index]
    if delta.id and (same := [c for c in near if c.id == delta.id]):
        # Even an id may be the same for all; then a name behind complete arguments is another's.
        return None if name and same[-1].whole() else same[-1]
    if not near:
        return None
    last = near[-1]
    if not name:
        return last
    another = delta.index is None or bool(delta.id and last.id)
    if another or (last.begun and (name != last.name or last.whole())):
        return None
    # Arguments as a value are never a piece.
    return None if last.begun and isinstance(delta.function.arguments, (dict, list)) else last
