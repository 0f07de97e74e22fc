"""Whether a text that a tool would write down states what nobody has said: a date, a time, a
figure or a name.

What is written is there to be believed later: a note of "Anna's birthday is on March 15th" where
only her birthday was spoken of. Only what cannot have been derived is held against a text. A date
can follow from any word of time ("tomorrow", "in two weeks"), and a figure from any other figure (a
sum, another unit), so that where there is one, it is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from caal_node.core.items import CallItem, Item, ResultItem, SystemItem
from caal_node.grounding.fact_words import UNITS, WORDS
from caal_node.grounding.quantities import Stated, stated_in
from caal_node.grounding.request_words import (
    ARTICLES,
    REQUEST_CHARS,
    language_of,
    plain_words,
)
from caal_node.grounding.spoken_numbers import numbers
from caal_node.grounding.spoken_times import Day, Time, hours_of
from caal_node.grounding.stated_names import StatedNames
from caal_node.policy.heard_words import stems, words

KNOWN_CHARS: Final = 16_384
"""Characters of a conversation in which something is looked for, within 15 ms. In a longer one
everything is taken for known."""
_NOTE_WORDS: Final = range(3, 13)
"""Words of an argument that is a short text for a person to read. Fewer are a name, a code or a
unit; more are a letter, with capital letters of its own."""
_FIGURE: Final = re.compile(r"\d+")
_MOMENT: Final = re.compile(r"\d[:./-]\d|\d{4}-\d\d")
_TURNS: Final = 16
"""Things said or found, the newest, in which times without any word for one are looked for."""
_LEAST_UNIT: Final = 3
"""Letters of a unit of time that is no ending of another word."""
_TIME_WORDS: Final = frozenset(
    word
    for word, unit in UNITS.items()
    if unit.dimension == "duration" and len(word) >= _LEAST_UNIT
) | {name for full in (*WORDS["months"], *WORDS["weekdays"]) for name in (full, full[:3])}
_NAME_LETTERS: Final = 3


class WrittenFacts:
    """The facts of a conversation that a text may state.

    Args:
        items: The conversation, oldest first. Instructions may be repeated, but nothing follows
            from them: they often have the date.
        also: Other text that may be repeated, such as the tool's schema.
        times: Lower-case words for times.
        counts: The same for times and numbers.
        is_like: Says whether a name may be another spelling of one that was said.
        language: The key of the person's language, in which alone names are judged; "" for none.
    """

    def __init__(
        self,
        items: Sequence[Item],
        also: str,
        times: frozenset[str],
        counts: frozenset[str],
        is_like: Callable[[str], bool],
        language: str,
    ) -> None:
        spoken = [text_of(item) for item in items if not isinstance(item, SystemItem)]
        every = [*map(text_of, items), also]
        self._is_long: Final = sum(map(len, every)) > KNOWN_CHARS
        self._is_like: Final = is_like
        self._language: Final = language
        if self._is_long:
            return
        said = "\n".join(spoken).casefold()
        known = "\n".join(every)
        found = [each for each in numbers(said) if not each.is_bare_one]
        spelt = frozenset(words(said))
        self._has_moment: Final = (
            _MOMENT.search(said) is not None
            or not ((times | _TIME_WORDS) - ARTICLES).isdisjoint(spelt)
            or any(stated_in(text[:REQUEST_CHARS]).times for text in spoken[-_TURNS:])
        )
        self._has_number: Final = (
            self._has_moment
            or bool(found)
            or _FIGURE.search(said) is not None
            or not (counts - ARTICLES).isdisjoint(spelt)
        )
        self._figures: Final = {int(one[:15]) for one in _FIGURE.findall(known)} | {
            int(each.value) for each in found
        }
        self._stems: Final = stems(known)

    def has_unsaid(self, text: str) -> bool:
        """Return whether `text` states what can have come from nowhere."""
        if self._is_long or len(text) > KNOWN_CHARS:
            return False
        stated = stated_in(text)
        if not self._has_moment and self._unsaid_moment(stated):
            return True
        if len(plain_words(text)) < _NOTE_WORDS.start:
            return False
        figures = {int(one[:15]) for one in _FIGURE.findall(text)}
        if figures and not self._has_number and figures.isdisjoint(self._figures):
            return True
        return self._unsaid_name(text)

    def _unsaid_moment(self, stated: Stated) -> bool:
        return any(not self._knows_day(day) for day in stated.days) or any(
            time.is_sure and self._figures.isdisjoint(_written(time)) for time in stated.times
        )

    def _knows_day(self, day: Day) -> bool:
        if day.day:
            return day.day in self._figures
        return day.weekday is None or WORDS["weekdays"][day.weekday] in self._stems

    def _unsaid_name(self, text: str) -> bool:
        if not self._language or len(plain_words(text)) not in _NOTE_WORDS:
            return False
        if language_of([text]) not in ("", self._language):
            return False
        return any(
            len(name := text[begin:end]) >= _NAME_LETTERS
            and name.isalpha()
            # Behind another capital or a comma it may complete what was said: "Oslo, Norway".
            and (before := text[:begin].split()[-1:])
            and before[0].isalpha()
            and before[0].islower()
            and before[0] not in ARTICLES  # "Ask the Doctor" names nobody.
            and not self._is_like(name)
            for begin, end in StatedNames(self._stems).unknown_in(text)
        )


def _written(time: Time) -> frozenset[int]:
    """Return the numbers by which the hour of a time is told: 7, 19 and 730 of half past seven."""
    hour, minute = divmod(time.minute, 60)
    hours = hours_of(hour)
    return frozenset(hours | {each * 100 + minute for each in hours})


def text_of(item: Item) -> str:
    """Return the words of an item: what was said, a call's arguments, or a result."""
    if isinstance(item, CallItem):
        return item.arguments
    return item.output if isinstance(item, ResultItem) else item.text
