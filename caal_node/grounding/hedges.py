"""Whether a reply says that it cannot know what is asked: "I have no real-time data"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from caal_node.language.judge import judge_of, without_quotes
from caal_node.policy.heard_words import stems

# From which of the texts that a reply was made of it comes, and whether it says so.
#
# A tool that answers from texts gives `{"answer_from": [{"source": "...", "text": "..."}]}`.

KEY: Final = "answer_from"
MIN_SHARED: Final = 2
"""Words that a reply and a text share before the one comes from the other."""
_SMALL: Final = stems(
    """a about after all an and any are as at be been before but by can could did do does for from
    had has have he her his how i if in into is it its just me more my no not of on or our out she
    should so some than that the their them then there these they this those to until up was we were
    what when where which who will with would yes you your according says said documents notes"""
)
REPLY_CHARS: Final = 1_000
"""Characters of a reply in which it is looked for that the texts do not tell."""
_DENIES: Final = re.compile(
    r"(?:\b(?:not|no|nothing|none|neither|nicht|nichts|kein\w{0,2})|n['’]t)\b.{0,25}\b(?:say|says|said"
    r"|mention\w{0,2}|information|found|find|specif\w+|listed|contains?|covered|stated?s?|erwähn\w+"
    r"|steht|stehen|sagt|sagen|genannt|gefunden|angegeben)\b",
    re.I,
)
_NUMBER: Final = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that a reply may come from."""

    source: str
    text: str


def source_texts(output: str) -> list[SourceText]:
    """Read the texts in a call's result; none where it has another form, or was cut."""
    try:
        rows: Any = json.loads(output)[KEY]
        pairs = [(row["source"], row["text"]) for row in cast("Iterable[Any]", rows)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [SourceText(str(source), str(text)) for source, text in pairs]


def unnamed_source(reply: str, texts: Sequence[SourceText]) -> str | None:
    """Return the source that a reply comes from and does not name.

    None: it names one, or says that the texts do not tell, or comes from none of them.
    """
    said = stems(reply) - _SMALL
    if (
        not said
        or _DENIES.search(reply[:REPLY_CHARS])
        or any(_names(reply, each.source) for each in texts)
    ):
        return None
    shared = [(_weight(said & stems(each.text)), -at) for at, each in enumerate(texts)]
    most, at = max(shared, default=(0, 0))
    return texts[-at].source if most >= MIN_SHARED else None


def _weight(words: frozenset[str]) -> int:
    """Count words; one with a digit is as good as two, as figures are rarely shared by chance."""
    return sum(2 if _NUMBER.search(word) else 1 for word in words)


def _names(reply: str, source: str) -> bool:
    """Say whether a reply has the title of a source: "Boiler manual, page 12" by its manual."""
    title = stems(source.partition(",")[0]) - _SMALL
    return bool(title) and title <= stems(reply)


HEDGES: Final = 0.52
"""Odds from which a reply hedges, out of what it is if it is not unsure altogether."""
UNSURE: Final = 0.6
"""The most that is taken off for being unsure: "I don't know the answer to that riddle"."""
NO_ANSWER: Final = 0.5
"""Odds from which a reply has no answer, for whatever reason."""
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
