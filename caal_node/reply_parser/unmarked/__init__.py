"""Calls without any marker: JSON, Python lists, `name {json}`, code fences, `Action:`.

Here the text is speech until it proves to be a call: by its place (the beginning of a line, or
behind the end of a sentence), by a tool's own name, and by arguments.
"""

from __future__ import annotations

from caal_node.reply_parser.unmarked.bracket_calls import BracketCalls
from caal_node.reply_parser.unmarked.broken_call import BrokenCallSkipper
from caal_node.reply_parser.unmarked.fenced_calls import FencedCalls
from caal_node.reply_parser.unmarked.line_calls import LineCalls
from caal_node.reply_parser.unmarked.missing_header import MissingHeaderReader
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext


class UnmarkedCalls:
    """The three kinds, and the place in the text that they share."""

    def __init__(self, reading: UnmarkedContext) -> None:
        self.place = TextPosition(reading)
        self.lines = LineCalls(reading, self.place)
        self.headless = MissingHeaderReader(reading, self.place)
        self.brackets = BracketCalls(reading, self.place)
        self.wreck = BrokenCallSkipper(reading, self.place)
        self.fences = FencedCalls(reading, self.place, self.lines, self.brackets)
