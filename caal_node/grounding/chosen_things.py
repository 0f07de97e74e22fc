"""Which things of a list are meant: by their place ("the second one"), by a rank ("the cheapest"),
by what they say ("the one from Judith"), or all of them.

A place is counted in the order in which the things were read out, where the answer named them; in
the list's own order else. Where two things fit as well, none is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from caal_node.grounding.earlier_results import EarlierResult, Thing
from caal_node.grounding.extremes import extreme
from caal_node.grounding.read_out_order import as_read_out, is_end_known, thing_at
from caal_node.grounding.reference_words import (
    Rank,
    ReferenceWords,
    Token,
    name_words,
    singular,
)

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
        if word in words("pair"):
            return self._both(at)
        if word in words("numberings"):
            return self._numbered(at)
        if word in words("every"):
            return self._all_of(at)
        if word in words("articles"):
            return self._by_place(at) or self._by_rank(at, at + 1) or self._by_words(at)
        asked = any(self._word(n) in words("which") for n in range(at))
        if asked and self._word(at - 1) in words("is"):
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
        for phrase in words("before_last"):
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
            if self._word(at + 1) not in words("middle") or result is None or not result.is_whole:
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
        if any(token.word in words("of_all_the_world") for token in self._said):
            return None
        amount = word in words("most") or word in words("least")
        highest = word in words("most")
        adjective = self._word(first + 1) if amount else word
        behind = first + 2 if amount else first + 1
        if self._word(behind) in words("participles"):
            behind += 1
        head, noun = self._behind_head(behind)
        if head == behind and self._word(at - 1) in words("not_after"):
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
        if self._word(at + 1) in words("ones"):
            begin, behind = at + 2, at + 2
            if self._word(begin) not in words("telling"):
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
            noun = "" if noun in words("ones") else noun
        result = self._list_called(noun)
        if result is None or not telling or len(telling) > _TELLING_WORDS_MAX:
            return None
        fitting = [thing for thing in result.things if telling <= _words_of(thing)]
        return (at, behind, fitting, result) if len(fitting) == 1 else None

    def _telling(self, begin: int, behind: int) -> frozenset[str]:
        said = [token.word for token in self._said[begin:behind] if not token.is_mark]
        told = [part for word in said for part in name_words(word.removesuffix("'s"))]
        common = self._words("common")
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
        if word in self._words("ones"):
            return True
        return bool(word) and any(singular(word) in one.nouns for one in self._lists)

    def _behind_head(self, at: int) -> tuple[int, str]:
        """Return where the phrase ends whose noun may stand at `at`, and that noun; 0 where
        another noun stands there."""
        words, word = self._words, self._word(at)
        if word in words("ones") or word in words("several"):
            return at + 1, ""
        if at >= len(self._said) or self._said[at].is_mark or word in words("after_bare"):
            return at, ""
        if word in words("of") and self._word(at + 1) in words("them"):
            return at + 2, ""
        return (at + 1, word) if self._is_head(word) else (0, "")

    def _ordinal(self, word: str) -> int | None:
        if word in self._words("last"):
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
