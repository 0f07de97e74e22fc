"""The text of a reply as it arrives, read by generators that pause where it ends.

A reader is written as if the whole text were there. Where it needs more, it yields, and it goes on
when more has arrived or the reply has ended; so the same text is read the same way however it is
cut into chunks. Whoever waits for something takes what cannot belong to it at once, so the unread
text stays short and the work grows with the length of the reply, not with its square.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import lru_cache
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""A reading that yields whenever it needs more text, and returns a T."""

_SPACE = re.compile(r"\s*")
_MAX_LITERAL_CHARS = 160
"""Longer than any marker and any tool's name."""
_MAX_REREADS = 8
_NO_LIMIT = 1 << 60


class Cursor:
    """The unread text of a reply, and ways to take it or to wait for more."""

    def __init__(self) -> None:
        self.text = ""
        """The unread text from index `at` on; what is in front of that was just read."""
        self.at = 0
        self.closed = False
        """Whether the reply has ended."""
        self.skipped = ""
        """The white space that `skip_space` skipped last."""
        self._rereads = 0
        self._record: list[str] | None = None

    def append(self, chunk: str) -> None:
        """Add the text that has arrived."""
        self.text = self.text[self.at :] + chunk
        self.at = 0

    # -- taking what is there -----------------------------------------------------------------

    def advance(self, end: int) -> str:
        """Take the text up to index `end`."""
        taken = self.text[self.at : end]
        self.at = end
        if self._record is not None and taken:
            self._record.append(taken)
        return taken

    def advance_by(self, count: int) -> str:
        """Take `count` characters."""
        return self.advance(self.at + count)

    def take_rest(self) -> str:
        """Take everything that has arrived."""
        return self.advance(len(self.text))

    def match_next(self, literals: tuple[str, ...]) -> tuple[str | None, bool]:
        """Return the longest of `literals` that comes next, and whether more text cannot change
        that. Nothing is taken."""
        rest = self.text[self.at : self.at + _MAX_LITERAL_CHARS]
        best: str | None = None
        incomplete = False
        for literal in literals:
            if rest.startswith(literal):
                if best is None or len(literal) > len(best):
                    best = literal
            elif len(rest) < len(literal) and literal.startswith(rest):
                incomplete = True
        return best, self.closed or not incomplete

    # -- putting back -------------------------------------------------------------------------

    def record(self) -> None:
        """Keep what is taken from here on, for `recorded`."""
        self._record = []

    def recorded(self) -> str:
        """Return what was taken since `record`, and stop recording."""
        text = "".join(self._record or ())
        self._record = None
        return text

    def recorded_from(self, count: int) -> str:
        """Return what was taken since `recorded_chars` was `count`."""
        return "".join(self._record or ())[count:]

    @property
    def recorded_chars(self) -> int:
        """How many characters were taken since `record`."""
        return sum(map(len, self._record or ()))

    def unread(self, text: str) -> None:
        """Put `text`, which was taken last, back in front."""
        left = len(text)
        while self._record and left > 0:
            last = self._record.pop()
            if len(last) > left:
                self._record.append(last[: len(last) - left])
            left -= len(last)
        before = self.at - len(text)
        if before >= 0 and self.text.startswith(text, before):
            self.at = before
        else:
            self.text = text + self.text[self.at :]
            self.at = 0

    def try_unread(self, text: str) -> bool:
        """Put back what a reader took and could not use. False: it was put back too often.

        The number of times is limited, so that a hostile reply cannot be read over and over.
        """
        self._rereads += 1
        if self._rereads <= _MAX_REREADS:
            self.unread(text)
        return self._rereads <= _MAX_REREADS

    # -- waiting for more ---------------------------------------------------------------------

    def has(self, count: int) -> Steps[bool]:
        """Wait for `count` characters. False: the reply ends before."""
        while len(self.text) - self.at < count:
            if self.closed:
                return False
            yield
        return True

    def peek(self) -> Steps[str]:
        """Return the next character, or "" at the end."""
        while self.at >= len(self.text):
            if self.closed:
                return ""
            yield
        return self.text[self.at]

    def peek_any(self, literals: tuple[str, ...]) -> Steps[str | None]:
        """Return the longest of `literals` that comes next, without taking it."""
        while True:
            found, certain = self.match_next(literals)
            if certain:
                return found
            yield

    def take(self, literal: str) -> Steps[bool]:
        """Take `literal` if it is what comes next."""
        return (yield from self.take_any((literal,))) is not None

    def take_any(self, literals: tuple[str, ...]) -> Steps[str | None]:
        """Take the longest of `literals` that comes next, if one does."""
        found = yield from self.peek_any(literals)
        if found is not None:
            self.advance_by(len(found))
        return found

    def take_match(self, pattern: re.Pattern[str], limit: int) -> Steps[str]:
        """Take what `pattern` matches here, at most `limit` characters; "" if it does not match."""
        while True:
            found = pattern.match(self.text, self.at, self.at + limit)
            end = found.end() if found is not None else self.at
            if end < len(self.text) or self.closed or end - self.at >= limit:
                return self.advance(end)
            yield

    def skip_space(self) -> Steps[str]:
        """Skip white space and return the character behind it, or "". `skipped` holds the space."""
        parts: list[str] = []
        while True:
            found = _SPACE.match(self.text, self.at)
            if found is not None and found.end() > self.at:
                parts.append(self.advance(found.end()))
            if self.at < len(self.text) or self.closed:
                self.skipped = "".join(parts)
                return self.text[self.at : self.at + 1]
            yield

    def take_until(self, stops: tuple[str, ...], limit: int = _NO_LIMIT) -> Steps[tuple[str, str]]:
        """Take the text in front of the first of `stops`, and return it and that stop.

        The stop itself stays unread. It is "" when the reply ends first, or when `limit`
        characters went by without one. No stop may begin with another.
        """
        finder, longest = _stop_finder(stops)
        parts: list[str] = []
        left = limit
        while True:
            found = finder.search(self.text, self.at, self.at + left + longest)
            # A stop past the limit must not count, or the answer would depend on the chunks.
            if found is not None and found.start() - self.at <= left:
                parts.append(self.advance(found.start()))
                return "".join(parts), found.group()
            if len(self.text) - self.at >= left + longest:
                parts.append(self.advance_by(left))
                return "".join(parts), ""
            if self.closed:
                parts.append(self.take_rest())
                return "".join(parts), ""
            # No stop begins in front of the last few characters: they alone are searched again.
            passed = min(len(self.text) - self.at - longest + 1, left)
            if passed > 0:
                parts.append(self.advance_by(passed))
                left -= passed
            yield


@lru_cache(maxsize=512)
def _stop_finder(stops: tuple[str, ...]) -> tuple[re.Pattern[str], int]:
    """Return what finds the first of `stops`, and the length of the longest."""
    ordered = sorted(stops, key=len, reverse=True)
    return re.compile("|".join(re.escape(stop) for stop in ordered)), max(map(len, stops))
