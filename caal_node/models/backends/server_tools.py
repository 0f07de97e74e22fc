"""Tools that the model's server runs by itself, told while it does (pure).

Some servers have tools of their own: they announce a call with `task_status: "working"`, run it,
send its `tool_results` in the same stream, and write on. Such a call is heard and told like any
other, and never run again. Servers leave ids out, so results are paired here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import AliasChoices, BaseModel, Field

from caal_node.models.backends.base import ServerCall, ServerResult

WORKING: Final = "working"
"""The status of a stream that goes on, whatever else says that it is done."""
RUNS_MAX: Final = 64
"""Calls in one reply that are told; a server that makes more is going round in circles."""


class ToolResult(BaseModel):
    """One element of `tool_results`."""

    id: str = Field("", validation_alias=AliasChoices("tool_call_id", "id"))
    name: str = Field("", validation_alias=AliasChoices("tool_name", "name"))
    error: Any = None
    is_error: bool = False

    @property
    def failed(self) -> bool:
        return self.is_error or bool(self.error)


@dataclass(frozen=True, slots=True)
class _Open:
    id: str
    name: str


class ServerRuns:
    """The calls of one reply that its server runs."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._count = 0

    def started(self, call_id: str, name: str, arguments: Any) -> Iterator[ServerCall]:
        """Nothing for a call that is announced again, or past the cap."""
        if any(call.id == call_id for call in self._open if call_id) or self._count >= RUNS_MAX:
            return
        self._count += 1
        known = call_id or f"server_{self._count}"
        self._open.append(_Open(known, name))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        yield ServerCall(known, name, text)

    def ended(self, results: Iterable[ToolResult]) -> Iterator[ServerCall | ServerResult]:
        for result in results:
            call = self._of(result)
            if call is None:
                yield from self.started(result.id, result.name, {})
                call = self._of(result)
            if call is not None:
                self._open.remove(call)
                yield ServerResult(call.id, result.failed)

    def _of(self, result: ToolResult) -> _Open | None:
        """By id; without one by name; without either the one that has run longest."""
        for call in self._open:
            if result.id:
                if call.id == result.id:
                    return call
            elif result.name in ("", call.name):
                return call
        return None
