"""What a clause says against a result: the unit of a figure, or the opposite of a state (open and
closed, on and off)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Any, Final, cast

from caal_node.grounding.earlier_results import name_words
from caal_node.grounding.ledger import LedgerEntry
from caal_node.grounding.quantities import Figure, stated_in
from caal_node.grounding.spoken_numbers import UNITS, WORDS, Unit
from caal_node.policy.heard_words import COMMON, stem, words

# Puts a figure right that has a result's number and another unit than it: "17 miles per hour" of
# `wind_kmh: 17`.
#
# Only what a result rules out is corrected: its number stands in the clause, its own unit is known
# by its name or its text, and no other value of the results is the one that is said. Lengths of
# time are left alone, as many of them follow from others.

FOUND_CHARS: Final = 1_500
"""Characters of results that are read, some 3 ms, once an answer. Where there are more, nothing is
corrected."""
_LEFT_ALONE: Final = frozenset({"duration", "money", "any", "share", "data"})
_NEAR: Final = 0.06
"""How far a converted value may lie from the right one: "about 10 miles per hour" of 17 km/h."""


@dataclass(frozen=True, slots=True)
class _Measure:
    value: float
    unit: Unit

    @property
    def scaled(self) -> float:
        return self.value * self.unit.factor + self.unit.offset


class StatedUnits:
    """Holds the units of clauses against those of the turn's `results`."""

    def __init__(self, results: Iterable[str]) -> None:
        self._results: Final = tuple(results)
        self._is_readable: Final = sum(map(len, self._results)) <= FOUND_CHARS

    def rightly(self, clause: str) -> str:
        """Return the clause with its units corrected."""
        if not self._is_readable:
            return clause
        for figure in reversed(stated_in(clause).figures):
            if (right := self._unit_of(figure)) is not None:
                spelt = WORDS["units"][right.name][3][0].replace("degrees c", "degrees C")
                spelt = spelt.replace("degrees f", "degrees F")
                clause = f"{clause[: figure.number.end]} {spelt}{clause[figure.end :]}"
        return clause

    def _unit_of(self, figure: Figure) -> Unit | None:
        """Return the unit that the number of a figure has in the results, where it is another."""
        unit = figure.unit
        if (
            unit is None
            or not _is_measure(unit)
            or figure.hedge
            or figure.start != figure.number.start
        ):
            return None
        same = [one for one in self._found if one.unit.dimension == unit.dimension]
        meant = _Measure(figure.value, unit).scaled
        if any(isclose(one.scaled, meant, rel_tol=_NEAR, abs_tol=1e-9) for one in same):
            return None
        units = {one.unit.name: one.unit for one in same if one.value == figure.value}
        return next(iter(units.values())) if len(units) == 1 else None

    @cached_property
    def _found(self) -> list[_Measure]:
        return [one for result in self._results for one in _measures(result)]


def _measures(result: str) -> Iterator[_Measure]:
    try:
        value: Any = json.loads(result) if result[:1] in ("{", "[") else result
    except (ValueError, RecursionError):
        value = result
    yield from _of(value, None)


def _of(value: Any, unit: Unit | None) -> Iterator[_Measure]:
    if isinstance(value, dict):
        members = cast("Mapping[str, Any]", value)
        own = members.get("unit")
        around = UNITS.get(own.lower()) if isinstance(own, str) else None
        for name, member in members.items():
            yield from _of(member, _named(name) or around or unit)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _of(member, unit)
    elif isinstance(value, str):
        for figure in stated_in(value).figures:
            if figure.unit is not None and _is_measure(figure.unit):
                yield _Measure(figure.value, figure.unit)
    elif unit is not None and _is_measure(unit) and type(value) in (int, float):
        yield _Measure(float(value), unit)


def _named(name: str) -> Unit | None:
    """Return the unit that a name ends in: `wind_kmh`."""
    parts = name_words(name)
    return UNITS.get(parts[-1]) if len(parts) > 1 else None


def _is_measure(unit: Unit) -> bool:
    return unit.factor > 0 and unit.dimension not in _LEFT_ALONE


STATES_MAX: Final = 64
"""States of a turn that are compared."""
_SIDES: Final[Mapping[str, tuple[int, int]]] = {
    word: (pair, side)
    for pair, sides in enumerate(WORDS["opposites"])
    for side, alike in enumerate(sides)
    for word in alike
}
STATE_STEMS: Final = frozenset(map(stem, _SIDES))
_WORDS: Final = "|".join(_SIDES)
_SAID: Final = re.compile(
    r"\b(?P<be>is|are|['’]s|['’]re|isn['’]t|aren['’]t)\s+"
    rf"(?P<between>(?:(?:not|still|now|currently|already|indeed|both|all)\s+)*)(?P<state>{_WORDS})\b"
    r"(?!\s+(?:the|your|a|an|my|his|her|its|their|for|to|until|from|every|mon|tue|wed|thu|fri|sat|sun)\b"
    r"|\s+\d)",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"^(\s*)(?:yes|no|yeah|nope)\b[,.!:]\s*", re.IGNORECASE)
_DEPTH_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class _State:
    pair: int
    side: int
    names: frozenset[str]


def says_state(clause: str) -> bool:
    """Say whether a clause reports a state that has an opposite: "the door is open"."""
    return _SAID.search(clause) is not None


def without_states(clause: str) -> str:
    """Return a clause without such states: "the door "."""
    return _SAID.sub(" ", clause)


def asks_for_state(request: str) -> bool:
    """Say whether a request has a word for such a state: "did I lock the door"."""
    return not STATE_STEMS.isdisjoint(map(stem, words(request)))


class StatedStates:
    """Holds the states that clauses tell against those of a turn's results."""

    def __init__(self, turn: Sequence[LedgerEntry]) -> None:
        self._states = list[_State]()
        # A call that changes something leaves what others have read before it behind.
        if all(entry.effect == "read" for entry in turn):
            for entry in turn:
                if entry.state == "done" and entry.result[:1] in ("{", "["):
                    self._states += list(_states_of(entry))[:STATES_MAX]

    def rightly(self, clause: str) -> str | None:
        """Return the clause with its state put right; None where it is not known to be wrong."""
        found = list(_SAID.finditer(clause))
        if len(found) != 1 or not self._states:
            return None
        (match,) = found
        word = match["state"].lower()
        pair, side = _SIDES[word]
        negated = "n" in match["be"][2:].lower() or "not" in match["between"].lower().split()
        told = (1 - side) if negated else side
        known = self._meant(pair, clause)
        if known is None or known == told:
            return None
        right = WORDS["opposites"][pair][known][0]
        be = {"isn": "is", "are": "are"}.get(match["be"].lower()[:3], match["be"])
        start, rest = clause[: match.start()], clause[match.end() :]
        if negated:
            # It said "not open" of what is open.
            right = match["state"] if known == side else right
        return _LEAD.sub(r"\1", f"{start}{be} {right}{rest}")

    def _meant(self, pair: int, clause: str) -> int | None:
        """Return the side on which all are that a clause may speak of; None where they differ."""
        states = [state for state in self._states if state.pair == pair]
        said = frozenset(map(stem, words(clause)))
        if len(states) > 1:
            shared = frozenset[str].intersection(*(state.names for state in states))
            states = [state for state in states if (state.names - shared) & said]
        return states[0].side if len(states) == 1 else None


def _states_of(entry: LedgerEntry) -> Iterator[_State]:
    try:
        value = json.loads(entry.result)
    except (ValueError, RecursionError):
        return
    yield from _within(value, frozenset(), 0)


def _within(value: Any, names: frozenset[str], depth: int) -> Iterator[_State]:
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _within(each, names, depth + 1)
        return
    if not isinstance(value, dict):
        return
    members = cast("dict[str, Any]", value)
    own = " ".join(one for one in members.values() if isinstance(one, str) and len(one) < 80)
    here = names | (frozenset(map(stem, words(own))) - COMMON - STATE_STEMS)
    for name, member in members.items():
        if isinstance(member, dict | list):
            within = names | frozenset(map(stem, words(name)))
            yield from _within(cast("Any", member), within, depth + 1)
        elif isinstance(member, bool) and name.lower() in _SIDES:
            pair, side = _SIDES[name.lower()]
            yield _State(pair, side if member else 1 - side, here)
        elif isinstance(member, str) and member.lower() in _SIDES:
            yield _State(*_SIDES[member.lower()], here)
