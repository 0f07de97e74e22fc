"""Every call with exactly one result, in a layout that each wire format accepts.

The layout: the calls of one assistant reply, then their results in the order of the calls, and
nothing between them. OpenAI refuses a request that breaks this; Ollama takes it and the model
then answers as if the call had never come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem

INTERRUPTED: Final = '{"error":"cancelled","message":"interrupted before it finished"}'
"""The result of a call that has none: the person spoke over it, or it still runs."""


def repair(items: Iterable[Item]) -> tuple[Item, ...]:
    """Mend what interruptions, retries and late results leave behind.

    - Results stand directly after the calls of their round, in call order.
    - A call without a result gets `INTERRUPTED`; of several results the first stays.
    - A result without an earlier call is dropped, and so is an assistant text without words.
    - A call id that is empty or was used before is replaced, in its result too.

    What is right is left as it is, so `repair(repair(x)) == repair(x)`. An id given here depends
    on earlier items only: a conversation that grows never changes what was shown before.
    """
    answers, kept = _match(items)
    mended: list[Item] = []
    calls: list[CallItem] = []
    ids = _Ids()
    for item in kept:
        if isinstance(item, CallItem):
            calls.append(item)
            continue
        _close_round(calls, answers, ids, mended)
        if not isinstance(item, ResultItem):
            mended.append(item)
    _close_round(calls, answers, ids, mended)
    return tuple(mended)


def _match(items: Iterable[Item]) -> tuple[list[ResultItem | None], list[Item]]:
    """The answer of the first call, the second, and so on; and the items worth keeping."""
    answers: list[ResultItem | None] = []
    kept: list[Item] = []
    open_calls: dict[str, list[_Open]] = {}
    round_number = 0
    for item in items:
        if isinstance(item, AssistantItem) and not item.text.strip():
            continue
        if isinstance(item, CallItem):
            waiting = open_calls.setdefault(item.call_id, [])
            waiting.append(_Open(len(answers), round_number, item.name))
            answers.append(None)
        elif isinstance(item, ResultItem):
            if (call := _take(open_calls.get(item.call_id, []), item.name)) is None:
                continue
            answers[call.position] = item
            round_number += 1
        else:
            round_number += 1
        kept.append(item)
    return answers, kept


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that still has no result: which of all calls, in which round, of which tool."""

    position: int
    round: int
    name: str


def _take(waiting: list[_Open], name: str) -> _Open | None:
    """The call that a result answers, where several share its id.

    The latest round wins, since an older one was interrupted; in it, the first call of the same
    tool. Results that arrive between two calls begin a new round, so the search is short.
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
    calls: list[CallItem], answers: list[ResultItem | None], ids: _Ids, mended: list[Item]
) -> None:
    """Append a round's calls and their results, and leave `calls` empty for the next."""
    results: list[ResultItem] = []
    for call in calls:
        answer = answers[ids.given]
        call_id = ids.give(call.call_id)
        mended.append(call if call.call_id == call_id else replace(call, call_id=call_id))
        if answer is None:
            results.append(ResultItem(call_id, call.name, INTERRUPTED, is_error=True))
        elif (answer.call_id, answer.name) == (call_id, call.name):
            results.append(answer)
        else:
            results.append(replace(answer, call_id=call_id, name=call.name))
    mended.extend(results)
    calls.clear()


class _Ids:
    """Gives every call an id of its own: the one it has, or that with a number behind it."""

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
