"""The words of facts: how one is said back, which one is meant, which one a new one replaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from caal_node.policy.heard_words import stem
from caal_node.toolsets.memory.fact_page import KeptFact

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SMALL: Final = frozenset(
    """a about again all am an and any anything are as at be been by did do does everything fact
    for forget from had has have i i'm in is it its know known me mine my myself of on our
    remember remembered said tell that the their them they thing this to told us user users was
    we were what when where which who will with you your""".split()  # noqa: SIM905 - a list of words reads better as words
)
_SAID_BACK: Final[Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]] = (
    (re.compile(r"\b(?:the|this) (?:user|person|speaker)['’]s\b", re.I), "your"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) is\b", re.I), "you are"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) has\b", re.I), "you have"),
    (re.compile(r"\b(?:the|this) (?:user|person|speaker) was\b", re.I), "you were"),
    (
        re.compile(
            r"\b(?:the|this) (?:user|person|speaker) (likes|wants|needs|hates|loves)\b", re.I
        ),
        lambda found: f"you {found[1][:-1]}",
    ),
    (re.compile(r"\bI am\b|\bI['’]m\b", re.I), "you are"),
    (re.compile(r"\bI was\b", re.I), "you were"),
    (re.compile(r"\bI['’](ve|ll|d)\b", re.I), r"you'\1"),
    (re.compile(r"\bI\b"), "you"),
    (re.compile(r"\bmy\b", re.I), "your"),
    (re.compile(r"\bmine\b", re.I), "yours"),
    (re.compile(r"\bmyself\b", re.I), "yourself"),
    (re.compile(r"\bme\b", re.I), "you"),
)
_VALUES: Final = frozenset(
    """address age birthday code colour color combination date email job name nickname number
    password phone pin size username wifi""".split()  # noqa: SIM905 - as above
)
"""What a person has one of, so that a new one takes the old one's place."""
_SUBJECT: Final = re.compile(
    r"^(?P<subject>(?:my|your|our|[^\W\d_]+['’]s)\s++.{2,60}?)(?<!\s)\s++(?:is now|is|are)\s+\S",
    re.I,
)


def said_back(text: str) -> str:
    """Return a fact as it is told to the person who told it: "your locker code is 4711"."""
    for pattern, other in _SAID_BACK:
        text = pattern.sub(other, text)
    head, _, rest = text.partition(" ")
    # What begins a sentence is written small within one, unless it is a name.
    return f"{head.lower()} {rest}".strip() if head.lower() in _BEGINNINGS else text


_BEGINNINGS: Final = frozenset(
    """a an every he her his in it on our she the their there they we you you're
    your""".split()  # noqa: SIM905 - as above
)


def key_words(text: str) -> frozenset[str]:
    """Return the stems of the words by which a fact is found."""
    plain = (word.removesuffix("'s") for word in _words(text))
    return frozenset(stem(word) for word in plain if word not in _SMALL)


def meant(facts: Sequence[KeptFact], words: str) -> list[KeptFact]:
    """Return the facts that `words` fit best, in their order: all that share as many of them.

    No fact fits that has less than half of the words.
    """
    wanted = key_words(words)
    if not wanted:
        return []
    shared = [len(wanted & key_words(fact.text)) for fact in facts]
    best = max(shared, default=0)
    if 2 * best < len(wanted) or not best:
        return []
    return [fact for fact, count in zip(facts, shared, strict=True) if count == best]


def same(facts: Sequence[KeptFact], text: str) -> KeptFact | None:
    """Return the fact that says the same, if one does."""
    wanted = _words(said_back(text))
    return next((fact for fact in facts if _words(said_back(fact.text)) == wanted), None)


def outdated(facts: Sequence[KeptFact], text: str) -> KeptFact | None:
    """Return the fact whose value `text` says anew: "my locker code is 4712".

    Only what a person has one of is taken so; "my sister is tall" and "my sister is in Oslo" are
    two facts.
    """
    subject = _subject(text)
    if not subject:
        return None
    return next((fact for fact in facts if _subject(fact.text) == subject), None)


def _subject(text: str) -> tuple[str, ...]:
    found = _SUBJECT.match(said_back(text))
    said = tuple(_words(found["subject"])) if found else ()
    return (
        said
        if said and (said[-1] in _VALUES or said[1:2] in (("favourite",), ("favorite",)))
        else ()
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.replace("’", "'").casefold())
