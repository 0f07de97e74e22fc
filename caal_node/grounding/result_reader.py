"""Reads the results of calls: objects, lists and plain texts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, cast

from caal_node.grounding.fact_words import UNITS, WORDS, Unit
from caal_node.grounding.ledger import LedgerEntry
from caal_node.grounding.result_facts import TEXT_CHARS_MAX, Fact, Facts, Record, label_from
from caal_node.grounding.spoken_times import days, iso_days, weekday_of
from caal_node.policy.heard_words import COMMON, stem, words

NAME_CHARS: Final = 80
"""Characters of a text that can name its record; a longer one is a text about it."""
LISTS_MAX: Final = 12
"""Lists of one object whose lengths are added: "confirmed" and "declined"."""
FIGURE_MAX: Final = 1e15
"""Figures from here on are ids, and nothing that is said."""
DEPTH_MAX: Final = 12
_DIMENSIONS: Final[Mapping[str, str]] = WORDS["dimensions"]
_LENGTH: Final = re.compile(r"(\d{1,3}):(\d\d)(?::(\d\d))?")
_LENGTH_KEYS: Final = frozenset(WORDS["length_keys"])
_SHORT_UNIT: Final = 3
_UNIT_KEYS: Final = frozenset({"unit", "units", "measurement", "uom"})
_CURRENCY_KEYS: Final = frozenset({"currency"})
_BRIGHTNESS_MAX: Final = 255
"""What light bulbs take for full brightness."""
_WEEKDAYS: Final[Sequence[str]] = WORDS["weekdays"]


def facts_of(entries: Iterable[LedgerEntry]) -> Facts:
    """Read the results of calls."""
    facts = Facts()
    reader = _Reader(facts)
    known = tuple(entries)
    if sum(len(entry.result) for entry in known) > TEXT_CHARS_MAX:
        facts.text_chars = TEXT_CHARS_MAX + 1  # Too much to be read between two clauses.
        return facts
    for entry in known:
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
        self._object(dict(entry.arguments), self._record(-1, -1, ()), (), 0)

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
            self._object(cast("dict[str, Any]", value), record, key, depth)
        elif isinstance(value, list):
            self._list(cast("list[Any]", value), record, key, unit, depth)
        elif isinstance(value, bool) or value is None:
            pass
        elif isinstance(value, int | float):
            if math.isfinite(value) and abs(value) < FIGURE_MAX:
                self._figure(float(value), record, key, unit)
        elif not self._add_length(str(value), record, key):
            self._facts.add_text(str(value), record, label_from(key))

    def _add_length(self, text: str, record: int, key: tuple[str, ...]) -> bool:
        """Add "04:12" under a key such as `time_left`, which is a duration and no time of day, as
        "00:46:31" is under any.
        """
        parts = _LENGTH.fullmatch(text)
        if parts is None or (_LENGTH_KEYS.isdisjoint(key) and not (parts[3] and not int(parts[1]))):
            return False
        one, other = int(parts[1]), int(parts[2])
        label = label_from(key)
        if parts[3]:
            seconds = (one * 3600 + other * 60 + int(parts[3]),)
        else:  # Minutes and seconds, or hours and minutes.
            seconds = (one * 60 + other, one * 3600 + other * 60)
        for value in seconds:
            unit = UNITS["seconds"]
            self._facts.figures.append(Fact(float(value), unit, label, record, exact=False))
        return True

    def _object(
        self, members: dict[str, Any], record: int, about: tuple[str, ...], depth: int
    ) -> None:
        """Read an object; `about` are the words of the keys that lead to its figures."""
        unit, currency = _sibling_units(members)
        group = self._group()
        inner = [cast("dict[str, Any]", v) for v in members.values() if isinstance(v, dict)]
        alike = len(inner) > 1 and bool(set(inner[0]).intersection(*inner[1:]))
        if alike:
            self._facts.counts.add(len(inner))
        lists = [cast("list[Any]", each) for each in members.values() if isinstance(each, list)]
        if len(lists) > 1:
            lengths = [len(each) for each in lists[:LISTS_MAX]]
            self._facts.counts.add(sum(lengths))
            self._facts.counts |= {one + other for one, other in combinations(lengths, 2)}
        for name, value in members.items():
            key = (*about, *words(name))
            self._facts.words.update(map(stem, key))
            if isinstance(value, dict):
                inside = cast("dict[str, Any]", value)
                # "main" and "wind" say what the figures are; "kitchen" and "bath", what has them.
                within = self._named(group, record, inside, key) if alike else record
                self._walk(inside, within, () if alike else key, None, depth + 1)
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
            # The name of a list says nothing of the figures of its objects: "days".
            self._walk(item, within, () if isinstance(item, dict) else key, unit, depth + 1)

    def _named(self, group: int, parent: int, members: dict[str, Any], key: tuple[str, ...]) -> int:
        """Make the record of an object."""
        names = set(map(stem, key))
        for value in members.values():
            if not isinstance(value, str) or len(value) > NAME_CHARS or value.isdecimal():
                continue
            names.update(map(stem, words(value)))
            written = value.lower()
            for day in (*(day for day, _ in iso_days(written)), *days(written)):
                names.add(f"{day.day}th")
                if (weekday := weekday_of(day)) is not None:
                    names.add(stem(_WEEKDAYS[weekday]))
        return self._record(group, parent, names - COMMON)

    def _figure(self, value: float, record: int, key: tuple[str, ...], unit: Unit | None) -> None:
        facts, label = self._facts, label_from(key)
        dimension = _dimension_of(key)
        own = _unit_in(key)
        if own is not None and dimension and own.dimension != dimension:
            own = None  # "temp_min" has no minutes.
        known = own or unit
        dimension = known.dimension if known else dimension
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
    if "per" in key:  # "ct_per_kwh" is of what stands before it
        key = key[: key.index("per")]
        return UNITS.get(key[-1]) if key else None
    if not key:
        return None
    if len(key) > 1 and key[-1] in UNITS:
        return UNITS[key[-1]]
    # In front, a short word is another one: "min" of `min_temp`.
    return next((UNITS[word] for word in key if len(word) > _SHORT_UNIT and word in UNITS), None)


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
