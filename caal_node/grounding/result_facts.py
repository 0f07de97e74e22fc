"""The figures, times, dates and names of a turn's results, with what each is about.

A record is what belongs together: an object of a result, an element of a list, or a line of a plain
text. Its names tell it from the others of its group: "kitchen" and "bedroom" in a list of rooms.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, cast

from caal_node.grounding.fact_words import UNITS, WORDS, Unit
from caal_node.grounding.ledger import LedgerEntry
from caal_node.grounding.quantities import Stated, stated_in
from caal_node.grounding.spoken_times import Day, Time, weekday_of
from caal_node.policy.heard_words import COMMON, stem, words

FACTS_MAX: Final = 1_000
"""Figures and times of a turn that are read. Past them nothing is held against the results, as the
rest of a result may say what the part that was read does not."""
TEXT_CHARS_MAX: Final = 16_000
"""Characters of texts in results that are read for figures, for the same reason; some 10 ms."""
NAME_CHARS: Final = 80
"""Characters of a text that can name its record; a longer one is a text about it."""
LISTS_MAX: Final = 12
"""Lists of one object whose lengths are added: "confirmed" and "declined"."""
DEPTH_MAX: Final = 12
LABEL_WORDS: Final = 3
"""Words before a figure in a plain text that may say what it is."""
_DIMENSIONS: Final[Mapping[str, str]] = WORDS["dimensions"]
_LENGTH: Final = re.compile(r"(\d{1,3}):(\d\d)(?::(\d\d))?")
_LENGTH_KEYS: Final = frozenset(WORDS["length_keys"])
_UNIT_KEYS: Final = frozenset({"unit", "units", "measurement", "uom"})
_CURRENCY_KEYS: Final = frozenset({"currency"})
_BRIGHTNESS_MAX: Final = 255
"""What light bulbs take for full brightness."""
_WEEKDAYS: Final[Sequence[str]] = WORDS["weekdays"]
_SAME: Final[Mapping[str, str]] = {
    stem(word): group[0] for group in WORDS["same_label"] for word in group
}


def label_of(word: str) -> str:
    """Return one form for the words that mean the same of a figure: "max" and "highest"."""
    known = stem(word)
    return _SAME.get(known, known)


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
        stated = stated_in(text)
        for figure in stated.figures:
            known = label | _words_before(text, figure.start)
            self.figures.append(Fact(figure.value, figure.unit, known, record))
            if figure.unit is None and figure.number.end != figure.end:
                self.figures.append(Fact(figure.number.value, None, known, record))
        self._add_times(text, stated, record, label)

    def _add_times(self, text: str, stated: Stated, record: int, label: frozenset[str]) -> None:
        for time in stated.times:
            known = label | _words_before(text, time.start)
            self.times.append(TimeFact(time, known, record))
        for day in stated.days:
            self.days.append((day, record))
            if day.year:
                self.figures.append(Fact(float(day.year), None, frozenset(), record))


def _words_before(text: str, start: int) -> frozenset[str]:
    before = words(text[max(0, start - 40) : start])[-LABEL_WORDS:]
    return frozenset(label_of(word) for word in before if not word.isdecimal()) - COMMON


def facts_of(entries: Iterable[LedgerEntry]) -> Facts:
    """Read the results of calls."""
    facts = Facts()
    reader = _Reader(facts)
    for entry in entries:
        reader.read(entry)
    return facts


def add_arguments(facts: Facts, entries: Iterable[LedgerEntry]) -> None:
    """Add what calls were made with."""
    reader = _Reader(facts)
    for entry in entries:
        reader.read_arguments(entry)


class _Reader:
    """Walks through results."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._groups = 0
        self._calls: dict[str, int] = {}

    def read(self, entry: LedgerEntry) -> None:
        asked = " ".join(_texts_in(entry.arguments))
        names = frozenset(map(stem, words(asked))) - COMMON
        # Calls of one tool stand beside each other: the weather of two cities.
        group = self._calls.setdefault(entry.tool, -len(self._calls) - 1)
        record = self._record(group, -1, names)
        value: Any = entry.result
        if entry.result[:1] in ("{", "["):
            try:
                value = json.loads(entry.result)
            except (ValueError, RecursionError):
                value = entry.result
        if isinstance(value, str):
            self._lines(value, record)
        else:
            self._walk(value, record, (), None, 0)

    def read_arguments(self, entry: LedgerEntry) -> None:
        self._object(dict(entry.arguments), self._record(-1, -1, ()), 0)

    def _group(self) -> int:
        self._groups += 1
        return self._groups

    def _record(self, group: int, parent: int, names: Iterable[str]) -> int:
        self._facts.records.append(Record(group, parent, frozenset(names)))
        return len(self._facts.records) - 1

    def _lines(self, text: str, record: int) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1:
            # The first line may be a heading, so both numbers of things are right.
            self._facts.counts |= {len(lines), len(lines) - 1}
        group = self._group()
        for line in lines:
            names = frozenset(map(stem, words(line))) - COMMON if len(lines) > 1 else ()
            self._facts.add_text(line, self._record(group, record, names))

    def _walk(
        self, value: Any, record: int, key: tuple[str, ...], unit: Unit | None, depth: int
    ) -> None:
        if depth > DEPTH_MAX or not self._facts.is_whole:
            self._facts.text_chars += TEXT_CHARS_MAX + 1
        elif isinstance(value, dict):
            self._object(cast("dict[str, Any]", value), record, depth)
        elif isinstance(value, list):
            self._list(cast("list[Any]", value), record, key, unit, depth)
        elif isinstance(value, bool) or value is None:
            pass
        elif isinstance(value, int | float):
            self._figure(float(value), record, key, unit)
        elif not self._add_length(str(value), record, key):
            self._facts.add_text(str(value), record, frozenset(map(label_of, key)))

    def _add_length(self, text: str, record: int, key: tuple[str, ...]) -> bool:
        """Add "04:12" under a key such as `time_left`, which is a duration and no time of day."""
        parts = _LENGTH.fullmatch(text)
        if parts is None or _LENGTH_KEYS.isdisjoint(key):
            return False
        one, other = int(parts[1]), int(parts[2])
        label = frozenset(map(label_of, key))
        if parts[3]:
            seconds = (one * 3600 + other * 60 + int(parts[3]),)
        else:  # Minutes and seconds, or hours and minutes.
            seconds = (one * 60 + other, one * 3600 + other * 60)
        for value in seconds:
            unit = UNITS["seconds"]
            self._facts.figures.append(Fact(float(value), unit, label, record, exact=False))
        return True

    def _object(self, members: dict[str, Any], record: int, depth: int) -> None:
        unit, currency = _sibling_units(members)
        group = self._group()
        inner = [name for name, value in members.items() if isinstance(value, dict)]
        if len(inner) > 1:
            self._facts.counts.add(len(inner))
        lists = [cast("list[Any]", each) for each in members.values() if isinstance(each, list)]
        if len(lists) > 1:
            lengths = [len(each) for each in lists[:LISTS_MAX]]
            self._facts.counts.add(sum(lengths))
            self._facts.counts |= {one + other for one, other in combinations(lengths, 2)}
        for name, value in members.items():
            key = tuple(words(name))
            self._facts.words.update(map(stem, key))
            if isinstance(value, dict):
                about = cast("dict[str, Any]", value)
                self._walk(about, self._named(group, record, about, key), key, None, depth + 1)
                continue
            money = currency if _dimension_of(key) == "money" else None
            self._walk(value, record, key, money or unit, depth + 1)

    def _list(
        self, items: list[Any], record: int, key: tuple[str, ...], unit: Unit | None, depth: int
    ) -> None:
        group = self._group()
        self._facts.counts |= _counts(items)
        if key:
            self._facts.listed[stem(key[-1])] = len(items)
        for item in items:
            within = record
            if isinstance(item, dict):
                within = self._named(group, record, cast("dict[str, Any]", item), ())
            elif isinstance(item, str):
                within = self._record(group, record, map(stem, words(item[:NAME_CHARS])))
            self._walk(item, within, key, unit, depth + 1)

    def _named(self, group: int, parent: int, members: dict[str, Any], key: tuple[str, ...]) -> int:
        """Make the record of an object."""
        names = set(map(stem, key))
        for value in members.values():
            if not isinstance(value, str) or len(value) > NAME_CHARS:
                continue
            names.update(map(stem, words(value)))
            for day in stated_in(value).days:
                names.add(f"{day.day}th")
                if (weekday := weekday_of(day)) is not None:
                    names.add(stem(_WEEKDAYS[weekday]))
        return self._record(group, parent, names - COMMON)

    def _figure(self, value: float, record: int, key: tuple[str, ...], unit: Unit | None) -> None:
        facts, label = self._facts, frozenset(map(label_of, key))
        known = _unit_in(key) or unit
        dimension = known.dimension if known else _dimension_of(key)
        if known is None and dimension:
            known = Unit(dimension, dimension)
        facts.figures.append(Fact(value, known, label, record, keyed=True))
        facts.digits.append(str(int(value)) if value.is_integer() else "")
        facts.has_moments |= value > 1e9
        if dimension in ("share", "") and 0 < value <= 1:
            facts.figures.append(Fact(value * 100, UNITS["%"], label, record, exact=False))
        if "brightness" in key and value > 1:
            share = value / _BRIGHTNESS_MAX * 100
            facts.figures.append(Fact(share, UNITS["%"], label, record, exact=False))


def _texts_in(arguments: Mapping[str, Any]) -> list[str]:
    return [str(value)[:NAME_CHARS] for value in arguments.values() if isinstance(value, str)]


def _dimension_of(key: Sequence[str]) -> str:
    return next((_DIMENSIONS[word] for word in key if word in _DIMENSIONS), "")


def _unit_in(key: Sequence[str]) -> Unit | None:
    """Return the unit that a key names: `wind_kmh`, `price_cents`, `seconds_left`, `temp_c`."""
    if not key:
        return None
    if len(key) > 1 and key[-1] in UNITS:
        return UNITS[key[-1]]
    return next((UNITS[word] for word in key if len(word) > 1 and word in UNITS), None)


def _sibling_units(members: Mapping[str, Any]) -> tuple[Unit | None, Unit | None]:
    """Return the unit and the currency that an object names in members of their own."""
    unit: Unit | None = None
    currency: Unit | None = None
    for name, value in members.items():
        known = UNITS.get(value.strip().lower()) if isinstance(value, str) else None
        if known is not None and not _UNIT_KEYS.isdisjoint(words(name)):
            unit = known
        elif known is not None and not _CURRENCY_KEYS.isdisjoint(words(name)):
            currency = known
    return unit, currency


def _counts(items: Sequence[Any]) -> set[int]:
    """Return how many items there are, and how many of them share the value of a member."""
    shared = Counter[tuple[str, str]]()
    for item in items:
        if isinstance(item, dict):
            for name, value in cast("dict[str, Any]", item).items():
                if isinstance(value, bool | str | None):
                    shared[name, str(value)] += 1
                elif isinstance(value, int | float):
                    shared[name, "nothing" if value == 0 else "some"] += 1
    return {len(items), *shared.values()}
