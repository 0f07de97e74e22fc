"""Whether the figures, times and dates of a clause are those of the results.

A figure is right if it is in a result, in the person's own words or in a call's arguments: in
whatever unit, rounded as it was said, or as a count, a sum, a mean, a difference or a duration of
what is there. It is wrong if it is nowhere, or if it belongs to another thing, or another key, than
the one that the clause names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from caal_node.grounding.fact_words import UNITS, WORDS, listed, stemmed
from caal_node.grounding.quantities import Code, Figure, Stated
from caal_node.grounding.result_facts import Fact, Facts, label_of
from caal_node.grounding.spoken_times import HALF_DAY, Day, Time, weekday_of
from caal_node.policy.heard_words import stem, words

PAIRS_MAX: Final = 48
"""Values of which differences are made: beyond them anything would be one."""
_ABOUT: Final = 0.12
"""The share by which a figure that is said to be rough may be off."""
_CONVERTED: Final = 0.02
"""The share by which one may be off that was told in another unit."""
_STEP: Final = 0.6
"""The share of its last place by which a converted figure may be off: it is rounded twice."""
_ABOVE: Final = 1.3
_BELOW: Final = 0.8
"""How far from "more than" and "less than" what is meant may lie."""
_ROUND: Final = 100.0
"""A whole figure of hundreds is meant to the hundred."""
_ABOUT_MINUTES: Final = 10
_PAST: Final = frozenset({"past", "after"})
_AHEAD: Final = frozenset({"before"})
_APPROXIMATE: Final = listed("approximate")
_COMPARING: Final = stemmed("comparing")
_BESIDE: Final = stemmed("beside")
_FALLING: Final = stemmed("falling")
_NUMBERING: Final = listed("numbering")
_FROM_TODAY: Final = stemmed("from_today")
_ALL_OF: Final = tuple(WORDS["all_of"])
_PART_OF: Final = listed("part_of")
_JOINT: Final = re.compile(r"[,;:]|\b(?:and|but|with|while|or)\b")
_TIMES: Final = stemmed("multiplying")
_MULTIPLES: Final = (2.0, 3.0, 0.5)
_LIST_MARK: Final = re.compile(r"[\s*_]*$")
_SPAN_OF_TIMES: Final = 60
"""Minutes by which a time may lie behind the one that it is said to be past."""
_OTHERS: Final = frozenset(map(stem, ("other", "others", "more", "another", "rest")))
_LATER: Final = frozenset({"in", "within", "ago", "now", "left", "until", "since", "for"})
_SCALES: Final = frozenset({5.0, 10.0, 100.0})
"""Ends of scales: "4.3 out of 5"."""
_SCALED: Final = (UNITS["celsius"], UNITS["fahrenheit"])
_DECIMALS_KEPT: Final = 3


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong in a clause, by its characters, and what is right, where that is certain."""

    start: int
    end: int
    right: str | None = None


class StatedFigures:
    """Holds clauses against the facts of a turn."""

    def __init__(self, turn: Facts, said: Facts) -> None:
        """`turn` is of this turn's results, `said` of all else that may rightly be told."""
        self._turn = turn
        self._said = said
        self._siblings = _siblings(turn)
        self._labels = {fact.label for fact in turn.figures if fact.keyed}
        shared = frozenset[str].intersection(*self._labels) if len(self._labels) > 1 else None
        self._shared = shared or frozenset[str]()

    def wrong_in(self, clause: str, stated: Stated) -> list[Wrong]:
        """Return what a clause states wrongly, in its order."""
        said = frozenset(map(stem, words(clause)))
        judged = _Clause(self, clause, stated, said)
        found = [
            *judged.wrong_figures(),
            *judged.wrong_times(),
            *judged.wrong_days(),
            *judged.wrong_codes(),
        ]
        return sorted(found, key=lambda wrong: wrong.start)

    def apart(self, said: frozenset[str]) -> frozenset[int]:
        """Return the records that a clause is not about: those beside the only one it names."""
        if said & _BESIDE:
            return frozenset()
        apart = set[int]()
        for group in self._siblings:
            named = [record for record, own in group if own & said]
            if len(named) == 1:
                apart |= {record for record, own in group if own} - {*named}
        if not apart:
            return frozenset()
        for at, record in enumerate(self._turn.records):
            if record.parent in apart:
                apart.add(at)
        return frozenset(apart)

    def label_in(self, said: Iterable[str]) -> frozenset[str] | None:
        """Return the one label that words name; None where it is none or more than one."""
        known = frozenset(map(label_of, said))
        hits = [(len((label - self._shared) & known), label) for label in self._labels]
        most = max((count for count, _ in hits), default=0)
        named = [label for count, label in hits if count == most > 0]
        return named[0] if len(named) == 1 else None

    @property
    def turn(self) -> Facts:
        return self._turn

    @property
    def said(self) -> Facts:
        return self._said


def _siblings(facts: Facts) -> list[list[tuple[int, frozenset[str]]]]:
    """Return the groups of more than one record, each record with the names that it alone has."""
    groups: dict[tuple[int, int], list[int]] = {}
    for at, record in enumerate(facts.records):
        groups.setdefault((record.group, record.parent), []).append(at)
    found = list[list[tuple[int, frozenset[str]]]]()
    for members in groups.values():
        if len(members) < 2:
            continue
        seen: dict[str, int] = {}
        for at in members:
            for name in facts.records[at].names:
                seen[name] = seen.get(name, 0) + 1
        found.append([(at, _own_names(facts.records[at].names, seen)) for at in members])
    return found


def _own_names(names: frozenset[str], seen: dict[str, int]) -> frozenset[str]:
    # Short numbers count things more often than they name them.
    return frozenset(n for n in names if seen[n] == 1 and not (n.isdecimal() and len(n) < 3))


class _Clause:
    """One clause that is held against the facts."""

    def __init__(
        self, known: StatedFigures, clause: str, stated: Stated, said: frozenset[str]
    ) -> None:
        self._known, self._text, self._stated, self._said = known, clause, stated, said
        self._turn, self._told = known.turn, known.said
        self._apart = known.apart(said)
        self._compares = not said.isdisjoint(_COMPARING)

    def wrong_figures(self) -> list[Wrong]:
        figures = self._stated.figures
        return [
            wrong
            for at, figure in enumerate(figures)
            if not self._numbers_a_list(figure)
            and (wrong := self._judge(figure, figures[at - 1].end if at else 0)) is not None
        ]

    def _numbers_a_list(self, figure: Figure) -> bool:
        """Say whether a figure says which one of a list: "1. Milk", "item number five"."""
        if figure.unit is not None:
            return figure.unit.dimension == "any"
        before = self._text[: figure.start]
        if self._text[figure.end : figure.end + 1] in (".", ")") and _LIST_MARK.match(before):
            return True
        led = before.lower().split()[-1:]
        listed_here = max(self._turn.counts | self._told.counts, default=0)
        return bool(led) and led[0] in _NUMBERING and figure.value <= listed_here

    def _judge(self, figure: Figure, before: int) -> Wrong | None:
        label = self._known.label_in(words(self._led(before, figure)))
        facts = self._about(label, figure)
        if self._is_known(figure, facts) or self._is_a_time(figure):
            return None
        if label is None and len(self._stated.figures) == 1:
            # What stands behind a figure ("points") may be said of many a one, so it tells what is
            # right and not what is wrong.
            label = self._known.label_in(words(self._text[figure.end :]))
            facts = self._about(label, figure)
        right = None if self._compares else self._right(figure, facts, label)
        # The unit stays as it was said; only what was added to the number goes.
        end = figure.number.end if right and figure.value == figure.number.value else figure.end
        return Wrong(figure.start, end, right)

    def _led(self, before: int, figure: Figure) -> str:
        """Return the words that lead to a figure, without those behind the figure before it."""
        text = self._text[before : figure.start]
        if not before:
            return text
        joint = _JOINT.search(text)
        return text[joint.end() :] if joint else ""

    def _about(self, label: frozenset[str] | None, figure: Figure) -> list[Fact]:
        """Return the figures of the results that a clause's figure may be."""
        near = [fact for fact in self._turn.figures if fact.record not in self._apart]
        own = [fact for fact in near if fact.label == label and _may_be(figure, fact)]
        return own or near

    def _is_known(self, figure: Figure, facts: Sequence[Fact]) -> bool:
        value = figure.value
        known = [*facts, *self._told.figures]
        if any(_is_close(figure, fact) for fact in known):
            return True
        if not self._said.isdisjoint(_FALLING):
            below = replace(figure, value=-value)
            if any(fact.value < 0 and _is_close(below, fact) for fact in known):
                return True
        if figure.number.ordinal:
            return any(day.day == value for day, _ in [*self._turn.days, *self._told.days])
        return self._is_count(figure) or self._is_derived(figure, facts) or self._is_span(figure)

    def _is_count(self, figure: Figure) -> bool:
        if figure.unit is not None and figure.unit.name not in ("day", "hour", "week"):
            return False
        before = self._text[: figure.start].lower().rstrip()
        if before.endswith("out of") and figure.value in _SCALES:
            return True
        counts = self._turn.counts | self._told.counts
        more = not self._said.isdisjoint(_OTHERS)
        if figure.value in counts or (more and figure.value + 1 in counts):
            return True
        # A smaller number may count some of them, unless it is said to count all.
        return 0 < figure.value < max(counts, default=0) and self._is_part(figure, before)

    def _is_part(self, figure: Figure, before: str) -> bool:
        behind = self._text[figure.end : figure.end + 40].lower().split()[:1]
        if not before or before.split()[-1] in _PART_OF or behind == ["of"]:
            return True
        if before.endswith(_ALL_OF) or not behind:
            return False
        thing = stem(re.sub(r"\W", "", behind[0]))
        return figure.value <= self._turn.listed.get(thing, 0)

    def _is_derived(self, figure: Figure, facts: Sequence[Fact]) -> bool:
        """Say whether a figure is made of others: their sum, their mean, what lies between."""
        values = [
            (fact.label, value)
            for fact in facts
            if fact.exact and fact.keyed and _may_be(figure, fact)
            for value in (_told_as(figure, fact),)
        ]
        by_word: dict[str, list[float]] = {}
        for label, value in values:
            for word in label:
                by_word.setdefault(word, []).append(value)
        for column in by_word.values():
            total = sum(column)
            if _near(figure, total) or _near(figure, total / len(column)):
                return True
            if any(
                _near(figure, one + other) for one, other in combinations(column[:PAIRS_MAX], 2)
            ):
                return True
        if not self._said.isdisjoint(_TIMES):
            own = [*values, *((fact.label, fact.value) for fact in self._told.figures)]
            if any(_near(figure, value * by) for _, value in own for by in _MULTIPLES):
                return True
        if not (self._compares or _is_duration(figure)):
            return False
        near = [*self._turn.figures, *self._told.figures]
        every = {_told_as(figure, fact) for fact in near if fact.exact and _may_be(figure, fact)}
        pairs = combinations(sorted(every)[:PAIRS_MAX], 2)
        return any(_near(figure, other - one) for one, other in pairs)

    def _is_span(self, figure: Figure) -> bool:
        """Say whether a figure is the time between two times, or from now to one of them."""
        if not _is_duration(figure):
            return False
        turn = self._turn
        relative = not _LATER.isdisjoint(words(self._text[max(0, figure.start - 24) :]))
        if turn.has_moments or (relative and (turn.times or turn.days)):
            return True
        if turn.days and not self._said.isdisjoint(_FROM_TODAY):
            return True
        minutes = {fact.time.minute for fact in [*turn.times, *self._told.times]}
        pairs = combinations(sorted(minutes)[:PAIRS_MAX], 2)
        spans = {other - one for one, other in pairs}
        unit = figure.unit
        per_unit = 60 / unit.factor if unit is not None and unit.factor else 1.0
        return any(_near(figure, span * per_unit) for span in spans | {1440 - s for s in spans})

    def _is_a_time(self, figure: Figure) -> bool:
        """Say whether what reads like a figure is a time of day that is right: "at four"."""
        return any(
            time.start <= figure.start and figure.end <= time.end and self._is_known_time(time)
            for time in self._stated.times
        )

    def _right(
        self, figure: Figure, facts: Sequence[Fact], label: frozenset[str] | None
    ) -> str | None:
        """Return the only value that can be meant, written as the wrong one was."""
        if figure.number.ordinal or (figure.unit is None and label is None):
            return None
        meant = {
            round(_told_as(figure, fact), _DECIMALS_KEPT)
            for fact in facts
            if fact.exact
            and _may_be(figure, fact)
            and (fact.unit is not None or label is not None)
            and (label is None or fact.label == label)
        }
        return _written(meant.pop(), figure) if len(meant) == 1 else None

    def wrong_times(self) -> list[Wrong]:
        wrong = list[Wrong]()
        for time in self._stated.times:
            if not time.is_sure or self._is_known_time(time):
                continue
            wrong.append(Wrong(time.start, time.end, self._right_time(time)))
        return wrong

    def _is_known_time(self, time: Time) -> bool:
        turn = self._turn
        if turn.has_moments:
            return True
        near = [fact.time for fact in turn.times if fact.record not in self._apart]
        known = [*near, *(fact.time for fact in self._told.times)]
        if any(time.is_same(other) for other in known):
            return True
        led = set(self._text[: time.start].lower().split()[-2:])
        behind = [(one.minute - time.minute) % HALF_DAY for one in known]
        if led & _PAST and any(minutes <= _SPAN_OF_TIMES for minutes in behind):
            return True
        if led & _AHEAD and any(HALF_DAY - minutes <= _SPAN_OF_TIMES for minutes in behind):
            return True
        if led & _APPROXIMATE:
            return any(min(one, HALF_DAY - one) <= _ABOUT_MINUTES for one in behind)
        spans = [
            round(fact.value * fact.unit.factor / 60)
            for fact in [*turn.figures, *self._told.figures]
            if fact.unit is not None and fact.unit.dimension == "duration" and fact.unit.factor
        ]
        if spans and not known:
            return time.is_sure  # It is told from the time of day, which is not known here.
        return any(
            (time.minute - one.minute - way * span) % HALF_DAY == 0
            for one in known
            for span in spans[:PAIRS_MAX]
            for way in (1, -1)
        )

    def _right_time(self, time: Time) -> str | None:
        near = [fact for fact in self._turn.times if fact.record not in self._apart]
        said = {label_of(word) for word in words(self._text[: time.start])}
        # A thing is at the time at which it begins, unless its end is spoken of.
        way = "end" if "end" in said else "start"
        led = [fact for fact in near if way in fact.label]
        meant = {fact.time.minute for fact in led or near}
        if len(meant) != 1:
            return None
        return _clock(meant.pop(), time, self._text[time.start : time.end])

    def wrong_days(self) -> list[Wrong]:
        turn = self._turn.days
        if not turn or self._turn.has_moments:
            return []
        known = [day for day, _ in [*turn, *self._told.days]]
        return [
            Wrong(day.start, day.end)
            for day in self._stated.days
            if not any(_is_same_day(day, other) for other in known)
        ]

    def wrong_codes(self) -> list[Wrong]:
        known = [*self._turn.digits, *self._told.digits]
        return [
            Wrong(code.start, code.end)
            for code in self._stated.codes
            if not _in_digits(code, known)
        ]


def _in_digits(code: Code, known: Iterable[str]) -> bool:
    return any(code.digits in digits for digits in known)


def _is_same_day(stated: Day, other: Day) -> bool:
    if stated.weekday is not None and not stated.month:
        return weekday_of(other) in (stated.weekday, None)
    years = {stated.year, other.year} - {0}
    return (stated.month, stated.day) == (other.month, other.day) and len(years) < 2


def _is_duration(figure: Figure) -> bool:
    return figure.unit is not None and figure.unit.dimension == "duration"


def _may_be(figure: Figure, fact: Fact) -> bool:
    if figure.unit is None or fact.unit is None:
        return True
    return figure.unit.may_be(fact.unit)


def _told_as(figure: Figure, fact: Fact) -> float:
    """Return a fact's value in the unit of the figure; without one, in its dimension's first."""
    if fact.unit is None:
        return fact.value
    if figure.unit is None:
        return fact.value * fact.unit.factor if fact.unit.dimension == "money" else fact.value
    return fact.unit.told_in(fact.value, figure.unit)


def _is_close(figure: Figure, fact: Fact) -> bool:
    if not _may_be(figure, fact):
        return False
    value = _told_as(figure, fact)
    if _near(figure, value):
        return True
    if figure.unit is None:
        return _near(figure, fact.value)
    if fact.unit is not None and not fact.unit.factor:
        # A temperature of no scale may be of either.
        scales = [unit for unit in _SCALED if unit.dimension == fact.unit.dimension]
        others = [scale.told_in(fact.value, figure.unit) for scale in scales]
        return any(abs(figure.value - other) <= figure.step * _STEP for other in others)
    if fact.unit is None or value == fact.value:
        return False
    off = max(figure.step * _STEP, abs(value) * _CONVERTED)
    return abs(figure.value - value) <= off


def _near(figure: Figure, value: float) -> bool:
    """Say whether a figure, rounded and hedged as it was said, may stand for `value`."""
    said, step = figure.value, figure.step
    if step == 1 and said >= _ROUND * 10 and said % _ROUND == 0:
        step = _ROUND
    off = abs(said - value)
    if off <= step / 2 + 1e-6:
        return True
    if figure.hedge == "about":
        return off <= max(step, min(abs(value) * _ABOUT, _last_place(said)))
    low, high = sorted((said, said * (_ABOVE if figure.hedge == "above" else _BELOW)))
    return bool(figure.hedge) and low - step / 2 <= value <= high + step / 2


def _last_place(said: float) -> float:
    """Return the size of the last place of a whole number that is not 0: 100 of 9,700, 5 of 35."""
    whole, place = int(abs(said)), 1
    while whole and whole % 10 == 0:
        whole, place = whole // 10, place * 10
    return float(place * 5 if whole % 5 == 0 else place)


def _written(value: float, figure: Figure) -> str:
    places = 0 if figure.step >= 1 else len(f"{figure.step:.9f}".rstrip("0").partition(".")[2])
    is_money = figure.unit is not None and figure.unit.dimension == "money"
    if is_money and not value.is_integer():
        places = 2
    elif places == 0 and abs(value) < 1 and not value.is_integer():
        places = 1
    return f"{int(value)}" if value.is_integer() else f"{value:.{places}f}"


def _clock(minute: int, instead: Time, written: str) -> str:
    """Write a time by a clock of 24 hours or 12, as the wrong one was written."""
    hour, minutes = divmod(minute, 60)
    lower = written.lower()
    if "am" in lower or "pm" in lower or ".m" in lower:
        return f"{(hour + 11) % 12 + 1}:{minutes:02} {'AM' if hour < 12 else 'PM'}"
    if instead.minute >= 780 and written[:2].isdecimal():
        return f"{hour:02}:{minutes:02}"
    return f"{(hour + 11) % 12 + 1}:{minutes:02}"
