"""What of a reply may be spoken: no thinking, and no call that may not be made."""

from __future__ import annotations

from collections.abc import Sequence

from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
)


def only_speech(events: list[Event]) -> list[Event]:
    """`events` without their calls, which are neither run nor spoken."""
    kept = (TextDelta, ReasoningDelta, TextWasThinking)
    return [event for event in events if isinstance(event, kept)]


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
