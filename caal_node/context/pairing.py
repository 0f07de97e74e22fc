"""Pairs every call with exactly one result, in a layout that each wire format accepts.

The layout is: the calls of one assistant reply, then their results in the order of the calls, and
nothing between them. OpenAI refuses a request that breaks this; Ollama accepts it, and the model
then answers as if the call had no result. The calls of one reply are a round of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem

INTERRUPTED: Final = '{"error":"cancelled","message":"interrupted before it finished"}'
"""The result of a call that has none, as the person interrupted it or it still runs."""


def repair(items: Iterable[Item]) -> tuple[Item, ...]:
    """Repair a conversation after interruptions, retries and late results.

    - Results follow directly after the calls of their round, in call order.
    - A call without a result gets `INTERRUPTED`; of several results the first stays.
    - A result without an earlier call is dropped, and so is an assistant text without words.
    - A call id that is empty or was used before is replaced, in its result too.

    Correct items stay as they are, so `repair(repair(x)) == repair(x)`. A new id depends on earlier
    items only, so the beginning of a growing conversation never changes.
    """
    results, kept = _match(items)
    repaired: list[Item] = []
    calls: list[CallItem] = []
    ids = _UniqueIds()
    for item in kept:
        if isinstance(item, CallItem):
            calls.append(item)
            continue
        _close_round(calls, results, ids, repaired)
        if not isinstance(item, ResultItem):
            repaired.append(item)
    _close_round(calls, results, ids, repaired)
    return tuple(repaired)


def rounds_done(items: Sequence[Item]) -> int:
    """Count the rounds of tool calls since the person last spoke.

    LiveKit numbers the calls of one reply behind the last slash of an id that they share; a call
    whose id has no slash counts as a round of its own.
    """
    replies: set[str] = set()
    for item in reversed(items):
        if isinstance(item, UserItem):
            break
        if isinstance(item, CallItem):
            replies.add(item.id.rpartition("/")[0] or item.call_id)
    return len(replies)


def _match(items: Iterable[Item]) -> tuple[list[ResultItem | None], list[Item]]:
    """Return the result of each call, in the order of the calls, and the items to keep."""
    results: list[ResultItem | None] = []
    kept: list[Item] = []
    open_calls: dict[str, list[_OpenCall]] = {}
    round_number = 0
    for item in items:
        if isinstance(item, AssistantItem) and not item.text.strip():
            continue
        if isinstance(item, CallItem):
            waiting = open_calls.setdefault(item.call_id, [])
            waiting.append(_OpenCall(len(results), round_number, item.name))
            results.append(None)
        elif isinstance(item, ResultItem):
            if (call := _take(open_calls.get(item.call_id, []), item.name)) is None:
                continue
            results[call.position] = item
            round_number += 1
        else:
            round_number += 1
        kept.append(item)
    return results, kept


@dataclass(frozen=True, slots=True)
class _OpenCall:
    """A call without a result yet. `position` counts all calls of the conversation."""

    position: int
    round: int
    name: str


def _take(waiting: list[_OpenCall], name: str) -> _OpenCall | None:
    """Remove and return the call that a result belongs to, where several share its id.

    It is one of the latest round, since older ones were interrupted, and there the first call of
    the same tool. Results that arrive between two calls begin a new round, so the search is short.
    """
    if not waiting:
        return None
    latest = waiting[-1].round
    first = len(waiting) - 1
    chosen = first
    while first >= 0 and waiting[first].round == latest:
        if waiting[first].name == name or waiting[chosen].name != name:
            chosen = first
        first -= 1
    return waiting.pop(chosen)


def _close_round(
    calls: list[CallItem],
    all_results: list[ResultItem | None],
    ids: _UniqueIds,
    repaired: list[Item],
) -> None:
    """Append a round's calls and their results, and empty `calls` for the next round."""
    results: list[ResultItem] = []
    for call in calls:
        result = all_results[ids.given]
        call_id = ids.give(call.call_id)
        repaired.append(call if call.call_id == call_id else replace(call, call_id=call_id))
        if result is None:
            result = ResultItem(call_id, call.name, INTERRUPTED, is_error=True)
        elif (result.call_id, result.name) != (call_id, call.name):
            result = replace(result, call_id=call_id, name=call.name)
        results.append(result)
    repaired.extend(results)
    calls.clear()


class _UniqueIds:
    """Gives every call a unique id: its own, with a number behind it where that was used before."""

    def __init__(self) -> None:
        self.given = 0
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        base = wanted or "call"
        name = base
        if base in self._used:
            number = self._next.get(base, 2)
            while (name := f"{base}_{number}") in self._used:
                number += 1
            self._next[base] = number + 1
        self._used.add(name)
        self.given += 1
        return name
