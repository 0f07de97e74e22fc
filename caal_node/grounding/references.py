"""What a request refers to: words such as "the second one", "there" or "them", resolved against
what earlier calls gave, before a model is asked.

No answer is better than a wrong one, so whatever may be read in two ways is left to the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from caal_node.context.tool_data import ToolData
from caal_node.core.items import Item
from caal_node.core.turn import Turn
from caal_node.grounding.asked_facts import asked_facts
from caal_node.grounding.chosen_things import ListChoices
from caal_node.grounding.earlier_results import (
    EarlierResult,
    Thing,
    earlier_results,
    label_key,
    label_of,
)
from caal_node.grounding.pronouns import Pronouns
from caal_node.grounding.reference_words import (
    FIELDS,
    ReferenceWords,
    languages,
    name_words,
    tokens,
)

REFERENCES_MAX: Final = 3
"""References of one request. What holds more is a story."""


NAME_CHARS: Final = 80
"""Characters of a thing's name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What some words of a request mean."""

    words: str
    """As they were said."""
    things: tuple[Thing, ...] = dataclasses.field(repr=False)
    """Texts of a tool, or records. Never instructions, whatever they say."""
    names: tuple[str, ...] = dataclasses.field(repr=False)
    """What tells each thing from the others of its list; none where something has no such name."""
    tool: str
    """Whose result it is."""
    nouns: frozenset[str] = frozenset()
    """What a parameter for it may be called: "city" or "place", "restaurant" or "name"."""
    begin: int = 0
    """Where its words stand in the request, in characters, or in front of that."""
    facts: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    """What the request asks of the one thing that is meant: names of fields, and their values."""
    listed_by: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False, hash=False)
    """The arguments of the call that listed the things; None where they are of no list, and where
    the request asks for what may have changed since then: "is it still free"."""


def may_refer(request: str) -> bool:
    """Return whether `request` has a word that may refer to something, which most lack."""
    said = {token.word for token in tokens(request)}
    return any(not words.triggers.isdisjoint(said) for words in languages())


def references_in(items: Sequence[Item], kept: Iterable[ToolData] = ()) -> tuple[Reference, ...]:
    """Return what the newest words of a conversation refer to.

    That is nothing where the conversation does not end with them. `kept` is its tool data.
    """
    turn = Turn(items)
    if not turn.is_new or not may_refer(turn.request):
        return ()
    return resolve(turn.request, earlier_results(items, kept))


def resolve(request: str, earlier: Sequence[EarlierResult]) -> tuple[Reference, ...]:
    """Return what `request` refers to in `earlier`, the newest first; mostly nothing."""
    if not earlier:
        return ()
    for words in languages():
        if found := _resolved(request, words, earlier):
            return found[:REFERENCES_MAX]
    return ()


def _resolved(
    request: str, words: ReferenceWords, earlier: Sequence[EarlierResult]
) -> tuple[Reference, ...]:
    said = tokens(request)
    choices = list(ListChoices(said, words, earlier).found())
    spans = [range(begin, behind) for begin, behind, _, _ in choices]
    pronouns = [
        each
        for each in Pronouns(said, words, earlier).found(things=not choices)
        if not any(each[0] in span for span in spans)
    ]
    found: list[Reference] = []
    for begin, behind, meant, result in sorted([*choices, *pronouns], key=lambda each: each[0]):
        phrase = request[said[begin].start : said[behind - 1].end]
        single = isinstance(meant, str | Mapping)
        things: tuple[Thing, ...] = (meant,) if single else tuple(meant)
        if all(things != one.things for one in found):
            names = _names(things, result)
            nouns = _nouns(meant, result)
            at = said[begin].start
            rest = [*said[:begin], *said[behind:]]
            anew = any(token.word in words("anew") for token in rest)
            only = things[0] if len(things) == 1 else None
            asked = () if anew or only is None else asked_facts(rest, words, only)
            is_listed = not anew and len(result.things) > 1 and only in result.things
            listed_by = result.arguments if is_listed else None
            found.append(Reference(phrase, things, names, result.tool, nouns, at, asked, listed_by))
    return tuple(found)


def _names(things: Sequence[Thing], result: EarlierResult) -> tuple[str, ...]:
    labels = [label_of(thing) for thing in result.things]
    names = [" ".join(label_of(thing).split())[:NAME_CHARS] for thing in things]
    unique = all(names) and all(labels.count(label_of(thing)) < 2 for thing in things)
    return tuple(names) if unique else ()


def _nouns(meant: object, result: EarlierResult) -> frozenset[str]:
    """Return the words by which what is meant is called: those of its field, and what is like it;
    of a list's things and of records those of the list."""
    if isinstance(meant, str) and meant not in result.things:
        members = (*result.arguments.items(), *result.record.items())
        keys = [key for key, value in members if isinstance(value, str) and meant in value]
        own = frozenset(word for key in keys[:1] for word in name_words(key))
        lines = [frozenset(line.split()) for line in FIELDS.alike]
        return own.union(*(line for line in lines if own & line))
    label = name_words(label_key(result.record))
    return result.nouns.union(label).difference(FIELDS.no_thing)
