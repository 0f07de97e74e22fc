"""What is left of a call that a marker broke: it is no call any more, and no speech.

    {"name": "get_w<tool_call>{"name": "get_time", "arguments": {}}</tool_call>eather", "arguments":

Without the call in its middle the halves would close up into one that nobody wrote; spoken, they
would be noise. What stands in front of the marker is left out by `Reading.wreck`; here is what
stands behind: all up to where the brackets close, or a line ends and the next one does not go on
as JSON does. A model may also break off for good and begin to speak. So words are left out only
if a bracket closes behind them, or a quote in front of a comma, a colon or a bracket.
"""

from __future__ import annotations

import re

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.formats import formats
from caal_node.reply_parser.marker_next import next_marker
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext

_OPENING, _CLOSING, _QUOTES = "[{(", "]})", "\"'"
_BEHIND_STRING = ",:]})"
_FENCE = "```"
_MARKER_BEGINS = "<[]◁"
_STOPS = (*_OPENING, *_CLOSING, *_QUOTES, "<", "◁", "\n", _FENCE)
_GOES_ON = (*_QUOTES, *_CLOSING, ",")
"""How a line begins that goes on with an object."""
_MAX_PIECE_CHARS = 160
"""So much without any mark of JSON is held back at most."""
_MAX_SPACE_CHARS = 32
_MAX_DEPTH = 32
_SPEECH = re.compile(r"[\s.!?…。]*\w(?:\S*\s+\w|.*[.!?…。！？]\s*\Z)", re.DOTALL)
"""Two words or a sentence: no second half of a name."""
_FRAMES = tuple(closer for dialect in formats() if dialect.tentative for closer in dialect.closers)
"""Tags that are markers only where they close a call."""


def depth(text: str) -> int:
    """BracketCalls that are open at the end of `text`, a broken call's beginning; at least one."""
    count = sum(map(text.count, _OPENING)) - sum(map(text.count, _CLOSING))
    return min(max(count, 1), _MAX_DEPTH)


class BrokenCallSkipper:
    """Leaves out what belongs to a broken call; `place.wreck` is 0 where that is over."""

    def __init__(self, reading: UnmarkedContext, place: TextPosition) -> None:
        self._reading = reading
        self._place = place
        self._piece = ""
        """What has no mark of JSON behind it yet."""
        self._depth = 0
        """BracketCalls that are open behind that."""

    def rest(self) -> Steps[None]:
        """Read on up to the next marker, or to the end of the wreck."""
        source, place = self._reading.source, self._place
        self._piece, self._depth = "", place.wreck
        while place.wreck:
            left = max(0, _MAX_PIECE_CHARS - len(self._piece))
            text, stop = yield from source.until(_STOPS, left)
            self._piece += text
            if stop and stop in _MARKER_BEGINS and (yield from next_marker(source)):
                self._settle()
                return
            if stop in ("", "\n", _FENCE):
                yield from self._no_mark(stop)
            else:
                yield from self._mark(source.advance(source.at + 1))

    def _mark(self, mark: str) -> Steps[None]:
        """A bracket or a quote was taken."""
        self._piece += mark
        self._depth += (mark in _OPENING) - (mark in _CLOSING)
        if mark in _QUOTES:
            certain = (yield from self._following()) in _BEHIND_STRING
        else:
            certain = self._depth < self._place.wreck
        if certain:
            self._piece = ""
            self._place.wreck = self._depth = min(self._depth, _MAX_DEPTH)
            if not self._depth:
                yield from self._reading.source.take_any(_FRAMES)

    def _no_mark(self, stop: str) -> Steps[None]:
        """A line ends, or the reply, or a fence begins, or the piece has become long."""
        source, place = self._reading.source, self._place
        self._settle()
        if stop == _FENCE or not (yield from source.peek()):
            place.wreck = 0
        elif stop and place.wreck:
            char = yield from source.skip_space()
            gap = source.skipped
            if not char or not (char in _GOES_ON or (yield from next_marker(source))):
                source.unread(gap)
                place.wreck = 0

    def _settle(self) -> None:
        """Nothing says that the piece is JSON."""
        if _SPEECH.match(self._piece) is not None:
            self._reading.source.unread(self._piece)
            self._place.wreck = 0
        else:
            self._place.wreck = min(self._depth, _MAX_DEPTH)
        self._piece = ""

    def _following(self) -> Steps[str]:
        """The next character that is no white space, left where it is; " " if there is none."""
        source = self._reading.source
        for length in range(1, _MAX_SPACE_CHARS):
            if not (yield from source.has(length)):
                break
            char = source.text[source.at + length - 1]
            if not char.isspace():
                return char
        return " "
