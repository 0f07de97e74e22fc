"""Whether a reply says that it cannot know what is asked: "I have no real-time data"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from caal_node.language.judge import judge_of
from caal_node.language.quotes import without_quotes

HEDGES: Final = 0.5
"""Odds from which a reply hedges."""
REPLY_CHARS: Final = 1_000
"""Characters of a reply that are read. A hedge comes early; behind half a page it is a remark."""
_ANSWERS: Final = judge_of("answer")
"""It is read with the module: no turn may wait for a file."""


def hedges(reply: str) -> bool:
    """Say whether a reply denies access to what is current, or to the internet."""
    return _odds(reply)["hedges"] >= HEDGES


def denies_access(reply: str) -> bool:
    """Say whether a reply denies access to anything, the person's own things among them."""
    odds = _odds(reply)
    return odds["hedges"] + odds["no_access"] >= HEDGES


def _odds(reply: str) -> Mapping[str, float]:
    return _ANSWERS.odds(without_quotes(reply[:REPLY_CHARS]))
