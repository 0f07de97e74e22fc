"""A text as numbers that a linear model reads: its words and letters, one to five in a row, hashed.

The numbers are made alike where a model is trained and where it is used, so a change here makes
every weights file wrong: `tests/unit/test_language.py` says so.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

BUCKETS: Final = 1 << 15
"""Numbers there are. Two n-grams that share one are told apart by the others around them."""
READ_CHARS: Final = 400
"""Characters of a text that are read: half a minute of speech."""
WORDS: Final = range(1, 4)
LETTERS: Final = range(2, 6)
"""How many words or letters stand in one n-gram."""
_TOKEN: Final = re.compile(r"[^\W\d]+(?:'[^\W\d]+)*|\d+|[?!.,;:…\"“”„«»]")
_ALIKE: Final = str.maketrans({"’": "'", "‘": "'", "`": "'", "ß": "ss"})
_KNOWN_WORDS: Final = 4_096


def ngrams(text: str) -> NDArray[np.int64]:
    """Return the numbers of a text's n-grams, each once and in order; a text of nothing has one.

    Capitals count for nothing, as a speech recogniser may write none, and neither do figures.
    """
    plain = text[:READ_CHARS].translate(_ALIKE).lower()
    words = ["^", *("0" if token[0].isdigit() else token for token in _TOKEN.findall(plain)), "$"]
    found = {
        _number(" ".join(words[at : at + length]))
        for length in WORDS
        for at in range(len(words) - length + 1)
    }
    for word in words:
        found.update(_letters(word))
    return np.fromiter(sorted(found), dtype=np.int64, count=len(found))


@lru_cache(_KNOWN_WORDS)
def _letters(word: str) -> tuple[int, ...]:
    """Return the numbers of the letters of a word, whose begin and end count as one each."""
    padded = f"<{word}>"
    return tuple(
        _number(f"#{padded[at : at + length]}")
        for length in LETTERS
        for at in range(len(padded) - length + 1)
    )


def _number(ngram: str) -> int:
    return crc32(ngram.encode()) % BUCKETS
