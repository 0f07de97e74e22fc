"""The figures, times, dates and words that texts and results state, with what each is about.

A record is what belongs together: an object of a result, an element of a list, or a line of a plain
text. Its names tell it from the others of its group: "kitchen" and "bedroom" in a list of rooms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from caal_node.grounding.fact_words import WORDS, Unit
from caal_node.grounding.quantities import TEXT_CHARS, Stated, stated_in
from caal_node.grounding.spoken_times import Day, Time
from caal_node.policy.heard_words import COMMON, stem, words

FACTS_MAX: Final = 1_000
"""Figures and times of a turn that are read. Past them nothing is held against the results, as the
rest of a result may say what the part that was read does not."""
TEXT_CHARS_MAX: Final = 8_000
"""Characters of results, or of what was said, that are read for figures, for the same reason: more
than a prompt shows of one result, and some 10 ms of CPU once in an answer."""
LABEL_WORDS: Final = 3
"""Words before a figure in a plain text that may say what it is."""
_SAME: Final[Mapping[str, str]] = {
    stem(word): group[0] for group in WORDS["same_label"] for word in group
}


def label_of(word: str) -> str:
    """Return one form for the words that mean the same of a figure: "max" and "highest"."""
    known = stem(word)
    return _SAME.get(known, known)


def label_from(said: Iterable[str]) -> frozenset[str]:
    """Return what words say of a figure: `minute_of_last_goal` without its "of"."""
    return frozenset(label_of(word) for word in said if not word.isdecimal()) - COMMON


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that a result tells of."""

    group: int
    """The same number for the things that stand beside each other."""
    parent: int
    """The record within which this one lies; -1 for a call's whole result."""
    names: frozenset[str]
    """The stems of the words that may name it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of a result."""

    value: float
    unit: Unit | None
    label: frozenset[str]
    """What the figure is: its key's words, or those before it."""
    record: int
    exact: bool = True
    """False for a figure that is told in another form than the result has it."""
    keyed: bool = False
    """Whether its label is the key that it stands under, and not words beside it."""


@dataclass(frozen=True, slots=True)
class TimeFact:
    """One time of day of a result."""

    time: Time
    label: frozenset[str]
    record: int


@dataclass(slots=True)
class Facts:
    """What some results, or some texts, state."""

    records: list[Record] = field(default_factory=list[Record])
    figures: list[Fact] = field(default_factory=list[Fact])
    times: list[TimeFact] = field(default_factory=list[TimeFact])
    days: list[tuple[Day, int]] = field(default_factory=list[tuple[Day, int]])
    """Each with its record."""
    counts: set[int] = field(default_factory=set[int])
    """How many there are of what is listed, and of those of them that have a value in common."""
    listed: dict[str, int] = field(default_factory=dict[str, int])
    """How many are listed under a key, by the stem of its last word."""
    digits: list[str] = field(default_factory=list[str])
    """The digits of codes and of texts, in which a code must stand."""
    words: set[str] = field(default_factory=set[str])
    """The stems of all words."""
    text_chars: int = 0
    has_moments: bool = False
    """Whether a figure may be a time in seconds since 1970, which nobody says as it is."""

    @property
    def is_whole(self) -> bool:
        """Whether everything was read."""
        return len(self.figures) < FACTS_MAX and self.text_chars <= TEXT_CHARS_MAX

    def add_text(self, text: str, record: int = -1, label: frozenset[str] = frozenset()) -> None:
        """Add what a text states, as far as there is room for it."""
        self.text_chars += len(text)
        if self.text_chars > TEXT_CHARS_MAX:
            return
        self.words.update(map(stem, words(text)))
        if any(character.isdigit() for character in text):
            self.digits.append("".join(one for one in text if one.isdigit()))
        for part in _parts_of(text):
            stated = stated_in(part)
            for figure in stated.figures:
                known = label | _words_before(part, figure.start)
                self.figures.append(Fact(figure.value, figure.unit, known, record))
            self._add_times(part, stated, record, label)

    def _add_times(self, text: str, stated: Stated, record: int, label: frozenset[str]) -> None:
        for time in stated.times:
            known = label | _words_before(text, time.start)
            self.times.append(TimeFact(time, known, record))
        for day in stated.days:
            self.days.append((day, record))
            if day.year:
                self.figures.append(Fact(float(day.year), None, frozenset(), record))


def _words_before(text: str, start: int) -> frozenset[str]:
    return label_from(words(text[max(0, start - 40) : start])[-LABEL_WORDS:])


def _parts_of(text: str) -> Iterator[str]:
    """Cut a text where a word ends into parts that are read as a whole."""
    while len(text) > TEXT_CHARS:
        at = text.rfind(" ", 1, TEXT_CHARS)
        at = TEXT_CHARS if at < 0 else at
        yield text[:at]
        text = text[at:]
    yield text
