"""`TextNormalizer` turns a model's written answer into spoken text while the answer streams in."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.inline_spans import SPAN_OPENING, inline_span
from caal_node.tts_text.markdown_blocks import (
    FENCE_LINE_CHARS,
    FENCE_OPENING,
    FENCE_OPENING_SO_FAR,
    ROW_CHARS,
    CodeFence,
    MarkdownTable,
    line_marker,
)
from caal_node.tts_text.output_buffer import OutputBuffer
from caal_node.tts_text.spoken_forms import SpokenForms
from caal_node.tts_text.word_rules import spoken_word

WORD_CHARS: Final = 400
"""A longer run without white space is no word. It is spoken as it is, or left out if it is an
address."""
PIECE_CHARS: Final = 256
"""Chunks are read in pieces of this size, so that the held text, which is cut at its front, stays
short."""

_WHITE_SPACE: Final = re.compile(r"\s+")
_NOT_WHITE_SPACE: Final = re.compile(r"\S+")
_UNSPACED: Final = "฀-໿⺀-ッヅ-鿿豈-﫿＀-￯"
"""Thai, Lao, Chinese and Japanese have no white space between words, so each character is read as a
word. ツ is no part of it, as it stands in faces."""
_UNSPACED_CHAR: Final = re.compile(rf"[{_UNSPACED}]")
_WORD: Final = re.compile(rf"[^\s{_UNSPACED}]+|[{_UNSPACED}]")
_ADDRESS: Final = re.compile(r"\w://|\bwww\.|@\w")


class TextNormalizer:
    """Makes a written answer fit to be spoken.

    The answer is fed in pieces, and the sum of what comes out is the same for every way of cutting
    it. Plain words come out once the word is over. What may be a construct (a link, a row of a
    table, a formula) is held until it is decided, each up to its own cap; the longest are a link's
    address (1,000 characters), a table's row (1,000), and a fence without a language (1,500).
    """

    def __init__(self, forms: SpokenForms) -> None:
        self._forms = forms
        self._buffer = OutputBuffer()
        self._held = ""
        self._in_long_word = False
        """Whether the rest of a word past its cap is being read."""
        self._long_word_is_address = False
        """Whether that rest is left out, because the word is an address."""
        self._fence: CodeFence | None = None
        self._table: MarkdownTable | None = None

    def feed(self, chunk: str) -> str:
        """Return what can be spoken now that `chunk` has come; often that is nothing yet."""
        for start in range(0, len(chunk), PIECE_CHARS):
            self._held += chunk[start : start + PIECE_CHARS]
            self._read_held(final=False)
        return self._buffer.take()

    def finish(self) -> str:
        """Return the rest of what is spoken, now that no more text comes."""
        self._read_held(final=True)
        while self._fence is not None:
            fence, self._fence = self._fence, None
            self._held = self._finish_fence(fence)
            self._read_held(final=True)
        self._end_table()
        self._buffer.finish()
        return self._buffer.take()

    @property
    def held_chars(self) -> int:
        """The number of characters that have come and are not decided yet."""
        return len(self._held) + (self._fence.held_chars if self._fence else 0)

    def _spoken_cell(self, text: str) -> str:
        """Return what is said for the text of a table's cell, which has no lines of its own."""
        inner = TextNormalizer(self._forms)
        inner._buffer.at_line_start = False
        return inner.feed(text) + inner.finish()

    def _read_held(self, *, final: bool) -> None:
        while self._held and self._read_next(final=final):
            pass

    def _read_next(self, *, final: bool) -> bool:
        """Read one thing from the held text; return False where more text has to come first."""
        if self._fence is not None:
            return self._read_fence(self._fence, final=final)
        if self._in_long_word:
            return self._read_long_word()
        if white := _WHITE_SPACE.match(self._held):
            self._buffer.add_space(white[0])
            return self._consume(white.end())
        if self._held[0].isalpha() and self._table is None:
            return self._read_word(final=final)  # A letter begins a word, and no construct.
        if self._buffer.at_line_start:
            if self._held[0] == "|":
                return self._read_row(final=final)
            if self._table is not None:
                self._end_table()
            if (read := self._read_marker(final=final)) is not None:
                return read
        if self._held[0] in "`~" and (read := self._open_fence(final=final)) is not None:
            return read
        span = inline_span(self._held, self._buffer, self._forms, final=final)
        if span == "wait":
            return False
        if span is None:
            return self._read_word(final=final)
        if span.breaks_line:
            self._buffer.add_space("\n")
        elif span.spoken:
            self._speak(span.spoken)
        elif not span.read_again:
            self._buffer.omit()
        return self._consume(span.length, span.read_again)

    def _consume(self, length: int, read_again: str = "") -> bool:
        """Take `length` characters off the held text, and put `read_again` in their place."""
        self._buffer.preceding.last_read = self._held[length - 1]
        self._held = read_again + self._held[length:]
        return True

    def _read_marker(self, *, final: bool) -> bool | None:
        marker = line_marker(self._held, final=final)
        if marker is None:
            return None
        if marker == "wait":
            return False
        self._buffer.skip_marker(item=marker.item)
        if marker.spoken:
            self._buffer.add(marker.spoken)
        return self._consume(
            marker.length, self._forms.phrases["task_done"] if marker.task_done else ""
        )

    def _read_word(self, *, final: bool) -> bool:
        match = _WORD.match(self._held, 0, WORD_CHARS)
        assert match is not None
        end = match.end()
        opening = SPAN_OPENING.search(self._held, 1, end)
        if opening and not _ADDRESS.search(self._held, 0, opening.start()):
            end = opening.start()
        elif end == WORD_CHARS:
            self._in_long_word = True
            self._long_word_is_address = bool(_ADDRESS.search(match[0]))
            if not self._long_word_is_address:
                self._buffer.add(match[0])
                return self._consume(end)
        elif end == len(self._held) and not final and not _UNSPACED_CHAR.match(match[0]):
            return False
        self._speak_word(self._held[:end])
        return self._consume(end)

    def _read_long_word(self) -> bool:
        rest = _NOT_WHITE_SPACE.match(self._held)
        if rest is None:
            self._in_long_word = False
            return True
        if not self._long_word_is_address:
            self._buffer.add(rest[0])
        return self._consume(rest.end())

    def _speak_word(self, word: str) -> None:
        buffer = self._buffer
        spoken, amount = spoken_word(word, buffer.preceding, self._forms)
        if buffer.pending_amount and buffer.preceding.word in self._forms.magnitudes:
            buffer.complete_amount(spoken)
        elif amount is not None:
            buffer.add_amount(amount)
        elif spoken == "," and word in ("|", "•", "·"):
            buffer.add_attached(spoken)
        elif spoken != word and word[-1] == "." and word[:-1] in self._forms.units:
            buffer.add(spoken[:-1])
            buffer.pending_period = True
        else:
            if spoken[:1] in ".,;:!?" and spoken[:1] != word[:1]:
                buffer.omit()  # what the punctuation followed, such as an emoji
            buffer.add(spoken)

    def _speak(self, text: str) -> None:
        self._buffer.add(text)
        self._buffer.preceding.number = None
        self._buffer.preceding.words.append(text.lower())

    def _read_row(self, *, final: bool) -> bool:
        end = self._held.find("\n", 0, ROW_CHARS)
        if end < 0 and len(self._held) >= ROW_CHARS:
            self._end_table()
            self._buffer.at_line_start = False
            return self._consume(1)
        if end < 0 and not final:
            return False
        row, newline, _ = self._held.partition("\n")
        if self._table is None:
            self._table = MarkdownTable(self._spoken_cell, self._forms)
        self._speak_lines(self._table.add_row(row))
        return self._consume(len(row) + len(newline))

    def _end_table(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            self._speak_lines(table.finish())

    def _speak_lines(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._speak(sentence)
            self._buffer.add_space("\n")

    def _open_fence(self, *, final: bool) -> bool | None:
        if opening := FENCE_OPENING.match(self._held, 0, FENCE_LINE_CHARS):
            self._fence = CodeFence(opening, self._forms)
            return self._consume(opening.end())
        too_long = len(self._held) >= FENCE_LINE_CHARS
        if final or too_long or not FENCE_OPENING_SO_FAR.fullmatch(self._held):
            return None
        return False

    def _read_fence(self, fence: CodeFence, *, final: bool) -> bool:
        end = self._held.find("\n", 0, PIECE_CHARS) + 1
        if not end and len(self._held) < PIECE_CHARS and not final:
            return False
        end = end or min(len(self._held), PIECE_CHARS)
        line = self._held[:end]
        if fence.is_closed_by(line):
            self._fence = None
            newline = "\n" if line.endswith("\n") else ""
            return self._consume(end, self._finish_fence(fence) + newline)
        fence.add_line(line)
        if words := fence.take_words():
            self._fence = None
            self._buffer.at_line_start = True
            return self._consume(end, words)
        return self._consume(end)

    def _finish_fence(self, fence: CodeFence) -> str:
        """Speak of a block of code, or return the block's words, which are read on."""
        sentence, words = fence.finish()
        if sentence:
            self._speak(sentence)
        elif words:
            self._buffer.at_line_start = True
        return words.removesuffix("\n")
