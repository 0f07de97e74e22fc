"""What goes out: words with the white space that belongs to them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

_CLOSING: Final = frozenset(".,;:!?…)]}”’%")
_SPEAKABLE_END: Final = frozenset(")]\"'”’%°")
"""Ends of a list's item, besides letters and digits, that want a full stop after them."""
_NEAR_WORDS: Final = 6
"""How far back a word may stand that says what a number is: "call me tomorrow at 555-1234"."""
_GAP_CHARS: Final = 64
"""White space that is kept back before it is known whether a word follows: bounds the memory."""


@dataclass(slots=True)
class Before:
    """What a rule may know of what came before."""

    words: deque[str] = field(default_factory=lambda: deque[str](maxlen=_NEAR_WORDS))
    """In lower case, without punctuation."""
    number: str | None = None
    """The number that a unit would belong to."""
    raw: str = ""
    """The last character that was read."""

    @property
    def word(self) -> str:
        return self.words[-1] if self.words else ""


@dataclass(frozen=True, slots=True)
class Owed:
    """An amount of money whose noun may have to wait for a word: $5 *million*."""

    plain: str
    amount: str
    noun: str


class Mouth:
    """Collects what is said; `take` hands it over."""

    def __init__(self) -> None:
        self.before = Before()
        self.line = True
        """Whether the next word is the first of its line."""
        self.owed: Owed | None = None
        self.point = False
        """Whether a full stop was read that ends the sentence, or only a unit: "6 ft. wide"."""
        self._out: list[str] = []
        self._gap = ""
        self._dropped = False
        """Whether the last thing was left out, so that one of the spaces around it goes too."""
        self._last = ""
        """The last character said that is no white space."""
        self._item = self._next_item = self._marked = False

    @property
    def touching(self) -> bool:
        """Whether the next word comes right after the last, without a space."""
        return bool(self._last) and not self._gap

    @property
    def last(self) -> str:
        return self._last

    def take(self) -> str:
        said = "".join(self._out)
        self._out.clear()
        return said

    def space(self, white: str) -> None:
        for char in white:
            self.before.raw = char
            if char == "\n":
                if self._dropped and "\n" not in self._gap:
                    self._gap = ""
                self._dropped = False
                self.line = True
            elif self._dropped and (self._gap or not self._last):
                continue
            self._gap += char
            if len(self._gap) > _GAP_CHARS:
                self._end_line()
                self._pay()
                self._out.append(self._gap)
                self._gap = ""

    def marker(self, *, item: bool) -> None:
        """A line's marker was read and left out; what follows it begins the line."""
        self._gap = self._gap[: self._gap.rfind("\n") + 1]
        self._next_item |= item
        self._marked = True

    def drop(self) -> None:
        """Something was read and is not said."""
        self._dropped = True
        self.before.number = None

    def say(self, text: str) -> None:
        if not text:
            self.drop()
            return
        if self._dropped and text[0] in _CLOSING and "\n" not in self._gap:
            self._gap = ""
        self._dropped = False
        self.point &= "\n" in self._gap or not text[0].islower()
        self._end_line()
        self._pay()
        self._out += (self._gap, text)
        self._gap = ""
        self._last = text.rstrip()[-1:] or self._last
        self.line = False

    def owe(self, owed: Owed) -> None:
        """An amount was read; what is said for it depends on the next word."""
        self.say(owed.plain)
        self._out.pop()
        self.owed = owed

    def settle(self, magnitude: str) -> None:
        """The word after the amount is `magnitude`, so the noun follows that."""
        if self.owed is None:
            return
        owed, self.owed = self.owed, None
        core = magnitude.rstrip(".,;:!?…")
        self._out.append(owed.amount)
        self.say(f"{core} {owed.noun}{magnitude[len(core) :]}")

    def close(self, text: str) -> None:
        """`say`, right after what was said: a comma in place of a bar."""
        self._gap = ""
        self.say(text)

    def finish(self) -> None:
        self._pay()
        if self._dropped and "\n" not in self._gap:
            self._gap = ""
        self._out.append(self._gap)
        self._gap = ""

    def _pay(self) -> None:
        if self.point:
            self._out.append(".")
            self._last = "."
            self.point = False
        if self.owed is not None:
            self._out.append(self.owed.plain)
            self._last = self.owed.plain[-1]
            self.owed = None

    def _end_line(self) -> None:
        """Where a heading or an item ends without punctuation, a pause is heard."""
        if "\n" not in self._gap and self._last:
            return
        self._pay()
        indented = not self._marked and self._gap[-1:] in (" ", "\t")
        if self._item and not indented and (self._last.isalnum() or self._last in _SPEAKABLE_END):
            self._out.append(".")
        if not indented:
            self._item = self._next_item
        self._next_item = self._marked = False
