"""`Speakable`: a model's written answer as it streams in, what is said as it goes out."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.fence import OPENING, OPENING_CHARS, OPENING_SO_FAR, Fence
from caal_node.tts_text.inline_spans import OPENER, Wait, span
from caal_node.tts_text.line_markers import marker
from caal_node.tts_text.output_buffer import Mouth
from caal_node.tts_text.spoken_forms import Wording
from caal_node.tts_text.table import LINE_CHARS, Table
from caal_node.tts_text.word_rules import spoken_word

WORD_CHARS: Final = 400
"""A run without white space longer than this is no word. It is said as it is, or, where it is an
address, as that."""
PIECE_CHARS: Final = 256
"""Chunks are taken in pieces, so that the held text, which is cut at its front, stays short."""

_INSIDE_WORD: Final = re.compile(r"[!-~]*")
_WHITE: Final = re.compile(r"\s+")
_UNSPACED: Final = "฀-໿⺀-ッヅ-鿿豈-﫿＀-￯"
"""Thai, Lao, Chinese, Japanese: no white space between words, so a character is a word. (ツ is left
out: it stands in faces.)"""
_NOT_WHITE: Final = re.compile(r"\S+")
_UNSPACED_CHAR: Final = re.compile(rf"[{_UNSPACED}]")
_WORD: Final = re.compile(rf"[^\s{_UNSPACED}]+|[{_UNSPACED}]")
_ADDRESS: Final = re.compile(r"\w://|\bwww\.|@\w")


class Speakable:
    """Makes a written answer speakable. `feed` it in any pieces; the sum of what it gives is the
    same for every way of cutting the answer.

    Plain words go out once the word is over. What may be a construct (a link, a row of a table, a
    formula) is held until it is decided, each up to its own cap; the longest are a link's address
    (1,000 characters), a table's row (1,000), and a fence without a language (1,500).
    """

    def __init__(self, wording: Wording) -> None:
        self._wording = wording
        self._mouth = Mouth()
        self._held = ""
        self._asleep = False
        """Whether only white space, or much more text, can decide what is held."""
        self._tail_of_word = False
        """Whether the rest of a word too long comes."""
        self._mute = False
        """Whether that rest is left out, as of an address."""
        self._fence: Fence | None = None
        self._table: Table | None = None

    def feed(self, chunk: str) -> str:
        """What can be said now that `chunk` has come; often nothing yet."""
        if (
            self._asleep
            and len(self._held) + len(chunk) < WORD_CHARS
            and _INSIDE_WORD.fullmatch(chunk)
        ):
            self._held += chunk
            return ""
        for start in range(0, len(chunk), PIECE_CHARS):
            self._held += chunk[start : start + PIECE_CHARS]
            self._run(final=False)
        return self._mouth.take()

    def finish(self) -> str:
        """What is left, now that no more comes."""
        self._run(final=True)
        while self._fence is not None:
            fence, self._fence = self._fence, None
            self._held = self._told(fence)
            self._run(final=True)
        self._end_table()
        self._mouth.finish()
        return self._mouth.take()

    @property
    def holds(self) -> int:
        """Characters that have come and are not decided yet."""
        return len(self._held) + (self._fence.holds if self._fence else 0)

    def aside(self, text: str) -> str:
        """What is said for a piece of a construct, such as a table's cell."""
        inner = Speakable(self._wording)
        inner._mouth.line = False
        return inner.feed(text) + inner.finish()

    def _run(self, *, final: bool) -> None:
        self._asleep = False
        while self._held and self._step(final=final):
            pass

    def _step(self, *, final: bool) -> bool:
        """Read one thing from the held text; False where more has to come first."""
        if self._fence is not None:
            return self._in_fence(self._fence, final=final)
        if self._tail_of_word:
            return self._long_word()
        if white := _WHITE.match(self._held):
            self._mouth.space(white[0])
            return self._read(white.end())
        if self._mouth.line:
            if self._held[0] == "|":
                return self._row(final=final)
            if self._table is not None:
                self._end_table()
            if not self._held[0].isalpha() and (moved := self._at_line(final=final)) is not None:
                return moved
        if self._held[0] in "`~" and (moved := self._opens_fence(final=final)) is not None:
            return moved
        match span(self._held, self._mouth, self._wording, final=final):
            case Wait():
                return False
            case None:
                return self._word(final=final)
            case found:
                if found.line:
                    self._mouth.space("\n")
                elif found.said:
                    self._say(found.said)
                elif not found.again:
                    self._mouth.drop()
                return self._read(found.length, found.again)

    def _read(self, length: int, again: str = "") -> bool:
        self._mouth.before.raw = self._held[length - 1]
        self._held = again + self._held[length:]
        return True

    def _at_line(self, *, final: bool) -> bool | None:
        found = marker(self._held, final=final)
        if found is None:
            return None
        if isinstance(found, bool):
            return False
        self._mouth.marker(item=found.item)
        if found.said:
            self._mouth.say(found.said)
        again = self._wording.phrases["task_done"] if found.done else ""
        return self._read(found.length, again)

    def _word(self, *, final: bool) -> bool:
        match = _WORD.match(self._held, 0, WORD_CHARS)
        assert match is not None
        end = match.end()
        opener = OPENER.search(self._held, 1, end)
        if opener and not _ADDRESS.search(self._held, 0, opener.start()):
            end = opener.start()
        elif end == WORD_CHARS:
            self._tail_of_word = True
            self._mute = bool(_ADDRESS.search(match[0]))
            if not self._mute:
                self._mouth.say(match[0])
                return self._read(end)
        elif end == len(self._held) and not final and not _UNSPACED_CHAR.match(match[0]):
            self._asleep = True
            return False
        return self._say_word(self._held[:end])

    def _long_word(self) -> bool:
        rest = _NOT_WHITE.match(self._held)
        if rest is None:
            self._tail_of_word = False
            return True
        if not self._mute:
            self._mouth.say(rest[0])
        return self._read(rest.end())

    def _say_word(self, word: str) -> bool:
        mouth = self._mouth
        said, owed = spoken_word(word, mouth.before, self._wording)
        if mouth.owed is not None and mouth.before.word in self._wording.magnitudes:
            mouth.settle(said)
        elif owed is not None:
            mouth.owe(owed)
        elif said == "," and word in ("|", "•", "·"):
            mouth.close(said)
        elif said != word and word[-1] == "." and word[:-1] in self._wording.units:
            mouth.say(said[:-1])
            mouth.point = True
        else:
            if said[:1] in ".,;:!?" and said[:1] != word[:1]:
                mouth.drop()  # what the punctuation followed, as an emoji
            mouth.say(said)
        return self._read(len(word))

    def _say(self, said: str) -> None:
        self._mouth.say(said)
        self._mouth.before.number = None
        self._mouth.before.words.append(said.lower())

    def _row(self, *, final: bool) -> bool:
        end = self._held.find("\n", 0, LINE_CHARS)
        if end < 0 and len(self._held) < LINE_CHARS and not final:
            return False
        if end < 0 and len(self._held) >= LINE_CHARS:
            self._end_table()
            self._mouth.line = False
            return self._read(1)
        line = self._held if end < 0 else self._held[:end]
        if self._table is None:
            self._table = Table(self.aside, self._wording)
        for sentence in self._table.row(line):
            self._say(sentence)
            self._mouth.space("\n")
        return self._read(len(self._held) if end < 0 else end + 1)

    def _end_table(self) -> None:
        table, self._table = self._table, None
        for sentence in table.end() if table else ():
            self._say(sentence)
            self._mouth.space("\n")

    def _opens_fence(self, *, final: bool) -> bool | None:
        if opening := OPENING.match(self._held, 0, OPENING_CHARS):
            self._fence = Fence(opening, self._wording)
            return self._read(opening.end())
        if final or len(self._held) >= OPENING_CHARS or not OPENING_SO_FAR.fullmatch(self._held):
            return None
        return False

    def _in_fence(self, fence: Fence, *, final: bool) -> bool:
        end = self._held.find("\n", 0, PIECE_CHARS) + 1
        if not end and len(self._held) < PIECE_CHARS and not final:
            return False
        end = end or min(len(self._held), PIECE_CHARS)
        line = self._held[:end]
        if fence.closes(line):
            self._fence = None
            return self._read(end, self._told(fence) + ("\n" if line.endswith("\n") else ""))
        fence.line(line)
        if words := fence.words:
            self._fence = None
            self._mouth.line = True
            return self._read(end, words)
        return self._read(end)

    def _told(self, fence: Fence) -> str:
        """Say what a block was; or give its words, which are to be read on."""
        told, words = fence.end()
        if told:
            self._say(told)
        elif words:
            self._mouth.line = True
        return words.removesuffix("\n")
