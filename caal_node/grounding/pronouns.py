"""What a pronoun means: the last place ("there"), day, person, team, thing ("it") or list ("them").

Each is looked for in the newest result that has one, in its call's arguments and in its record.
Words around a pronoun tell whether it stands for anything: "is it raining" does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from caal_node.grounding.earlier_results import EarlierResult, Thing, label_key, label_of
from caal_node.grounding.read_out_order import only_mentioned
from caal_node.grounding.reference_words import FIELDS, ReferenceWords, Token, name_words

Meaning: TypeAlias = tuple[int, int, Thing | Sequence[Thing], EarlierResult]
"""From which token to behind which one, what it means, and where that stands."""
_Found: TypeAlias = tuple[Thing | Sequence[Thing], EarlierResult]
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME_ONLY: Final = re.compile(r"\d{1,2}:\d{2}.*")
_BEFORE_MAX: Final = 3
"""Words in front of a pronoun that stands for somebody of an earlier turn. A longer beginning
mostly names somebody itself: "tell Anna that her book is here"."""
_BEFORE_IT_MAX: Final = 4
"""The same for "it": "is the front door shut? Lock it", and "could you please cancel it"."""


class Pronouns:
    """Finds in one request what its pronouns mean."""

    def __init__(
        self, said: Sequence[Token], words: ReferenceWords, earlier: Sequence[EarlierResult]
    ) -> None:
        self._said: Final = said
        self._words: Final = words
        self._earlier: Final = earlier

    def found(self, *, things: bool = True) -> Iterator[Meaning]:
        """Yield what the pronouns mean. `things` says whether "it" and "them" are looked at."""
        behind = 0
        for at, token in enumerate(self._said):
            length, meaning = self._meaning(at, token.word, things=things)
            if meaning is not None and at >= behind:
                behind = at + length
                yield at, behind, *meaning

    def _meaning(self, at: int, word: str, *, things: bool) -> tuple[int, _Found | None]:
        words = self._words
        if word in words("there") and self._is_place(at):
            return 1, self._newest(_place_of)
        if word in words("day_pointers") and self._word(at + 1) in words("day_words"):
            return 2, self._newest(_day_of)
        if word in words("day_pointers") and self._word(at + 1) in words("place_words"):
            return 2, self._newest(_place_of)
        if self._is_person(at, word):
            return 1, self._newest(_person_of)
        if word in words("they") and self._is_they(at):
            return 1, self._newest_of_turn(_team_of) or (self._list() if things else None)
        if things and word in words("them") and self._is_object(at, "them_before"):
            return 1 + (self._word(at + 1) in words("every")), self._list()
        if things and word in words("it") and at <= _BEFORE_IT_MAX:
            if self._word(at - 1) in words("it_after") and self._is_object(at, "it_before"):
                return 1, self._thing()
            if self._word(at + 1) in words("ones") and self._is_object(at + 1, "it_before"):
                return 2, self._thing()
        return 1, None

    def _is_place(self, at: int) -> bool:
        before, words = self._word(at - 1), self._words
        follows = self._word(at + 1) not in words("no_place_after")
        return at > 0 and before not in words("no_place_before") and follows and bool(before)

    def _is_person(self, at: int, word: str) -> bool:
        words = self._words
        if at > _BEFORE_MAX or self._names_somebody():
            return False
        if word in words("he"):
            return self._word(at - 1) in words("he_after")
        return word in words("him") and at > 0 and self._all_before(at, "him_after")

    def _names_somebody(self) -> bool:
        """Whether the request has a name of its own, as far as its capitals tell."""
        return any(token.capital and token.word[0] != "i" for token in self._said[1:])

    def _is_they(self, at: int) -> bool:
        return 0 < at <= _BEFORE_MAX and self._all_before(at, "they_after")

    def _all_before(self, at: int, name: str) -> bool:
        return all(self._word(n) in self._words(name) for n in range(at))

    def _is_object(self, at: int, name: str) -> bool:
        """Whether the clause ends behind the pronoun, or goes on with a particle."""
        if at == 0:
            return False
        following = self._word(at + 1)
        return not following or self._said[at + 1].is_mark or following in self._words(name)

    def _newest(self, find: Callable[[EarlierResult], str]) -> _Found | None:
        """Return what the newest turn has that has any; None where it has two."""
        turn = next((one.turns_ago for one in self._earlier if find(one)), 0)
        found = {find(one): one for one in self._earlier if one.turns_ago == turn and find(one)}
        return next(iter(found.items())) if len(found) == 1 else None

    def _newest_of_turn(self, find: Callable[[EarlierResult], str]) -> _Found | None:
        """Return what the newest turn with results has; None where it has none, or two."""
        newest = self._earlier[0].turns_ago if self._earlier else 0
        found = {find(one): one for one in self._earlier if one.turns_ago == newest and find(one)}
        return next(iter(found.items())) if len(found) == 1 else None

    def _list(self) -> _Found | None:
        newest = self._last_turn()
        if len(newest) != 1 or not newest[0].is_whole or len(newest[0].things) < 2:
            return None
        return newest[0].things, newest[0]

    def _thing(self) -> _Found | None:
        newest = self._last_turn()
        if len(newest) != 1:
            return None
        thing = _thing_of(newest[0])
        return (thing, newest[0]) if thing else None

    def _last_turn(self) -> list[EarlierResult]:
        """Return the results of the turn before, if it has any: "it" does not reach further."""
        return [one for one in self._earlier if one.turns_ago == 1]

    def _word(self, at: int) -> str:
        return self._said[at].word if 0 <= at < len(self._said) else ""


def _place_of(result: EarlierResult) -> str:
    for members in (result.arguments, result.record):
        if place := _first(members, FIELDS.places):
            return place
        words = {word for key in members for word in name_words(key)}
        # "to" alone may be who gets a message.
        is_journey = bool(words.intersection(FIELDS.journey_from))
        if is_journey and (place := _first(members, FIELDS.journey_to)):
            return place
    return ""


def _day_of(result: EarlierResult) -> str:
    for members in (result.arguments, result.record):
        for name in FIELDS.days:
            value = _first(members, (name,))
            if date := _DATE.match(value):
                return date[0]
            if value and not _TIME_ONLY.fullmatch(value):
                return value
    return ""


def _person_of(result: EarlierResult) -> str:
    if person := _first(result.record, FIELDS.people):
        return person
    words = {word for key in result.record for word in name_words(key)}
    if words.intersection(FIELDS.personal):
        return label_of(result.record)
    return _first(result.arguments, FIELDS.people)


def _team_of(result: EarlierResult) -> str:
    return _first(result.arguments, FIELDS.teams) or _first(result.record, FIELDS.teams)


def _thing_of(result: EarlierResult) -> Thing | None:
    """Return what "it" is after a result: its record, or what the call was about.

    A place, a person, a team and a day are none: "it" after the weather is the weather.
    """
    if len(result.things) > 1:
        return only_mentioned(result, result.answer)
    if _person_of(result):
        return None
    if set(name_words(label_key(result.record))).intersection(FIELDS.things):
        return result.record
    text = _first(result.arguments, FIELDS.things)
    if not text:
        return None
    return result.record if text in result.record.values() else text


def _first(members: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first text under a key that has one of `names` as a word, the best name first."""
    for name in names:
        for key, value in members.items():
            if isinstance(value, str) and value and _is_called(key, name):
                return value
    return ""


def _is_called(key: str, name: str) -> bool:
    """Whether a key is `name`, or the name of one: "guest_phone" is no guest."""
    words = name_words(key)
    return name in words and (words[-1] == name or words[-1] in FIELDS.labels)
