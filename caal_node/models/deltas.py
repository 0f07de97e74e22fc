"""Tool calls that arrive in pieces, made whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, Field

from caal_node.errors import ModelReplyError
from caal_node.models.port import NativeCall

CALLS_MAX: Final = 64
"""Calls in one reply. A model that writes more is going round in circles."""


class FunctionDelta(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(BaseModel):
    """One element of `delta.tool_calls`. OpenAI's servers leave out what has not changed."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta = Field(default_factory=FunctionDelta)


@dataclass(slots=True)
class _Open:
    index: int | None
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


def join_calls(deltas: Iterable[CallDelta]) -> tuple[NativeCall, ...]:
    """The calls that `deltas` make up, in the order in which they began.

    Pieces belong together by index, and by id where a server gives no index; where it gives
    neither, a piece with a name begins a call and one without continues the last. One index for
    several calls is seen by a second id or a second name. An id alone begins nothing: some
    servers give each piece a fresh one. Pieces of a call that never got a name are dropped, and
    empty arguments become `{}`.

    Raises:
        ModelReplyError: there are more than `CALLS_MAX` calls.
    """
    calls: list[_Open] = []
    for delta in deltas:
        name = delta.function.name or ""
        call = _continued(calls, delta, name)
        if call is None:
            if not name:
                continue
            if len(calls) == CALLS_MAX:
                raise ModelReplyError(f"the reply has more than {CALLS_MAX} tool calls")
            call = _Open(delta.index, delta.id or "")
            calls.append(call)
        call.id = call.id or delta.id or ""
        if name != call.name and not any(call.arguments):
            call.name += name  # a name may come in pieces; the whole name again is no piece
        if arguments := delta.function.arguments:
            call.arguments.append(
                arguments
                if isinstance(arguments, str)
                else json.dumps(arguments, ensure_ascii=False)
            )
    return tuple(NativeCall(call.id, call.name, "".join(call.arguments) or "{}") for call in calls)


def _continued(calls: list[_Open], delta: CallDelta, name: str) -> _Open | None:
    """The call that `delta` goes on with, or None where it begins one or belongs to none."""
    near = [c for c in calls if delta.index is None or c.index == delta.index]
    if delta.id and (same := [c for c in near if c.id == delta.id]):
        return same[-1]
    if not near:
        return None
    last = near[-1]
    begins = name and (
        delta.index is None or (delta.id and last.id) or (any(last.arguments) and name != last.name)
    )
    return None if begins else last
