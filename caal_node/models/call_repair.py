"""What a model is told of a call that could not be made, so that it can mend it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from caal_node.core.items import CallItem, Item, ResultItem
from caal_node.models.question import Question
from caal_node.reply_parser import BrokenCall, Event, UnknownCall

REPAIRS_MAX = 3
"""Calls of one reply that are told: a reply with more was noise."""
_PROBLEM_CHARS = 200


def repaired(question: Question, events: Iterable[Event]) -> Question:
    """`question`, followed by the calls of `events` that cannot be made, and what is valid.

    They stand at the prompt's end, in the form of any call and its result, and in no history: the
    next turn does not see them.
    """
    told: list[Item] = []
    results: list[Item] = []
    for number, event in enumerate(events):
        if isinstance(event, UnknownCall):
            problem = {"error": "unknown_tool", "valid": list(event.nearest)}
        elif isinstance(event, BrokenCall):
            problem = {"error": "invalid_call", "message": event.problem[:_PROBLEM_CHARS]}
        else:
            continue
        call_id = f"repair_{number}"
        name = event.name or "unnamed"
        told.append(CallItem(call_id, name, "{}"))
        output = json.dumps(problem, ensure_ascii=False)
        results.append(ResultItem(call_id, name, output, is_error=True))
    if not told:
        return question
    return replace(question, items=(*question.items, *told[:REPAIRS_MAX], *results[:REPAIRS_MAX]))
