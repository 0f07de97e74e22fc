"""The text protocol, for models whose server has no tools: JSON objects, one or several.

    {"type": "tool_call", "name": "set_timer", "arguments": {"minutes": 5}}
    {"type": "tool_calls", "calls": [{"name": ..., "arguments": {...}}, ...]}
    {"type": "final_answer", "text": "..."}

and, in one constrained reply, `{"calls": [...]}` or `{"say": "..."}`. The calls are read like any
other call's object; here is what is speech, which goes out while it arrives.
"""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.parse_context import MarkerScrubber, ParseContext

CALL_TYPES = frozenset({"tool_call", "tool_calls", "function_call", "tool_use"})
RESULT_TYPES = frozenset({"tool_observation", "tool_result", "tool_response"})
"""What only a tool says: such an object is a result that the model made up."""
RESULT_ERRORS = frozenset({"unknown_tool", "invalid_call"})
"""What the node tells a model of a call that cannot be made. Small ones write it back."""
FINAL_TYPES = frozenset({"final_answer", "final"})
SPOKEN_KEYS = frozenset({"text", "content", "answer", "message", "output", "response", "say"})
"""Keys under which models put a final answer's words."""
SPOKEN_WITHOUT_TYPE = frozenset({"say", "final_answer"})
"""Keys that mean speech without a `type` beside them."""
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_REPLACEMENT = 0xFFFD


def speak_string(context: ParseContext) -> Steps[None]:
    """Speak the string that begins here, piece by piece, its escapes decoded."""
    context.cursor.advance_by(1)
    context.events.gap = True  # What was spoken before it must not close up with it into a marker.
    scrubber = MarkerScrubber(context.events)
    while piece := (yield from read_string_piece(context.cursor)):
        scrubber.say(piece)
    scrubber.end()
    context.events.gap = True


def read_string_piece(cursor: Cursor) -> Steps[str]:
    """Return the next piece of a JSON string, decoded; "" behind the last.

    The cursor stands behind the opening quote. The closing quote is taken, too.
    """
    if not (yield from cursor.peek()):
        return ""
    found = _PLAIN.match(cursor.text, cursor.at)
    if found is not None:
        return cursor.advance(found.end())
    if cursor.text[cursor.at] == '"':
        cursor.advance_by(1)
        return ""
    return (yield from _read_escape(cursor))


def _read_escape(cursor: Cursor) -> Steps[str]:
    if not (yield from cursor.has(2)):
        cursor.take_rest()
        return ""
    letter = cursor.text[cursor.at + 1]
    if letter != "u":
        cursor.advance_by(2)
        return _ESCAPES.get(letter, letter)
    units = [(yield from _read_code_unit(cursor))]
    if 0xD800 <= units[0] < 0xDC00 and (yield from cursor.peek_any(("\\u",))):
        units.append((yield from _read_code_unit(cursor)))
    # A surrogate pair is one character; one without the other becomes U+FFFD.
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "replace")


def _read_code_unit(cursor: Cursor) -> Steps[int]:
    r"""Take one `\uXXXX`, and return its number; that of U+FFFD when it is none."""
    if not (yield from cursor.has(6)):
        cursor.take_rest()
        return _REPLACEMENT
    digits = cursor.text[cursor.at + 2 : cursor.at + 6]
    if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
        cursor.advance_by(2)
        return _REPLACEMENT
    cursor.advance_by(6)
    return int(digits, 16)
