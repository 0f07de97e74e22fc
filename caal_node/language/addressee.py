"""Whom words are for: the agent, or somebody else in the room, on the phone or on television."""

from __future__ import annotations

from math import log
from typing import Final

from caal_node.language.judge import judge_of

OVERHEARD: Final = 2.0
"""The score from which words are left alone where nothing else says whom they are for.
docs/turn-taking.md has what it costs and gains."""
OVERHEARD_IN_TALK: Final = 2.5
"""The same right behind the agent's own words, where what is said is likely for it."""
_LEAST: Final = 1e-6
_FOR_NOBODY: Final = ("chat", "aside")
"""Labels of requests that an agent need not answer."""
_LEAST_WISH: Final = 1e-4
_LONG_WORDS: Final = 10
_LONGEST_WORDS: Final = 25
_EACH_WORD: Final = 0.2
"""What each word between these two counts: few requests have so many, and talk goes on."""
_ADDRESSEES: Final = judge_of("addressee")
_REQUESTS: Final = judge_of("request")
"""They are read with the module: no turn may wait for a file."""


def overheard(words: str) -> float:
    """Return how much speaks for it that `words` are for somebody else: the log odds that they are
    for others, and that they are nothing that an agent is told or asked, and their length."""
    whom, what = _ADDRESSEES.odds(words), _REQUESTS.odds(words)
    wish = sum(odds for label, odds in what.items() if label not in _FOR_NOBODY)
    more = min(len(words.split(None, _LONGEST_WORDS)), _LONGEST_WORDS) - _LONG_WORDS
    return (
        log(whom["others"] + _LEAST)
        - log(whom["agent"] + _LEAST)
        - log(wish + _LEAST_WISH)
        + _EACH_WORD * max(0, more)
    )
