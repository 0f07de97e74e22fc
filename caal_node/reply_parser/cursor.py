"""The text of a reply as it arrives, read by generators that pause where it ends.

A reader is written as if the whole text were there. Where it needs more, it yields, and goes on
when more has come or the reply has ended; so the same text gives the same reading in any chunks.
What has been read is let go, which keeps every step linear in what is new.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeAlias, TypeVar

from caal_node.reply_parser.tape import Tape
from caal_node.reply_parser.waiting import SPACE, Limited, beginning, until

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""A reading that yields whenever it needs more text, and returns a T."""

_SPACE = re.compile(r"\s*")


class Cursor(Tape):
    """The unread text, and waiting for more of it."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = ""
        """The white space that `skip_space` skipped last."""

    def has(self, count: int) -> Steps[bool]:
        """Wait for `count` characters. False: the reply ends before."""
        while len(self.text) - self.at < count:
            if self.closed:
                return False
            yield
        return True

    def peek(self) -> Steps[str]:
        """The next character, or "" at the end."""
        while self.at >= len(self.text):
            if self.closed:
                return ""
            yield
        return self.text[self.at]

    def skip_space(self) -> Steps[str]:
        """Skip white space; give the character after it, or "". `skipped` holds what it was."""
        self.skipped = ""
        while True:
            found = _SPACE.match(self.text, self.at)
            if found is not None and found.end() > self.at:
                self.skipped += self.advance(found.end())
            if self.at < len(self.text):
                return self.text[self.at]
            if self.closed:
                return ""
            self.waiting = SPACE
            yield

    def take(self, literal: str) -> Steps[bool]:
        """Take `literal` if it is what comes next."""
        return (yield from self.take_any((literal,))) is not None

    def take_any(self, literals: tuple[str, ...]) -> Steps[str | None]:
        """Take the longest of `literals` that comes next, if one does."""
        found = yield from self.look(literals)
        if found is not None:
            self.advance(self.at + len(found))
        return found

    def look(self, literals: tuple[str, ...]) -> Steps[str | None]:
        """The longest of `literals` that comes next, left where it is."""
        while True:
            found, certain = self.next_of(literals)
            if certain:
                return found
            self.waiting = beginning(literals, self.text[self.at :])
            yield

    def next_of(self, literals: tuple[str, ...]) -> tuple[str | None, bool]:
        """The longest of `literals` that comes next, and whether more text cannot change that."""
        rest = self.text[self.at : self.at + 64]
        best: str | None = None
        waiting = False
        for literal in literals:
            if rest.startswith(literal):
                if best is None or len(literal) > len(best):
                    best = literal
            elif len(rest) < len(literal) and literal.startswith(rest):
                waiting = True
        return best, self.closed or not waiting

    def until(self, stops: tuple[str, ...], limit: int | None = None) -> Steps[tuple[str, str]]:
        """Take the text in front of the first of `stops`: (text, that stop).

        The stop itself stays unread. It is "" when the reply ends first, or when `limit`
        characters went by without one. No stop may begin with another.
        """
        finder, longest, state = until(stops)
        while True:
            if limit is None:
                found = finder.search(self.text, self.at)
            else:
                found = finder.search(self.text, self.at, self.at + limit + longest)
            # A stop past the limit must not count, or the answer would depend on the chunks.
            if found is not None and (limit is None or found.start() - self.at <= limit):
                return self.advance(found.start()), found.group()
            if limit is not None and len(self.text) - self.at >= limit + longest:
                return self.advance(self.at + limit), ""
            if self.closed:
                return self.advance(len(self.text)), ""
            here = state.behind(self.text[max(self.at, len(self.text) - longest) :])
            left = None if limit is None else limit + longest - (len(self.text) - self.at)
            self.waiting = here if left is None else Limited(here, left)
            yield
