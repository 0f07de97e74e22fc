"""What events come to: neighbouring deltas as one, and a whole reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caal_node.reply_parser.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    Reply,
    TextDelta,
    TextWasThinking,
    ToolCall,
    ToolCallEnd,
    UnknownCall,
)


def joined(events: Sequence[Event]) -> list[Event]:
    """Neighbouring deltas of a kind as one."""
    out: list[Event] = []
    parts: list[str] = []
    kind: type[TextDelta | ReasoningDelta] = TextDelta
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta) and (type(event) is kind or not parts):
            kind = type(event)
            parts.append(event.text)
            continue
        if parts:
            out.append(kind("".join(parts)))
            parts.clear()
        if isinstance(event, TextDelta | ReasoningDelta):
            kind = type(event)
            parts.append(event.text)
        else:
            out.append(event)
    if parts:
        out.append(kind("".join(parts)))
    return out


def summarise(events: Iterable[Event]) -> Reply:
    """The sum of a whole reply's events."""
    pieces: list[TextDelta | ReasoningDelta] = []
    calls: list[ToolCall] = []
    problems: list[BrokenCall | UnknownCall] = []
    since = 0
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            pieces.append(event)
        elif isinstance(event, TextWasThinking):
            pieces[since:] = [ReasoningDelta(piece.text) for piece in pieces[since:]]
        elif isinstance(event, ToolCallEnd):
            calls.append(ToolCall(event.name, event.arguments))
            since = len(pieces)
        elif isinstance(event, BrokenCall | UnknownCall):
            problems.append(event)
            since = len(pieces)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
    return Reply(calls, text.rstrip() if calls else text, reasoning.strip(), problems)
