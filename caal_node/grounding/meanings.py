"""What a request's words mean for certain, written where a small model needs it.

That is behind the words themselves, and in a call's arguments: a reference that a model hands on as
it is ("second one") becomes what it means, and the one time of day that the words tell takes the
place of another. Any other argument is the model's own reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from caal_node.grounding.earlier_results import languages, name_words, singular
from caal_node.grounding.quantities import stated_in
from caal_node.grounding.references import Reference
from caal_node.grounding.spoken_times import HALF_DAY, Time
from caal_node.policy.heard_words import words

# The time of day: "Book a table for tonight at seven" becomes `{"time": "20:00"}`.

REQUEST_CHARS: Final = 400
"""Characters of a request that are read: half a minute of speech, and a few milliseconds."""
ARGUMENTS_MAX: Final = 32
"""Arguments of one call that are looked at."""
_WRITTEN: Final = re.compile(r"\s*(\d{1,2}):(\d\d)\s*")
_FROM_ANOTHER: Final = frozenset(
    {"before", "after", "earlier", "later", "sooner", "until", "till", "from", "between"}
    | {"around", "about"}
)
"""With one of these words another time than the one that is said may be meant."""


def at_said_time(arguments: Mapping[str, Any], request: str) -> Mapping[str, Any]:
    """Return `arguments` with the one time of the person's `request` in place of another one.

    It stays as it is where two arguments are times, or where the words may mean a time that they
    do not tell: "an hour before the concert at eight".
    """
    times = {
        name: (int(found[1]) * 60 + int(found[2]), len(found[1]))
        for name in islice(arguments, ARGUMENTS_MAX)
        if isinstance(value := arguments[name], str) and (found := _WRITTEN.fullmatch(value))
    }
    if len(times) != 1:
        return arguments
    ((name, (minute, width)),) = times.items()
    said = _only_time(request[:REQUEST_CHARS])
    given = Time(0, 0, minute, half_known=True)
    if said is None or said.is_same(given):
        return arguments
    meant = said.minute
    if not said.half_known and (minute >= HALF_DAY) != (meant >= HALF_DAY):
        meant = (meant + HALF_DAY) % (2 * HALF_DAY)
    hour = str(meant // 60).rjust(width, "0")
    return {**arguments, name: f"{hour}:{meant % 60:02d}"}


def _only_time(request: str) -> Time | None:
    """Return the time that a request tells; None where there are none, several, or a length."""
    stated = stated_in(request)
    # "For four of us" may be a time as well, but "half past seven" is one.
    told = [time for time in stated.times if time.is_sure] or list(stated.times)
    has_length = any(each.unit and each.unit.dimension == "duration" for each in stated.figures)
    others = _FROM_ANOTHER.intersection(words(request))
    if len(told) != 1 or told[0].zoned or has_length or others:
        return None
    return told[0]


VALUE_CHARS: Final = 60
"""Characters of an argument that can be a reference: "the most expensive one of them"."""
_LIST_MAX: Final = 12
"""Texts of an argument that is a list, of which any may be a reference."""


def meant_arguments(
    arguments: Mapping[str, Any], references: Sequence[Reference]
) -> Mapping[str, Any]:
    """Return `arguments` with the names of what was meant in place of references."""
    if not references:
        return arguments
    return {key: _meant(key, value, references) for key, value in arguments.items()}


def meant_for(name: str, schema: Mapping[str, Any], references: Sequence[Reference]) -> str | None:
    """Return what a parameter that nobody has said can only be; None where that is open.

    That is what the one reference of the request means, for a free text whose name fits it.
    """
    is_text = schema.get("type") == "string" and "enum" not in schema
    if len(references) != 1 or len(references[0].names) != 1 or not is_text:
        return None
    fits = not references[0].nouns.isdisjoint(map(singular, name_words(name)))
    return references[0].names[0] if fits else None


def _meant(name: str, value: Any, references: Sequence[Reference]) -> Any:
    if isinstance(value, list):
        values = cast("list[Any]", value)
        return (
            [_meant(name, one, references) for one in values]
            if len(values) <= _LIST_MAX
            else values
        )
    if not isinstance(value, str) or len(value) > VALUE_CHARS:
        return cast("Any", value)
    for reference in references:
        if len(reference.names) == 1 and _repeats(name, value, reference):
            return reference.names[0]
    return value


def _repeats(name: str, value: str, reference: Reference) -> bool:
    """Whether `value` says no more than the reference does.

    "Italian" is the Italian one where a parameter is called as the thing is; as a `cuisine` it may
    be meant as it is. "Second" points at something wherever it stands.
    """
    said = {singular(word) for word in name_words(value)}
    nouns = {singular(word) for word in name_words(reference.tool)}
    words = {singular(word) for word in name_words(reference.words)}
    pointing = {word for each in languages() for word in each.triggers}
    is_called = not reference.nouns.isdisjoint(map(singular, name_words(name)))
    points = bool(said & words & pointing) or (is_called and bool(said & words))
    return points and said <= words | nouns


# A request with what it refers to in brackets: "book the second one (Il Forno)", and with what it
# asks of that: "what does the second one (Il Forno, price_eur: 29) cost".
#
# Small models take a name that stands where they need it, and pass over a line that explains it:
# tests/bench/references.py compares them. The names are a tool's words, so each is short, on one
# line, and cannot close its bracket.

NAMES_MAX: Final = 12
"""Names that one reference is told by. A longer list is read in the result itself."""
_BRACKETS: Final = re.compile(r"[()\[\]{}<>\"\\]+")


def hinted(request: str, references: Sequence[Reference]) -> str:
    """Return `request` with the names of what is meant behind each reference."""
    said, at = "", 0
    for reference in references:
        begin = request.find(reference.words, max(at, reference.begin))
        names = [_plain(name) for name in reference.names]
        if begin < 0 or not 0 < len(names) <= NAMES_MAX or not all(names):
            continue
        behind = begin + len(reference.words)
        facts = (f"{_plain(key)}: {_plain(value)}" for key, value in reference.facts)
        said += f"{request[at:behind]} ({', '.join((*names, *facts))})"
        at = behind
    return said + request[at:]


def answer_in(references: Sequence[Reference]) -> str:
    """Return what a question asks for, "Il Forno, price_eur: 29"; "" where it is open."""
    return "; ".join(
        ", ".join([*map(_plain, each.names), *(f"{_plain(k)}: {_plain(v)}" for k, v in each.facts)])
        for each in references
        if each.facts
    )


def _plain(text: str) -> str:
    return _BRACKETS.sub(" ", text).strip()
