"""The text protocol, for models whose server has no tools: JSON objects, one or several.

    {"type": "tool_call", "name": "set_timer", "arguments": {"minutes": 5}}
    {"type": "tool_calls", "calls": [{"name": ..., "arguments": {...}}, ...]}
    {"type": "final_answer", "text": "..."}

and, in one constrained reply, `{"calls": [...]}` or `{"say": "..."}`. The calls are read like any
other call's object; here is what is speech, which goes out while it arrives.
"""

from __future__ import annotations

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.event_buffer import MarkerScrubber
from caal_node.reply_parser.parse_context import ParseContext
from caal_node.reply_parser.syntax.json_text import read_string_piece

CALL_TYPES = frozenset({"tool_call", "tool_calls", "function_call", "tool_use"})
FINAL_TYPES = frozenset({"final_answer", "final"})
SPOKEN_KEYS = frozenset({"text", "content", "answer", "message", "output", "response", "say"})
"""Keys under which models put a final answer's words."""
SPOKEN_WITHOUT_TYPE = frozenset({"say", "final_answer"})
"""Keys that mean speech without a `type` beside them."""


def speak_string(context: ParseContext) -> Steps[None]:
    """Speak the string that begins here, piece by piece, its escapes decoded."""
    context.cursor.advance_by(1)
    context.events.gap = True  # What was spoken before it must not close up with it into a marker.
    scrubber = MarkerScrubber(context.events)
    while piece := (yield from read_string_piece(context.cursor)):
        scrubber.say(piece)
    scrubber.end()
    context.events.gap = True
