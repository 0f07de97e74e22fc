"""Whether a reply says that it cannot know what is asked: "I have no real-time data"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from caal_node.language.judge import judge_of
from caal_node.language.quotes import without_quotes

HEDGES: Final = 0.52
"""Odds from which a reply hedges, out of what it is if it is not unsure altogether."""
UNSURE: Final = 0.6
"""The most that is taken off for being unsure: "I don't know the answer to that riddle"."""
NO_ANSWER: Final = 0.5
"""Odds from which a reply has no answer, for whatever reason."""
REPLY_CHARS: Final = 1_000
"""Characters of a reply that are read. A hedge comes early; behind half a page it is a remark."""
_ANSWERS: Final = judge_of("answer")
"""It is read with the module: no turn may wait for a file."""


def hedges(reply: str) -> bool:
    """Say whether a reply denies access to what is current, or to the internet."""
    odds = _odds(reply)
    return odds["hedges"] >= _least(odds)


def denies_access(reply: str) -> bool:
    """Say whether a reply denies access to anything, the person's own things among them."""
    odds = _odds(reply)
    return odds["hedges"] + odds["no_access"] >= _least(odds)


def knows_nothing(reply: str) -> bool:
    """Say whether a reply has no answer: it guesses or denies, or nothing was found or told."""
    return 1 - _odds(reply)["answers"] >= NO_ANSWER


def _least(odds: Mapping[str, float]) -> float:
    return HEDGES * (1 - min(odds["unsure"], UNSURE))


def _odds(reply: str) -> Mapping[str, float]:
    return _ANSWERS.odds(without_quotes(reply[:REPLY_CHARS]))
