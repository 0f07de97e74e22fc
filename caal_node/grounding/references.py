"""What a request refers to: words such as "the second one", "there" or "them", resolved against
what earlier calls gave, before a model is asked.

No answer is better than a wrong one, so whatever may be read in two ways is left to the model.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from caal_node.context.tool_data import ToolData
from caal_node.core.items import Item, Turn
from caal_node.grounding.earlier_results import (
    FIELDS,
    EarlierResult,
    Rank,
    ReferenceWords,
    Thing,
    Token,
    as_read_out,
    asked_facts,
    earlier_results,
    is_end_known,
    label_key,
    label_of,
    languages,
    name_words,
    only_mentioned,
    singular,
    thing_at,
    tokens,
)

# Which thing of a list comes first or last by a field: the cheapest, the latest.

_NUMBER: Final = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_TIMES: Final = (
    re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+\S*)?"),
    re.compile(r"\d{2}:\d{2}(?::\d{2})?"),
)
"""Forms in which times compare as texts do."""


def extreme(
    result: EarlierResult, fields: Iterable[str], *, highest: bool, of_two: bool
) -> Thing | None:
    """Return the one thing that is first or last by its `fields`; None where it is open.

    It is open where the list was shortened, where a thing lacks the field, where two are equal,
    and where two fields disagree.
    """
    things = [thing for thing in result.things if isinstance(thing, Mapping)]
    if not result.is_whole or len(things) != len(result.things) or (of_two and len(things) != 2):
        return None
    wanted = frozenset(fields)
    keys = [key for key in things[0] if wanted.intersection(name_words(key))]
    chosen: list[int] = []
    for key in keys:
        values = _comparable([thing.get(key) for thing in things])
        if values is None:
            continue
        best = max(values) if highest else min(values)
        if values.count(best) != 1:
            return None
        chosen.append(values.index(best))
    return things[chosen[0]] if chosen and len(set(chosen)) == 1 else None


def _comparable(values: Sequence[Any]) -> list[Any] | None:
    """Return `values` as numbers, or as times that compare as texts; None where they are not."""
    if all(isinstance(value, str) for value in values):
        if any(all(form.fullmatch(value) for value in values) for form in _TIMES):
            return list(values)
        numbers = [_NUMBER.findall(value) for value in values]
        if all(len(found) == 1 for found in numbers):
            return [float(found[0].replace(",", ".")) for found in numbers]
        return None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return list(values)
    return None


# Which things of a list are meant: by their place ("the second one"), by a rank ("the cheapest"),
# by what they say ("the one from Judith"), or all of them.
#
# A place is counted in the order in which the things were read out, where the answer named them; in
# the list's own order else. Where two things fit as well, none is meant.

Choice: TypeAlias = tuple[int, int, Sequence[Thing], EarlierResult]
"""From which token to behind which one, the things that it means, and where they stand."""
_TELLING_WORDS_MAX: Final = 4
"""Words that tell one thing from the others. A longer phrase is a sentence of its own."""
_FIELD_CHARS: Final = 3
"""Characters of a word that can name a field."""
_VALUE_CHARS: Final = 2_000
"""Characters of a value whose words may tell one thing from the others."""
_NUMBER_MAX: Final = 10**15
"""A larger number is an id that nobody says."""


class ListChoices:
    """Finds in one request what is chosen from the earlier lists."""

    def __init__(
        self, said: Sequence[Token], words: ReferenceWords, earlier: Sequence[EarlierResult]
    ) -> None:
        self._said: Final = said
        self._words: Final = words
        self._lists: Final = [result for result in earlier if len(result.things) > 1]

    def found(self) -> Iterator[Choice]:
        """Yield every choice, from the request's beginning on, none inside another."""
        if not self._lists:
            return
        at = 0
        while at < len(self._said):
            choice = self._choice(at)
            if choice is not None:
                yield choice
            at = choice[1] if choice else at + 1

    def _choice(self, at: int) -> Choice | None:
        words, word = self._words, self._word(at)
        if word in words["pair"]:
            return self._both(at)
        if word in words["numberings"]:
            return self._numbered(at)
        if word in words["every"]:
            return self._all_of(at)
        if word in words["articles"]:
            return self._by_place(at) or self._by_rank(at, at + 1) or self._by_words(at)
        asked = any(self._word(n) in words["which"] for n in range(at))
        if asked and self._word(at - 1) in words["is"]:
            return self._by_rank(at, at)
        return None

    def _both(self, at: int) -> Choice | None:
        result = self._list_called("")
        whole = result is not None and result.is_whole and len(result.things) == 2
        if result is None or not whole or self._mentions_other_noun(at + 1):
            return None
        return at, at + 1, result.things, result

    def _all_of(self, at: int) -> Choice | None:
        """Read "all three", where there are three."""
        result, count = self._list_called(""), self._cardinal(at + 1)
        whole = result is not None and result.is_whole and len(result.things) == count
        if result is None or not whole or self._mentions_other_noun(at + 2):
            return None
        return at, at + 2, result.things, result

    def _mentions_other_noun(self, at: int) -> bool:
        """Whether "both" is followed by a noun that no list has, as in "both hands"."""
        following = self._word(at)
        return following.endswith("s") and self._list_called(following) is None

    def _numbered(self, at: int) -> Choice | None:
        number = self._cardinal(at + 1)
        result = self._list_called("")
        if number is None or result is None:
            return None
        thing = thing_at(result, number - 1)
        return (at, at + 2, [thing], result) if thing else None

    def _by_place(self, at: int) -> Choice | None:
        """Read "the second one", "the last item", "the first two", "the second to last"."""
        words = self._words
        behind, index = at + 2, self._ordinal(self._word(at + 1))
        for phrase in words["before_last"]:
            parts = phrase.split()
            if [self._word(at + 1 + n) for n in range(len(parts))] == parts:
                behind, index = at + 1 + len(parts), -2
        count = self._cardinal(behind) if index in (0, -1) else None
        if count is not None and count > 1 and index is not None:
            behind = self._behind_head(behind + 1)[0] or behind + 1
            return self._several(at, behind, index, count)
        head, noun = self._behind_head(behind)
        result = self._list_called(noun) if head else None
        if result is None or index is None:
            if self._word(at + 1) not in words["middle"] or result is None or not result.is_whole:
                return None
            if len(result.things) % 2 == 0:
                return None
            index = len(result.things) // 2
        thing = thing_at(result, index)
        return (at, head, [thing], result) if thing else None

    def _several(self, at: int, behind: int, index: int, count: int) -> Choice | None:
        result = self._list_called("")
        ordered = [] if result is None else as_read_out(result)
        if result is None or count > len(ordered) or (index < 0 and not is_end_known(result)):
            return None
        return at, behind, ordered[:count] if index == 0 else ordered[-count:], result

    def _by_rank(self, at: int, first: int) -> Choice | None:
        """Read "the cheapest one", "the most humid room", "the lowest value", "the better one"."""
        words, word = self._words, self._word(first)
        if any(token.word in words["of_all_the_world"] for token in self._said):
            return None
        amount = word in words["most"] or word in words["least"]
        highest = word in words["most"]
        adjective = self._word(first + 1) if amount else word
        behind = first + 2 if amount else first + 1
        if self._word(behind) in words["participles"]:
            behind += 1
        head, noun = self._behind_head(behind)
        if head == behind and self._word(at - 1) in words["not_after"]:
            head = 0  # "at the earliest"
        for rank in words.ranks:
            ends = _ends(rank, word, adjective, highest if amount else None)
            if ends is None:
                continue
            in_pair = not amount and word in rank.more
            if head and rank.fields and (result := self._list_called(noun)):
                thing = extreme(result, rank.fields, highest=ends, of_two=in_pair)
                if thing:
                    return at, head, [thing], result
            if not amount and (by_field := self._by_field(at, behind, ends, of_two=in_pair)):
                return by_field
        if amount and (by_field := self._by_field(at, first + 1, highest, of_two=False)):
            return by_field
        return None

    def _by_field(self, at: int, field_at: int, highest: bool, *, of_two: bool) -> Choice | None:
        """Read the name of a field behind "the lowest" or "the most": a noun or its adjective."""
        word, result = self._word(field_at), self._list_called("")
        if result is None or len(word) < _FIELD_CHARS:
            return None
        fields = {
            part
            for thing in result.things
            if isinstance(thing, Mapping)
            for key in thing
            for part in name_words(key)
            if singular(part) == singular(word) or (len(word) > 4 and part.startswith(word[:5]))
        }
        thing = extreme(result, fields, highest=highest, of_two=of_two) if fields else None
        head = self._behind_head(field_at + 1)[0] or field_at + 1
        return (at, head, [thing], result) if thing else None

    def _by_words(self, at: int) -> Choice | None:
        """Read "the Japanese one", "the one from Judith", "the one at 10:30"."""
        words = self._words
        if self._word(at + 1) in words["ones"]:
            begin, behind = at + 2, at + 2
            if self._word(begin) not in words["telling"]:
                return None
            while behind < len(self._said) and not self._said[behind].is_mark:
                behind += 1
            noun, telling = "", self._telling(begin, behind)
        else:
            one_at = next((n for n in range(at + 2, at + 5) if self._is_head(self._word(n))), 0)
            if not one_at:
                return None
            behind, noun = one_at + 1, self._word(one_at)
            telling = self._telling(at + 1, one_at)
            noun = "" if noun in words["ones"] else noun
        result = self._list_called(noun)
        if result is None or not telling or len(telling) > _TELLING_WORDS_MAX:
            return None
        fitting = [thing for thing in result.things if telling <= _words_of(thing)]
        return (at, behind, fitting, result) if len(fitting) == 1 else None

    def _telling(self, begin: int, behind: int) -> frozenset[str]:
        said = [token.word for token in self._said[begin:behind] if not token.is_mark]
        told = [part for word in said for part in name_words(word.removesuffix("'s"))]
        common = self._words["common"]
        return frozenset(singular(word) for word in told if word not in common)

    def _list_called(self, noun: str) -> EarlierResult | None:
        """Return the newest list whose things are called `noun`, or the newest one for ""; None
        where two lists of one turn are as near."""
        fitting = self._lists
        if noun:
            fitting = [result for result in fitting if singular(noun) in result.nouns]
        nearest = [one for one in fitting if one.turns_ago == fitting[0].turns_ago]
        return nearest[0] if len(nearest) == 1 else None

    def _is_head(self, word: str) -> bool:
        if word in self._words["ones"]:
            return True
        return bool(word) and any(singular(word) in one.nouns for one in self._lists)

    def _behind_head(self, at: int) -> tuple[int, str]:
        """Return where the phrase ends whose noun may stand at `at`, and that noun; 0 where
        another noun stands there."""
        words, word = self._words, self._word(at)
        if word in words["ones"] or word in words["several"]:
            return at + 1, ""
        if at >= len(self._said) or self._said[at].is_mark or word in words["after_bare"]:
            return at, ""
        if word in words["of"] and self._word(at + 1) in words["them"]:
            return at + 2, ""
        return (at + 1, word) if self._is_head(word) else (0, "")

    def _ordinal(self, word: str) -> int | None:
        if word in self._words["last"]:
            return -1
        number = self._words.ordinals.get(word)
        return None if number is None else number - 1

    def _cardinal(self, at: int) -> int | None:
        word = self._word(at)
        return int(word) if word.isdecimal() and len(word) < 3 else self._words.cardinals.get(word)

    def _word(self, at: int) -> str:
        return self._said[at].word if 0 <= at < len(self._said) else ""


def _ends(rank: Rank, word: str, adjective: str, amount: bool | None) -> bool | None:
    """Return whether the word means the highest end of `rank`'s scale; None where it is no word
    of it. `amount` says whether it is "most" or "least", None that it is neither."""
    if amount is None:
        return rank.highest if word in rank.most or word in rank.more else None
    return rank.highest if adjective in (rank.with_most if amount else rank.with_least) else None


def _words_of(thing: Thing) -> frozenset[str]:
    """Return the words of a thing's values, and the names of the fields that are true."""
    if isinstance(thing, str):
        return frozenset(map(singular, name_words(thing)))
    found: list[str] = []
    for key, value in thing.items():
        if value is True:
            found += name_words(key)
        elif isinstance(value, str):
            found += name_words(value[:_VALUE_CHARS])
        elif type(value) is int and abs(value) < _NUMBER_MAX:
            found.append(str(value))
    return frozenset(map(singular, found))


# What a pronoun means: the last place ("there"), day, person, team, thing ("it") or list ("them").
#
# Each is looked for in the newest result that has one, in its call's arguments and in its record.
# Words around a pronoun tell whether it stands for anything: "is it raining" does not.

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
        if word in words["there"] and self._is_place(at):
            return 1, self._newest(_place_of)
        if word in words["day_pointers"] and self._word(at + 1) in words["day_words"]:
            return 2, self._newest(_day_of)
        if word in words["day_pointers"] and self._word(at + 1) in words["place_words"]:
            return 2, self._newest(_place_of)
        if self._is_person(at, word):
            return 1, self._newest(_person_of)
        if word in words["they"] and self._is_they(at):
            return 1, self._newest_of_turn(_team_of) or (self._list() if things else None)
        if things and word in words["them"] and self._is_object(at, "them_before"):
            return 1 + (self._word(at + 1) in words["every"]), self._list()
        if things and word in words["it"] and at <= _BEFORE_IT_MAX:
            if self._word(at - 1) in words["it_after"] and self._is_object(at, "it_before"):
                return 1, self._thing()
            if self._word(at + 1) in words["ones"] and self._is_object(at + 1, "it_before"):
                return 2, self._thing()
        return 1, None

    def _is_place(self, at: int) -> bool:
        before, words = self._word(at - 1), self._words
        follows = self._word(at + 1) not in words["no_place_after"]
        return at > 0 and before not in words["no_place_before"] and follows and bool(before)

    def _is_person(self, at: int, word: str) -> bool:
        words = self._words
        if at > _BEFORE_MAX or self._names_somebody():
            return False
        if word in words["he"]:
            return self._word(at - 1) in words["he_after"]
        return word in words["him"] and at > 0 and self._all_before(at, "him_after")

    def _names_somebody(self) -> bool:
        """Whether the request has a name of its own, as far as its capitals tell."""
        return any(token.capital and token.word[0] != "i" for token in self._said[1:])

    def _is_they(self, at: int) -> bool:
        return 0 < at <= _BEFORE_MAX and self._all_before(at, "they_after")

    def _all_before(self, at: int, name: str) -> bool:
        return all(self._word(n) in self._words[name] for n in range(at))

    def _is_object(self, at: int, name: str) -> bool:
        """Whether the clause ends behind the pronoun, or goes on with a particle."""
        if at == 0:
            return False
        following = self._word(at + 1)
        return not following or self._said[at + 1].is_mark or following in self._words[name]

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
            anew = any(token.word in words["anew"] for token in rest)
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
