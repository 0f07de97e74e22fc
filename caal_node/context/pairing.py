"""Pairs every call with exactly one result, in a layout that each wire format accepts.

The layout is: the calls of one assistant reply, then their results in the order of the calls, and
nothing between them. OpenAI refuses a request that breaks this; Ollama accepts it, and the model
then answers as if the call had no result. The calls of one reply are a round of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem, WindowItem

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
    return _NOTHING.followed_by(tuple(items)).repaired


class Pairing:
    """Repairs the histories of one conversation, which mostly begin as the one before did.

    It returns what `repair` does. The repaired beginning is kept, so that a request costs what its
    newest turns do.
    """

    def __init__(self) -> None:
        self._settled = _Paired()

    def repair(self, items: Iterable[Item]) -> tuple[Item, ...]:
        given = tuple(items)
        known = self._settled
        following = given[len(known.given) : len(known.given) + 1]
        in_round = any(not isinstance(item, UserItem) for item in following)
        if in_round or given[: len(known.given)] != known.given:
            known = _NOTHING  # It was edited, or a round of tools goes on behind it.
        until = max(len(known.given), settled_length(given))
        self._settled = known.followed_by(given[len(known.given) : until])
        return self._settled.followed_by(given[until:]).repaired


def settled_length(items: Sequence[WindowItem]) -> int:
    """Return how many items come before the words before the newest. These rarely change: newer
    ones may be guesses, and answers are still cut short where the person interrupted them."""
    words = (at for at in reversed(range(len(items))) if isinstance(items[at], UserItem))
    return next(islice(words, 1, None), 0)


@dataclass(frozen=True, slots=True)
class _Paired:
    """A repaired beginning of a conversation. What follows it begins with a person's words."""

    given: tuple[Item, ...] = ()
    repaired: tuple[Item, ...] = ()
    used: AbstractSet[str] = frozenset()
    """The ids of its calls."""
    next: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: frozenset[str] = frozenset()
    """The ids, as given, of calls without a result."""

    def followed_by(self, more: tuple[Item, ...]) -> _Paired:
        """Repair what follows too."""
        if not more:
            return self
        if self.waiting and any(
            isinstance(item, ResultItem) and item.call_id in self.waiting for item in more
        ):
            return _NOTHING.followed_by(self.given + more)  # A late result changes these items.
        matched, kept, waiting = _match(more)
        results = iter(matched)
        repaired: list[Item] = list(self.repaired)
        calls: list[CallItem] = []
        ids = _UniqueIds(set(self.used), dict(self.next))
        for item in kept:
            if isinstance(item, CallItem):
                calls.append(item)
                continue
            _close_round(calls, results, ids, repaired)
            if not isinstance(item, ResultItem):
                repaired.append(item)
        _close_round(calls, results, ids, repaired)
        return _Paired(
            self.given + more,
            tuple(repaired),
            ids.used,
            ids.next,
            self.waiting | waiting,
        )


def _match(items: Iterable[Item]) -> tuple[list[ResultItem | None], list[Item], frozenset[str]]:
    """Return the result of each call, in the order of the calls, the items to keep, and the ids of
    calls without a result."""
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
    waiting = frozenset(call_id for call_id, calls in open_calls.items() if calls)
    return results, kept, waiting


@dataclass(frozen=True, slots=True)
class _OpenCall:
    """A call without a result yet. `position` counts all calls that are matched together."""

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
    matched: Iterator[ResultItem | None],
    ids: _UniqueIds,
    repaired: list[Item],
) -> None:
    """Append a round's calls and their results, and empty `calls` for the next round."""
    results: list[ResultItem] = []
    for call in calls:
        result = next(matched)
        call_id = ids.give(call.call_id)
        repaired.append(call if call.call_id == call_id else replace(call, call_id=call_id))
        if result is None:
            result = ResultItem(call_id, call.name, INTERRUPTED, is_error=True)
        elif (result.call_id, result.name) != (call_id, call.name):
            result = replace(result, call_id=call_id, name=call.name)
        results.append(result)
    repaired.extend(results)
    calls.clear()


_NOTHING: Final = _Paired()


class _UniqueIds:
    """Gives every call a unique id: its own, with a number behind it where that was used before."""

    def __init__(self, used: set[str], following: dict[str, int]) -> None:
        self.used = used
        self.next = following

    def give(self, wanted: str) -> str:
        base = wanted or "call"
        name = base
        if base in self.used:
            number = self.next.get(base, 2)
            while (name := f"{base}_{number}") in self.used:
                number += 1
            self.next[base] = number + 1
        self.used.add(name)
        return name
