"""The words of a question that say what it is about.

They are searched for as they were said: the index makes its own stems of them, and of the texts.
"""

from __future__ import annotations

import re
from typing import Final

MAX_WORDS: Final = 24
"""Words of a question that are searched for, the first ones."""
MAX_CHARS: Final = 1_000
_WORD: Final = re.compile(r"[^\W_]+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?:s|d|re|ll|ve|m|t)\b", re.IGNORECASE)
_SMALL_WORDS: Final = frozenset(
    """a about according all also am an and any are as at be been being but by can could did do does
    documents document file files find for from get give had has have he her here him his how i if
    in into is it its just know let like look lookup manual many may me mean mention mentions might
    much must my need note notes of on or our out paper papers please read say says search she
    should show so some something tell than that the their them then there these they thing things
    this those to told up us use used using want was we were what whats when where which who whose
    why will with would write written wrote you your""".split()  # noqa: SIM905 - a list of words reads better as words
)


def question_words(question: str) -> list[str]:
    """Return the words that matter, each once, in their order and in lower case.

    A question of nothing but small words ("what is in my notes?") has none.
    """
    text = _APOSTROPHE.sub("", question[:MAX_CHARS]).casefold()
    found = (word for word in _WORD.findall(text) if word not in _SMALL_WORDS)
    return [word for word in dict.fromkeys(found) if len(word) > 1 or word.isdigit()][:MAX_WORDS]
