"""From names and sentences to the terms they are compared by.

`getForecast`, `get_forecasts` and "the forecasts" share the term `forecast`: names are taken apart
at marks and at capitals, words that say nothing are left out, the rest is cut to its stem
(Porter's algorithm, https://snowballstem.org/algorithms/porter/stemmer.html; what is not
English loses an ending by chance at most, the same on both sides).
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# snowballstemmer has no types.

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Final

from snowballstemmer.porter_stemmer import PorterStemmer

MAX_TEXT_CHARS: Final = 8_192
"""Of one text; longer descriptions say the same again."""
_STEMS_KEPT: Final = 65_536
"""Different words of some 20,000 tools; a stem takes 30 µs to find and 0.1 µs to look up."""
_RUN: Final = re.compile(r"[^\W_]+")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_TAIL: Final = re.compile(r"['’](?:s|d|re|ll|ve|m|t)\b", re.I)
"""What is left of a word after its apostrophe."""
_EMPTY: Final = frozenset(
    """a about an and any are as at be been between by can could did do does for from give had has
    have he her here his how i if in into is it its just let like me my need no not of on or our
    please she should so some tell than that the their them then there these they this those to
    us use used using want was we were what when where which who will with would you your
    """.split()  # noqa: SIM905 - one long list of words reads better as words
)
_stemmers: Final = threading.local()
"""A stemmer keeps the word it works on in itself, and indexes are built in threads."""


def terms(text: str) -> list[str]:
    """The terms of a text in their order, with repetitions."""
    found: list[str] = []
    for run in _RUN.findall(_TAIL.sub(" ", text[:MAX_TEXT_CHARS])):
        parts = _PART.findall(run) if run.isascii() else [run]
        found += [_stem(word) for part in parts if (word := part.lower()) not in _EMPTY]
    return found


@lru_cache(maxsize=_STEMS_KEPT)
def _stem(word: str) -> str:
    stemmer: PorterStemmer | None = getattr(_stemmers, "porter", None)
    if stemmer is None:
        stemmer = _stemmers.porter = PorterStemmer()
    return stemmer.stemWord(word)
