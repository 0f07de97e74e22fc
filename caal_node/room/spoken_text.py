"""Makes text speakable on its way to speech, and reports it sentence by sentence."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from typing import Any, Final, TypeAlias

from livekit.agents.voice.transcription.filters import filter_markdown

from caal_node.core.prompt_files import read
from caal_node.redaction.secret_shapes import StreamRedaction
from caal_node.tts_text import SpokenForms, TextNormalizer

Redact: TypeAlias = Callable[[str], str]
"""It returns a text without what nobody may be shown."""

_SPOKEN_FORMS: Final = SpokenForms.model_validate(tomllib.loads(read("speakable.toml")))

_SENTENCE_END: Final = re.compile(r"[.!?…]['\")\]]*\s+(?=[^\sa-z])|\n+")
"""A sentence ends where the next begins, so that `3.5` and `e.g.` at a chunk's end are not cut. No
sentence begins in lower case, as the text after `e.g. ` may."""
_END_CHARS: Final = 64
"""The most characters of a sentence's end, so that many searched ones are searched again."""
SENTENCE_CHARS: Final = 2000
"""Text without an end is reported in parts of this size, cut at a space: two minutes of speech."""

SLICE_CHARS: Final = 512
"""Characters that are read at once: 5 ms for the worst of texts. A whole reply comes in one."""
LINE_CHARS: Final = 400
"""Characters of a line in which a mark still finds its partner."""


async def speakable(text: AsyncIterable[str]) -> AsyncGenerator[str]:
    """Make `text` speakable. It is a LiveKit text transform, for `tts_text_transforms`."""
    normalizer = TextNormalizer(_SPOKEN_FORMS)
    async for piece in _sliced(text):
        if spoken := normalizer.feed(piece):
            yield spoken
    if spoken := normalizer.finish():
        yield spoken


async def watched(
    text: AsyncIterable[Any],
    on_sentence: Callable[[str], None],
    *,
    as_spoken: bool = False,
    redact: Redact = str,
) -> AsyncGenerator[Any]:
    """Pass `text` on as it comes; `on_sentence` gets each sentence, and at the end what is left.

    With `as_spoken` the sentences are what speech would say of a text that people only read. They
    are made of redacted text, as a secret may be several sentences long; what is passed on is not.
    """
    splitter, redaction = _SentenceSplitter(), StreamRedaction(redact)
    normalizer = TextNormalizer(_SPOKEN_FORMS) if as_spoken else None
    try:
        async for piece in _sliced(text):
            yield piece
            spoken = redaction.feed(str(piece))
            spoken = spoken if normalizer is None else normalizer.feed(spoken)
            for sentence in splitter.feed(spoken):
                on_sentence(sentence)
    finally:
        # An interruption ends the stream early, and the words up to it were said.
        rest = redaction.finish()
        rest = rest if normalizer is None else normalizer.feed(rest) + normalizer.finish()
        for sentence in (*splitter.feed(rest), splitter.held.strip()):
            if sentence:
                on_sentence(sentence)


async def redacted(text: AsyncIterable[Any], redact: Redact) -> AsyncGenerator[Any]:
    """Pass `text` on without what `redact` takes out; the last word waits until it has ended.

    Text with LiveKit's times of its words keeps them where nothing is taken out.
    """
    redaction = StreamRedaction(redact)
    async for piece in _sliced(text):
        if type(piece) is str:
            if shown := redaction.feed(piece):
                yield shown
            continue
        if rest := redaction.finish():
            yield rest
        shown = redact(piece) if isinstance(piece, str) else piece
        yield piece if shown == piece else shown
    if rest := redaction.finish():
        yield rest


async def without_markdown(text: AsyncIterable[str]) -> AsyncGenerator[str]:
    """Remove Markdown's marks from what people read.

    LiveKit's filter reads a line from its beginning again with each piece, for as long as a mark in
    it has no partner, and some lines take it the square of their length. So it begins anew with
    each line, and within a long one.
    """
    pieces = _sliced(text)
    over = False

    async def line() -> AsyncGenerator[str]:
        nonlocal over
        chars = 0
        async for piece in pieces:
            chars += len(piece)
            yield piece
            if "\n" in piece or chars >= LINE_CHARS:
                return
        over = True

    while not over:
        async for shown in filter_markdown(line()):
            yield shown


async def _sliced(text: AsyncIterable[Any]) -> AsyncGenerator[Any]:
    """Pass `text` on in short pieces, and let the event loop do other things between them."""
    async for piece in text:
        if not isinstance(piece, str) or len(piece) <= SLICE_CHARS:
            yield piece
            continue
        for start in range(0, len(piece), SLICE_CHARS):
            yield piece[start : start + SLICE_CHARS]
            await asyncio.sleep(0)


class _SentenceSplitter:
    """Splits a stream into sentences."""

    def __init__(self) -> None:
        self.held = ""

    def feed(self, piece: str) -> Iterator[str]:
        """Yield the sentences that `piece` completes, without the white space around them."""
        searched = max(0, len(self.held) - _END_CHARS)
        self.held += piece
        while (end := self._end(searched)) is not None:
            sentence, self.held, searched = self.held[:end], self.held[end:], 0
            if sentence := sentence.strip():
                yield sentence

    def _end(self, start: int) -> int | None:
        if match := _SENTENCE_END.search(self.held, start):
            return match.end()
        if len(self.held) <= SENTENCE_CHARS:
            return None
        space = self.held.rfind(" ", 0, SENTENCE_CHARS)
        return space + 1 if space > 0 else SENTENCE_CHARS
