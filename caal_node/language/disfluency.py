"""What somebody means who corrects or takes back their own words in one breath.

"Turn on the lights in the kitchen. No wait, the bedroom." A small model does the first, or both. A
judge of second thoughts says which words correct, and which take back; what is replaced begins
where the correction does: with the same word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from caal_node.language.judge import READ_CHARS, judge_of
from caal_node.language.requests import intent_of, request_odds

TAKES_BACK: Final = 0.6
"""Odds from which the last sentence takes back those before it."""
EDITS: Final = 0.6
"""Odds from which a few words between two pauses say that what comes next is meant instead."""
EDIT_WORDS: Final = 4
WHOLE_WORDS: Final = 3
"""Words from which a correction can be a request of its own."""
WHOLE: Final = 0.9
FEW_WORDS: Final = 2
"""Words up to which a correction that shares none is of the last word: "Rome. No, Milan."."""
_ENDS: Final = " .,;!?…"
_SENTENCE_END: Final = re.compile(r"(?<=[.?!…])\s+")
_PAUSE: Final = re.compile(r"(?<=[.?!…,;])\s+")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_THOUGHTS: Final = judge_of("second_thought")
"""It is read with the module: no turn may wait for a file."""


@lru_cache(64)
def as_meant(words: str) -> str:
    """Return what is meant by spoken words: without what they correct themselves.

    What is taken back is left out, and "never mind" stays. Other words come back as they are.
    """
    if len(words) > READ_CHARS:
        return words
    if is_taken_back(words):
        return _SENTENCE_END.split(words.strip())[-1]
    return _corrected(words)


def is_taken_back(words: str) -> bool:
    """Say whether a request and its taking back were said in one breath."""
    *before, last = _SENTENCE_END.split(words.strip()[:READ_CHARS])
    return (
        bool(before)
        and _THOUGHTS.odds(last)["back"] >= TAKES_BACK
        and intent_of(" ".join(before)) != "none"
    )


def _corrected(words: str) -> str:
    pieces = _PAUSE.split(words.strip())
    for at in range(1, len(pieces) - 1):
        behind = at
        while behind < len(pieces) - 1 and _edits(pieces[behind]):
            behind += 1
        if behind > at:
            former, repair = " ".join(pieces[:at]), " ".join(pieces[behind:])
            return _replaced(former, repair.rstrip(_ENDS)) or words
    return words


def _edits(piece: str) -> bool:
    return len(_WORD.findall(piece)) <= EDIT_WORDS and _THOUGHTS.odds(piece)["edit"] >= EDITS


def _replaced(former: str, repair: str) -> str:
    """Return the former words with the repair in place of what it repairs; "" where nothing says
    what that is."""
    said, new = list(_WORD.finditer(former)), _WORD.findall(repair)
    if not said or not new:
        return ""
    at = _last(said, new[0])
    if at is not None:
        ends = [n for n in range(at + 1, len(said)) if _is(said[n], new[-1])]
        until = ends[0] if ends else len(said) - 1
        repair = said[at].group() + repair[len(new[0]) :]
    elif len(new) >= WHOLE_WORDS and request_odds(repair)["command"] >= WHOLE:
        return f"{repair}."
    elif (end := _last(said, new[-1])) is not None:
        at, until = max(0, end - len(new) + 1), end
    elif len(new) <= FEW_WORDS:
        at = until = len(said) - 1
    else:
        return ""
    rest = former[said[until].end() :].rstrip(_ENDS)
    return f"{former[: said[at].start()]}{repair}{rest}."


def _last(said: Sequence[re.Match[str]], word: str) -> int | None:
    return next((n for n in reversed(range(len(said))) if _is(said[n], word)), None)


def _is(found: re.Match[str], word: str) -> bool:
    return found.group().casefold() == word.casefold()
