"""Calls and results in the order in which the model wrote the calls.

LiveKit notes them as the calls end, which differs from run to run, and in the turns after that by
time of making. A model that asked for two things is answered in its own order here, and the prompt
of the next turn begins as this one's did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from livekit.agents import llm

_NUMBER: Final = re.compile(r"/fnc_(\d+)$")
"""How LiveKit ends the item id of a reply's calls."""


def in_the_models_order(items: Iterable[llm.ChatItem]) -> list[llm.ChatItem]:
    """The same items; only calls that stand side by side, and results that do, change places."""
    ordered: list[llm.ChatItem] = []
    place: dict[str, int] = {}
    for _, run in groupby(items, key=lambda item: item.type):
        found = list(run)
        calls = [item for item in found if isinstance(item, llm.FunctionCall)]
        results = [item for item in found if isinstance(item, llm.FunctionCallOutput)]
        calls.sort(key=_made)
        for call in calls:
            place.setdefault(call.call_id, len(place))
        results.sort(key=lambda result: place.get(result.call_id, len(place)))
        ordered += calls or results or found
    return ordered


def _made(call: llm.FunctionCall) -> tuple[float, int]:
    number = _NUMBER.search(call.id)
    return call.created_at, int(number[1]) if number else 0
