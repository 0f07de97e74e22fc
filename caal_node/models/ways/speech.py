"""Where no call may be made, one that is written all the same is neither run nor spoken."""

from __future__ import annotations

from caal_node.replies import Event, ReasoningDelta, TextDelta, TextWasThinking


def only_speech(events: list[Event]) -> list[Event]:
    """`events` without their calls."""
    kept = (TextDelta, ReasoningDelta, TextWasThinking)
    return [event for event in events if isinstance(event, kept)]
