"""The buffer of text that is ready to be spoken: words with the white space between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

_CLOSING: Final = frozenset(".,;:!?…)]}”’%")
_ITEM_ENDS: Final = frozenset(")]\"'”’%°")
"""A list's item that ends in one of these, a letter or a digit gets a full stop."""
_NEARBY_WORDS: Final = 6
"""So far back may a word stand that says what a number is: "call me tomorrow at 555-1234"."""
_SPACE_CHARS: Final = 64
"""White space is kept back up to this, until a word follows; the cap bounds the memory."""


@dataclass(slots=True)
class PrecedingText:
    """What a rule may know of the text before the one that it reads."""

    words: deque[str] = field(default_factory=lambda: deque[str](maxlen=_NEARBY_WORDS))
    """The last words, in lower case and without punctuation."""
    number: str | None = None
    """The number that a unit would belong to."""
    last_read: str = ""
    """The last character that was read."""

    @property
    def word(self) -> str:
        """The last word, or "" at the beginning."""
        return self.words[-1] if self.words else ""


@dataclass(frozen=True, slots=True)
class PendingAmount:
    """An amount of money whose currency may have to wait for the next word: $5 *million*."""

    complete: str
    """What is said where no such word follows: "5 dollars"."""
    amount: str
    currency: str


class OutputBuffer:
    """Collects what is to be spoken; `take` hands it over and empties the buffer."""

    def __init__(self) -> None:
        self.preceding = PrecedingText()
        self.at_line_start = True
        """Whether the next word is the first of its line."""
        self.pending_amount: PendingAmount | None = None
        self.pending_period = False
        """Whether a full stop was read that ends either the sentence or a unit: "6 ft. wide"."""
        self.last_char = ""
        """The last character put out that is no white space."""
        self._parts: list[str] = []
        self._space = ""
        self._omitted = False
        """Whether the last thing was left out, so that one of the spaces around it goes too."""
        self._in_item = self._next_is_item = self._after_marker = False

    @property
    def no_space_since_word(self) -> bool:
        """Whether the next word comes right after the last one, without a space."""
        return bool(self.last_char) and not self._space

    def take(self) -> str:
        """Return what can be spoken so far, and forget it."""
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def add_space(self, white: str) -> None:
        """Add white space as it was written, but for the space beside what was left out."""
        for char in white:
            self.preceding.last_read = char
            if char == "\n":
                if self._omitted and "\n" not in self._space:
                    self._space = ""
                self._omitted = False
                self.at_line_start = True
            elif self._omitted and (self._space or not self.last_char):
                continue
            self._space += char
            if len(self._space) > _SPACE_CHARS:
                self._end_line()
                self._write_pending()
                self._parts.append(self._space)
                self._space = ""

    def skip_marker(self, *, item: bool) -> None:
        """Note that a line's marker was left out; what follows it begins the line."""
        self._space = self._space[: self._space.rfind("\n") + 1]
        self._next_is_item |= item
        self._after_marker = True

    def omit(self) -> None:
        """Note that something was read which is not spoken."""
        self._omitted = True
        self.preceding.number = None

    def add(self, text: str) -> None:
        """Add `text` after the white space that was read; an empty text counts as left out."""
        if not text:
            self.omit()
            return
        if self._omitted and text[0] in _CLOSING and "\n" not in self._space:
            self._space = ""
        self._omitted = False
        self.pending_period &= "\n" in self._space or not text[0].islower()
        self._end_line()
        self._write_pending()
        self._parts += (self._space, text)
        self._space = ""
        self.last_char = text.rstrip()[-1:] or self.last_char
        self.at_line_start = False

    def add_attached(self, text: str) -> None:
        """Add `text` right after the last word, such as a comma in place of a bar."""
        self._space = ""
        self.add(text)

    def add_amount(self, amount: PendingAmount) -> None:
        """Add an amount of which the next word decides what is said."""
        self.add(amount.complete)
        self._parts.pop()
        self.pending_amount = amount

    def complete_amount(self, magnitude: str) -> None:
        """Put `magnitude`, the word after the pending amount, before the currency's name."""
        if self.pending_amount is None:
            return
        pending, self.pending_amount = self.pending_amount, None
        word = magnitude.rstrip(".,;:!?…")
        self._parts.append(pending.amount)
        self.add(f"{word} {pending.currency}{magnitude[len(word) :]}")

    def finish(self) -> None:
        """Write what was kept back, now that no more text comes."""
        self._write_pending()
        if self._omitted and "\n" not in self._space:
            self._space = ""
        self._parts.append(self._space)
        self._space = ""

    def _write_pending(self) -> None:
        if self.pending_period:
            self._parts.append(".")
            self.last_char = "."
            self.pending_period = False
        if self.pending_amount is not None:
            self._parts.append(self.pending_amount.complete)
            self.last_char = self.pending_amount.complete[-1]
            self.pending_amount = None

    def _end_line(self) -> None:
        """Write a full stop, heard as a pause, where a heading or an item ends without one."""
        if "\n" not in self._space and self.last_char:
            return
        self._write_pending()
        indented = not self._after_marker and self._space[-1:] in (" ", "\t")
        ends_open = self.last_char.isalnum() or self.last_char in _ITEM_ENDS
        if self._in_item and not indented and ends_open:
            self._parts.append(".")
        if not indented:
            self._in_item = self._next_is_item
        self._next_is_item = self._after_marker = False
