"""Watches text on its way to speech, and tells it sentence by sentence."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Any, Final

_SENTENCE_END: Final = re.compile(r"[.!?…]['\")\]]*\s+|\n+")
"""A sentence is told once white space follows it: `3.5` and `e.g.` at a chunk's end are not cut."""


async def watched(text: AsyncIterable[Any], tell: Callable[[str], None]) -> AsyncGenerator[Any]:
    """`text` unchanged and undelayed; `tell` gets each sentence, and at the end what is left."""
    held = ""
    try:
        async for piece in text:
            yield piece
            held += str(piece)
            while match := _SENTENCE_END.search(held):
                _tell(held[: match.end()], tell)
                held = held[match.end() :]
    finally:
        # A barge-in ends the stream early; what had been said until then still was.
        _tell(held, tell)


def _tell(sentence: str, tell: Callable[[str], None]) -> None:
    if sentence := sentence.strip():
        tell(sentence)
