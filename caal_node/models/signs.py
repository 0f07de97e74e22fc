"""Signs that a way of asking does not work for a model, read off one reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from caal_node.models.port import Done
from caal_node.replies import (
    BrokenCall,
    Event,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
)

Sign: TypeAlias = Literal[
    "empty",  # tokens were generated, and neither speech nor a call came of them
    "broken_call",  # a call that cannot be read, often one that the token limit cut off
    "unknown_tool",  # a call of a name that is in no table
    "leaked_call",  # a good call, but written as text where the server has structured calls
    "refused",  # the server will not take tools for this model, or its own grammar failed
]


def read_signs(events: Sequence[Event], done: Done | None) -> Sign | None:
    """The worst sign in a finished reply; None where it is speech or calls that can be run."""
    if any(isinstance(event, UnknownCall) for event in events):
        return "unknown_tool"
    if any(isinstance(event, BrokenCall) for event in events):
        return "broken_call"
    if any(isinstance(event, ToolCallEnd) for event in events):
        return None
    spoken = "".join(e.text for e in without_thinking(events) if isinstance(e, TextDelta))
    return None if spoken.strip() or done is None else "empty"


def without_thinking(events: Sequence[Event]) -> list[Event]:
    """`events` less the text that turned out to be thinking once its closer came."""
    kept: list[Event] = []
    since = 0
    for event in events:
        if isinstance(event, TextWasThinking):
            kept[since:] = [e for e in kept[since:] if not isinstance(e, TextDelta)]
            continue
        kept.append(event)
        if isinstance(event, ToolCallEnd | UnknownCall | BrokenCall):
            since = len(kept)
    return kept
