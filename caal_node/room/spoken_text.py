"""Text on its way to speech: made speakable, and told sentence by sentence."""

from __future__ import annotations

import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from typing import Any, Final

from caal_node.core.prompt_files import read
from caal_node.tts_text import SpokenForms, TextNormalizer

_SPOKEN_FORMS: Final = SpokenForms.model_validate(tomllib.loads(read("speakable.toml")))

_SENTENCE_END: Final = re.compile(r"[.!?…]['\")\]]*\s+(?=[^\sa-z])|\n+")
"""A sentence is told once the next begins: `3.5` and `e.g.` at a chunk's end are not cut, nor is
what goes on in lower case, as after `e.g. `."""
_END_CHARS: Final = 64
"""No end of a sentence is longer; so much of what was searched is searched again."""
SENTENCE_CHARS: Final = 2000
"""Text without an end is told in parts of this size, at a space: two minutes of speech."""


async def speakable(text: AsyncIterable[str]) -> AsyncGenerator[str]:
    """`text` as it is to be said. A LiveKit text transform, for `tts_text_transforms`."""
    speaks = TextNormalizer(_SPOKEN_FORMS)
    async for piece in text:
        if said := speaks.feed(piece):
            yield said
    if said := speaks.finish():
        yield said


async def watched(
    text: AsyncIterable[Any], tell: Callable[[str], None], *, as_said: bool = False
) -> AsyncGenerator[Any]:
    """`text` unchanged and undelayed; `tell` gets each sentence, and at the end what is left.

    `as_said` tells what the text would be in speech, where it goes on to people as it is written.
    """
    sentences = _Sentences()
    speaks = TextNormalizer(_SPOKEN_FORMS) if as_said else None
    try:
        async for piece in text:
            yield piece
            said = str(piece) if speaks is None else speaks.feed(str(piece))
            for sentence in sentences.of(said):
                tell(sentence)
    finally:
        # A barge-in ends the stream early; what had been said until then still was.
        rest = "" if speaks is None else speaks.finish()
        for sentence in (*sentences.of(rest), sentences.held.strip()):
            if sentence:
                tell(sentence)


class _Sentences:
    """Cuts a stream into sentences."""

    def __init__(self) -> None:
        self.held = ""

    def of(self, piece: str) -> Iterator[str]:
        """Sentences that `piece` completes, without the white space around them."""
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
