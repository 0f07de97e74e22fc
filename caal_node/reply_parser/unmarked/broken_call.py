"""What is left of a call that a marker broke: it is no call any more, and no speech.

    {"name": "get_w<tool_call>{"name": "get_time", "arguments": {}}</tool_call>eather", "arguments":

Without the call in its middle the halves would close up into one that nobody wrote; spoken, they
would be noise. `ParseContext.skip_broken_call` leaves out what stands in front of the marker. Here
is what stands behind it: everything up to where the brackets close, or where a line ends and the
next one does not continue as JSON does. A model may also break off for good and begin to speak, so
words are left out only if a bracket closes behind them, or a quote in front of a comma, a colon or
a bracket.
"""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.formats import FORMATS
from caal_node.reply_parser.parse_context import ParseContext

_OPENING, _CLOSING, _QUOTES = "[{(", "]})", "\"'"
_BEHIND_STRING = ",:]})"
_FENCE = "```"
_MARKER_BEGINS = "<[]◁"
_STOPS = (*_OPENING, *_CLOSING, *_QUOTES, "<", "◁", "\n", _FENCE)
_CONTINUES = (*_QUOTES, *_CLOSING, ",")
"""How a line begins that continues an object."""
_MAX_PIECE_CHARS = 160
"""The most text without any sign of JSON that is held back."""
_MAX_SPACE_CHARS = 32
_MAX_DEPTH = 32
_SPEECH = re.compile(r"[\s.!?…。]*\w(?:\S*\s+\w|.*[.!?…。！？]\s*\Z)", re.DOTALL)
"""Two words or a sentence: no second half of a name."""
_CLOSING_TAGS = tuple(closer for each in FORMATS if each.tentative for closer in each.closers)
"""Tags that are markers only where they close a call."""


def skip_rest_of_broken_call(context: ParseContext) -> Steps[None]:
    """Read on up to the next marker, or to the end of the broken call.

    `position.broken_depth` is 0 where the call is over.
    """
    cursor, position = context.cursor, context.position
    piece = ""  # Text that has no sign of JSON behind it yet.
    depth = position.broken_depth  # Brackets that are open behind that.
    while position.broken_depth:
        text, stop = yield from cursor.take_until(_STOPS, max(0, _MAX_PIECE_CHARS - len(piece)))
        piece += text
        may_be_marker = stop != "" and stop in _MARKER_BEGINS
        at_marker = may_be_marker and (yield from context.markers.peek(cursor)) != ""
        if at_marker or stop in ("", "\n", _FENCE):
            # Nothing says that the piece is JSON.
            position.broken_depth = min(depth, _MAX_DEPTH)
            if _SPEECH.match(piece) is not None:
                cursor.unread(piece)
                position.broken_depth = 0
            piece = ""
            if at_marker:
                return
            yield from _end_line(context, stop)
            continue
        sign = cursor.advance_by(1)
        piece += sign
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if sign in _QUOTES:
            certain = (yield from _peek_behind_space(cursor)) in _BEHIND_STRING
        else:
            certain = depth < position.broken_depth
        if certain:
            piece = ""
            position.broken_depth = depth = min(depth, _MAX_DEPTH)
            if not depth:
                yield from cursor.take_any(_CLOSING_TAGS)


def _end_line(context: ParseContext, stop: str) -> Steps[None]:
    """Deal with the end of a line or of the reply, a fence, or a piece that became long."""
    cursor, position = context.cursor, context.position
    if stop == _FENCE or not (yield from cursor.peek()):
        position.broken_depth = 0
    elif stop and position.broken_depth:
        char = yield from cursor.skip_space()
        space = cursor.skipped
        continues = char in _CONTINUES or (yield from context.markers.peek(cursor))
        if not char or not continues:
            cursor.unread(space)
            position.broken_depth = 0


def _peek_behind_space(cursor: Cursor) -> Steps[str]:
    """Return the next character that is no white space, or " "; nothing is taken."""
    for length in range(1, _MAX_SPACE_CHARS):
        if not (yield from cursor.has(length)):
            break
        char = cursor.text[cursor.at + length - 1]
        if not char.isspace():
            return char
    return " "
