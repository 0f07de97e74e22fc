"""The part of a description that a model needs."""

from __future__ import annotations

import re
from typing import Final

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")
_ABBREVIATION: Final = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no)|\.\.)\.\Z", re.I)
_ABBREVIATION_CHARS: Final = 8


def first_sentences(text: object, max_chars: int) -> str:
    """As many whole sentences as fit, on one line; of a first one that is too long, its words."""
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    end = 0
    for match in _SENTENCE_END.finditer(line):
        if match.start() > max_chars:
            break
        before = line[max(0, match.start() - _ABBREVIATION_CHARS) : match.start()]
        if not _ABBREVIATION.search(before):
            end = match.start()
    if end:
        return line[:end]
    cut = line[: max_chars - 1]
    return f"{cut.rsplit(' ', 1)[0].rstrip(' ,;:')}…"
