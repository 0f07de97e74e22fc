"""The text protocol, for models whose server has no tools: JSON objects, one or several.

    {"type": "tool_call", "name": "set_timer", "arguments": {"minutes": 5}}
    {"type": "tool_calls", "calls": [{"name": ..., "arguments": {...}}, ...]}
    {"type": "final_answer", "text": "..."}

and, in one constrained reply, `{"calls": [...]}` or `{"say": "..."}`. The calls are read like any
other call's object; here is what is speech, which goes out while it arrives.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext
from caal_node.reply_parser.marker_scrubber import MarkerScrubber
from caal_node.reply_parser.syntax.call_object_state import CallObjectState
from caal_node.reply_parser.syntax.json_text import StringPieces

CALL_TYPES = frozenset({"tool_call", "tool_calls", "function_call", "tool_use"})
FINAL_TYPES = frozenset({"final_answer", "final"})
_SPOKEN_KEYS = frozenset({"text", "content", "answer", "message", "output", "response", "say"})
"""Keys under which models put a final answer's words."""
_SAYING_KEYS = frozenset({"say", "final_answer"})
"""Keys that mean speech without a `type` beside them."""


def speaks(state: CallObjectState, key: str) -> bool:
    """Whether the string under `key` is to be spoken."""
    if state.marked or state.name is not None:
        return False
    first = len(state.raw) <= 3
    return (state.final and key in _SPOKEN_KEYS) or (
        key in _SAYING_KEYS and (state.committed or first)
    )


def say(reading: ParseContext, state: CallObjectState) -> Steps[None]:
    """Speak the string that begins here, piece by piece, its escapes decoded."""
    source = reading.source
    source.advance(source.at + 1)
    state.committed = state.made = True
    state.raw.clear()
    reading.drop()  # What was spoken before it must not close up with it into a marker.
    pieces, scrubber = StringPieces(source), MarkerScrubber(reading)
    while True:
        if source.at >= len(source.text) and not scrubber.holds:
            reading.flow()
        piece = yield from pieces.next()
        if not piece:
            break
        scrubber.say(piece)
    scrubber.end()
    reading.drop()
