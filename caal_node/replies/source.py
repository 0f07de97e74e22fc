"""The text of a reply as it arrives, read by generators that pause where it ends.

A reader is written as if the whole text were there. Where it needs more, it yields, and goes on
when more has come or the reply has ended; so the same text gives the same reading in any chunks.
What has been read is let go, which keeps every step linear in what is new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""A reading that yields whenever it needs more text, and returns a T."""

_MAX_RETRIES = 8
_SPACE = re.compile(r"\s*")


@lru_cache(maxsize=512)
def _stops(stops: tuple[str, ...]) -> tuple[re.Pattern[str], int, re.Pattern[str]]:
    """What finds the first of `stops`, how long they get, and which characters may begin one."""
    ordered = sorted(stops, key=len, reverse=True)
    finder = re.compile("|".join(re.escape(stop) for stop in ordered))
    heads = re.compile("[" + "".join(sorted({re.escape(stop[0]) for stop in stops})) + "]")
    return finder, max(map(len, stops)), heads


@lru_cache(maxsize=512)
def quiet_characters(wake: re.Pattern[str]) -> frozenset[str]:
    """Characters that a reader waiting for `wake` need not be told of."""
    return frozenset(char for char in map(chr, range(32, 127)) if wake.match(char) is None)


class Source:
    """The unread text, and whether more can come."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.closed = False
        self.skipped = ""
        """The white space that `skip_space` skipped last."""
        self._retries = _MAX_RETRIES
        self.wake: re.Pattern[str] | None = None
        """Set by a waiting reader: only text that this matches is worth waking it for."""
        self._arrived: list[str] = []
        self._record: list[str] | None = None

    # -- arriving ---------------------------------------------------------------------------

    @property
    def put(self) -> Callable[[str], None]:
        """Takes a chunk; it is not readable before `gather`."""
        return self._arrived.append

    def gather(self) -> None:
        """Make what has arrived readable."""
        if self._arrived:
            self.text = self.text[self.at :] + "".join(self._arrived)
            self.at = 0
            self._arrived.clear()
        self.wake = None

    # -- taking -----------------------------------------------------------------------------

    def advance(self, end: int) -> str:
        """Take the text up to index `end`."""
        taken = self.text[self.at : end]
        self.at = end
        if self._record is not None and taken:
            self._record.append(taken)
        return taken

    def record(self) -> None:
        """Keep what is read from here on, for `recorded`."""
        self._record = []

    def recorded(self) -> str:
        """What was read since `record`; recording stops."""
        text = "".join(self._record or ())
        self._record = None
        return text

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

    def retry(self, text: str) -> None:
        """Put back what a reader took up to the reply's end and could not use.

        After a few times it is dropped, so that a hostile reply cannot be read over and over.
        """
        self._retries -= 1
        if self._retries >= 0:
            self.unread(text)

    # -- waiting ----------------------------------------------------------------------------

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
            rest = self.text[self.at : self.at + 64]
            best: str | None = None
            waiting = False
            for literal in literals:
                if rest.startswith(literal):
                    if best is None or len(literal) > len(best):
                        best = literal
                elif len(rest) < len(literal) and literal.startswith(rest):
                    waiting = True
            if not waiting or self.closed:
                return best
            yield

    def until(self, stops: tuple[str, ...], limit: int | None = None) -> Steps[tuple[str, str]]:
        """Take the text in front of the first of `stops`: (text, that stop).

        The stop itself stays unread. It is "" when the reply ends first, or when `limit`
        characters went by without one. No stop may begin with another.
        """
        finder, longest, heads = _stops(stops)
        parts: list[str] = []
        while True:
            if limit is None:
                found = finder.search(self.text, self.at)
            else:
                found = finder.search(self.text, self.at, self.at + limit + longest)
            # A stop past the limit must not count, or the answer would depend on the chunks.
            if found is not None and (limit is None or found.start() - self.at <= limit):
                parts.append(self.advance(found.start()))
                return "".join(parts), found.group()
            if limit is not None and len(self.text) - self.at >= limit + longest:
                return self.advance(self.at + limit), ""
            if self.closed:
                parts.append(self.advance(len(self.text)))
                return "".join(parts), ""
            if limit is None:
                # Keep only what could still be the beginning of a stop.
                keep = heads.search(self.text, max(self.at, len(self.text) - longest + 1))
                end = keep.start() if keep else len(self.text)
                parts.append(self.advance(end))
                if keep is None:
                    self.wake = heads
            yield
