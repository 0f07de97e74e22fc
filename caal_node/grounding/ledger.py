"""What was done in a turn: its calls in order, how each ended, and what its result says.

It is read off the conversation's items, so it is the same however a call was asked for and whoever
ran it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.core.items import CallItem, Item, ResultItem, Turn, WindowItem
from caal_node.core.tool_spec import Effect, ToolSpec, tool_reads

CallState: TypeAlias = Literal["done", "failed", "refused", "dry_run", "pending"]
"""How a call ended. "failed" is an error or a deadline that passed, "refused" one that a rule or a
person did not let run, and "pending" one that has no result yet."""
RESULT_CHARS: Final = 65_536
"""Characters of a result that are read: ten times what a prompt shows of one."""
ENTRIES_KEPT: Final = 128
"""Calls that are read once for all the answers of a conversation that they stand in front of."""
_REFUSED: Final = frozenset({"refused", "needs_confirmation"})
_ERROR_KEYS: Final = frozenset({"error", "message"})


@dataclass(frozen=True)
class LedgerEntry:
    """One call."""

    call_id: str
    tool: str
    """The name that the model calls it by."""
    arguments: Mapping[str, Any]
    state: CallState
    result: str = ""
    """What the model reads of it: JSON on one line, or plain words."""
    effect: Effect = "write"
    description: str = ""
    by_server: bool = False
    """Whether the model's server has run it, so that nobody here has seen its result."""

    @cached_property
    def reads(self) -> bool:
        """Whether it only tells something."""
        return tool_reads(self.tool, self.effect)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The calls of this turn and, apart from them, those of earlier ones that are still known."""

    request: str = ""
    """What the person said last."""
    turn: tuple[LedgerEntry, ...] = ()
    earlier: tuple[LedgerEntry, ...] = ()


def ledger_of(items: Sequence[Item], specs: Mapping[str, ToolSpec]) -> Ledger:
    """Read the ledger off a conversation; `specs` are the tools by the model's names."""
    results = {item.call_id: item for item in items if isinstance(item, ResultItem)}
    turn = Turn(items)

    def entries(calls: Iterable[WindowItem]) -> tuple[LedgerEntry, ...]:
        return tuple(
            _entry(
                call,
                results.get(call.call_id),
                "write" if (spec := specs.get(call.name)) is None else spec.effect,
                "" if spec is None else spec.description,
            )
            for call in calls
            if isinstance(call, CallItem)
        )

    return Ledger(turn.request, entries(turn.since), entries(turn.before))


@lru_cache(ENTRIES_KEPT)
def _entry(
    call: CallItem, result: ResultItem | None, effect: Effect, description: str
) -> LedgerEntry:
    return LedgerEntry(
        call.call_id,
        call.name,
        _members(call.arguments),
        "pending" if result is None else _state(result),
        "" if result is None else result.output[:RESULT_CHARS],
        effect,
        description,
    )


def _state(result: ResultItem) -> CallState:
    told = _members(result.output)
    if told.get("dry_run") is True:
        return "dry_run"
    # One that needs no reply is no error of LiveKit's, and has nothing but our two keys.
    is_ours = result.is_error or frozenset(told) == _ERROR_KEYS
    if is_ours and told.get("error") in _REFUSED:
        return "refused"
    return "failed" if result.is_error else "done"


def _members(text: str) -> Mapping[str, Any]:
    if not text.startswith("{") or len(text) > RESULT_CHARS:
        return {}
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", read) if isinstance(read, dict) else {}
