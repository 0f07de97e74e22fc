"""What a person's words are for: something done, something told, or neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, TypeAlias

from caal_node.language.judge import READ_CHARS, judge_of

Intent: TypeAlias = Literal["act", "tell", "none"]
"""Whether a request wants something done, wants something told, or neither."""
PlainAnswer: TypeAlias = Literal["knowledge", "talk", "statement", ""]
"""Why a plain answer to a request is likely: it asks what a model knows, it is small talk, or it is
less surely small talk, as much that people say of themselves is a wish. Empty: nothing says so."""
KNOWLEDGE: Final = 0.6
TALK: Final = 0.85
STATEMENT: Final = 0.7
"""Odds from which a plain answer is likely, each for its reason (docs/small-models.md has what
they cost and gain)."""
TAKES_BACK: Final = 0.6
"""Odds from which words only take back what was asked for: "never mind", "forget it"."""
THANKS: Final = 0.25
"""Odds of small talk from which "that's all for now" is some as well; "stop" may be for a tool."""
ASIDE: Final = 0.3
"""What the odds count that somebody else is spoken to: hardly any turn begins with that, and many
an order sounds like it ("sorry, can you turn off the lamp")."""
ONLY_ASKS: Final = 0.85
AND_WANTS: Final = 0.05
"""Odds from which a request only asks, and odds up to which it wants nothing done beside. No call
that is right is lost by these: `python -m tests.bench.call_grounds`."""
_INTENTS: Final[Mapping[Intent, Sequence[str]]] = {
    "act": ("command", "yes", "correction", "cancel"),
    "tell": ("lookup", "talk", "knowledge"),
    "none": ("chat", "aside", "no"),
}
PART_WANTS: Final = 0.3
"""Odds from which a part of a request wants something done."""
PARTS_MAX: Final = 12
_JOINT: Final = re.compile(
    r"[,;.?!:]\s|\b(?:and|or|then|also|but|if|so|und|oder|dann|auch|aber|wenn|falls|sonst)\b", re.I
)
_REQUESTS: Final = judge_of("request")
"""It is read with the module: no turn may wait for a file."""


@lru_cache(64)
def request_odds(words: str) -> Mapping[str, float]:
    """Return how likely each label of a request is; together they are 1."""
    odds = _REQUESTS.odds(words)
    odds = {**odds, "aside": odds["aside"] * ASIDE}
    return {label: part / sum(odds.values()) for label, part in odds.items()}


def intent_of(words: str) -> Intent:
    """Return what a person's words most likely are for."""
    odds = request_odds(words)
    return max(_INTENTS, key=lambda intent: share(odds, _INTENTS[intent]))


def plain_answer(words: str) -> PlainAnswer:
    """Return why a plain answer to a request is likely."""
    odds = request_odds(words)
    if odds["knowledge"] >= KNOWLEDGE:
        return "knowledge"
    ends = ("cancel", "no") if odds["chat"] >= THANKS else ()
    idle = share(odds, ("chat", "talk", "aside", *ends))
    if idle >= TALK and odds["talk"] < 0.5:  # a question about an answer may be for a tool
        return "talk"
    return "statement" if idle >= STATEMENT else ""


def takes_back(words: str) -> bool:
    """Say whether a turn only takes back what was asked for before it."""
    return request_odds(words)["cancel"] >= TAKES_BACK


def surely_only_asks(words: str) -> bool:
    """Say whether a person's words surely ask what is so, and want nothing changed."""
    odds = request_odds(words)
    if len(words) > READ_CHARS or share(odds, ("lookup", "knowledge")) < ONLY_ASKS:
        return False  # nobody knows what stands behind what is read
    acts = [share(request_odds(part), _INTENTS["act"]) for part in _parts(words)]
    return share(odds, _INTENTS["act"]) <= AND_WANTS and max(acts, default=0.0) < PART_WANTS


def is_one_order(words: str) -> bool:
    """Say whether a person's words are an order for one thing, with nothing beside it."""
    joints = _JOINT.findall(words[:READ_CHARS])
    is_joined = any(each[:1].isalpha() for each in joints)
    return (
        len(words) <= READ_CHARS
        and not is_joined
        and len(_parts(words)) <= 1
        and intent_of(words) == "act"
    )


def _parts(words: str) -> list[str]:
    """Return what stands before the first joint of a request, and what stands behind each: "is it
    raining? if so close the window"."""
    found = list(islice(_JOINT.finditer(words), PARTS_MAX))
    parts = [words[: each.start()] for each in found[:1]] + [words[each.end() :] for each in found]
    return [part for part in parts if len(part.split()) > 1]


def share(odds: Mapping[str, float], labels: Iterable[str]) -> float:
    """Return how likely it is that one of `labels` fits."""
    return sum(odds[label] for label in labels)
