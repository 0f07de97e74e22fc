"""Calls without any marker: JSON, Python lists, `name {json}`, code fences, `Action:`.

Here the text is speech until it proves to be a call: by where it stands (at the beginning of a
line, or behind the end of a sentence), by a tool's own name, and by arguments.
"""

from caal_node.reply_parser.unmarked.bracket_calls import BracketCalls
from caal_node.reply_parser.unmarked.broken_call import BrokenCallSkipper
from caal_node.reply_parser.unmarked.fenced_calls import FencedCalls
from caal_node.reply_parser.unmarked.line_calls import LineCalls
from caal_node.reply_parser.unmarked.missing_header import MissingHeaderReader
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext


class UnmarkedCalls:
    """The readers of unmarked calls, and the position in the text that they share."""

    def __init__(self, context: UnmarkedContext) -> None:
        self.position = TextPosition(context)
        self.lines = LineCalls(context, self.position)
        self.missing_header = MissingHeaderReader(context, self.position)
        self.brackets = BracketCalls(context, self.position)
        self.broken_call = BrokenCallSkipper(context, self.position)
        self.fences = FencedCalls(context, self.position, self.lines, self.brackets)
