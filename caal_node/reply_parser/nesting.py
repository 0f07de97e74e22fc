"""States of readers that wait for the end of brackets and strings."""

from __future__ import annotations

import re

from caal_node.reply_parser.states import Step, Waiting


class Nesting(Waiting):
    """Inside brackets and strings: waits for the last bracket to close, or for too many."""

    __slots__ = ("_kind", "depth", "quote")

    def __init__(self, kind: BracketStyle, depth: int, quote: str) -> None:
        super().__init__()
        self._kind = kind
        self.depth = depth
        """BracketStyle that are open."""
        self.quote = quote
        """The quote of the string that is open, a backslash behind it if one came last; "" outside
        of strings."""

    def step(self, piece: str) -> Step | None:
        if len(piece) > 1:
            plain = self._kind.marks.search(piece) is None and not self.quote.endswith("\\")
            return (None, self, piece) if plain else None
        after = self._kind.after(self.depth, self.quote, piece)
        if after == (0, "") or after[0] > self._kind.deepest:
            return None
        return self.keep(piece, (None, self._kind.state(*after), piece))


class BracketStyle:
    """A way of nesting: which brackets, which quotes."""

    def __init__(self, opening: str, closing: str, quotes: str, deepest: int) -> None:
        self.deepest = deepest
        self.marks = re.compile(f"[{re.escape(opening + closing + quotes)}\\\\]")
        self._opening, self._closing, self._quotes = opening, closing, quotes
        self._states: dict[tuple[int, str], Nesting] = {}

    def after(self, depth: int, quote: str, char: str) -> tuple[int, str]:
        """Depth and quote behind `char`."""
        if quote.endswith("\\"):
            return depth, quote[:-1]
        if char == "\\" and quote:
            return depth, quote + char
        if quote:
            return depth, "" if char == quote else quote
        if char in self._quotes:
            return depth, char
        return depth + (char in self._opening) - (char in self._closing), ""

    def state(self, depth: int, quote: str) -> Nesting:
        key = depth, quote
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = Nesting(self, depth, quote)
        return state
