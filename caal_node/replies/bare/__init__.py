"""Calls without any marker: JSON, Python lists, `name {json}`, code fences, `Action:`.

Here the text is speech until it proves to be a call: by its place (the beginning of a line, or
behind the end of a sentence), by a tool's own name, and by arguments.
"""

from __future__ import annotations

from caal_node.replies.bare.brackets import Brackets
from caal_node.replies.bare.fences import Fences
from caal_node.replies.bare.headless import Headless
from caal_node.replies.bare.lines import Lines
from caal_node.replies.bare.place import Place, Running
from caal_node.replies.bare.wreck import Wreck


class BareCalls:
    """The three kinds, and the place in the text that they share."""

    def __init__(self, reading: Running) -> None:
        self.place = Place(reading)
        self.lines = Lines(reading, self.place)
        self.headless = Headless(reading, self.place)
        self.brackets = Brackets(reading, self.place)
        self.wreck = Wreck(reading, self.place)
        self.fences = Fences(reading, self.place, self.lines, self.brackets)
