"""Whether a figure is made of what results state: a count, a sum, a difference, a time between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from caal_node.grounding.clause_facts import ClauseFacts
from caal_node.grounding.fact_words import WORDS, listed, stemmed
from caal_node.grounding.figure_values import is_duration, is_near, may_be, told_as
from caal_node.grounding.quantities import Figure
from caal_node.grounding.result_facts import Fact
from caal_node.policy.heard_words import stem, words

PAIRS_MAX: Final = 48
"""Values of which differences are made: beyond them anything would be one."""
_DAY_MINUTES: Final = 1_440
_COUNTED_UNITS: Final = frozenset({"hour", "day", "week"})
"""Units of which a list has one element each: "the next three days"."""
_MULTIPLES: Final = (2.0, 3.0, 0.5)
_SCALES: Final = frozenset({5.0, 10.0, 100.0})
"""Ends of scales: "4.3 out of 5"."""
_RELATIVE_CHARS: Final = 24
"""How far before a duration the word may stand that makes it one from now on."""
_COMPARING: Final = stemmed("comparing")
_SUMMING: Final = stemmed("summing")
_MULTIPLYING: Final = stemmed("multiplying")
_FROM_TODAY: Final = stemmed("from_today")
_FROM_NOW: Final = listed("from_now")
_OTHERS: Final = stemmed("others")
ALL_OF: Final[tuple[str, ...]] = tuple(WORDS["all_of"])
"""What stands before a number that counts all that there is."""
_PART_OF: Final = listed("part_of")
_NUMBERING: Final = listed("numbering")
_COMPARATIVE: Final = re.compile(r"\s(?!after|other|under|over|later\b)[a-z]{3,}er\b")
"""What follows a difference: "29 grams lighter"."""
_LIST_MARK: Final = re.compile(r"[\s*_]*$")


def compares(clause: ClauseFacts) -> bool:
    """Say whether a clause compares, so that a figure of it may be a difference."""
    if not clause.said.isdisjoint(_COMPARING):
        return True
    behind = (
        clause.text[figure.end : figure.end + _RELATIVE_CHARS] for figure in clause.stated.figures
    )
    return any(_COMPARATIVE.match(text) for text in behind)


def numbers_a_list(figure: Figure, clause: ClauseFacts) -> bool:
    """Say whether a figure says which one of a list: "1. Milk", "item number five"."""
    before = clause.text[: figure.start]
    if clause.text[figure.end : figure.end + 1] in (".", ")") and _LIST_MARK.match(before):
        return True
    most = max(clause.turn.counts | clause.told.counts, default=0)
    led = before.lower().split()[-1:]
    return bool(led) and led[0] in _NUMBERING and figure.value <= most


def is_count(figure: Figure, clause: ClauseFacts) -> bool:
    """Say whether a figure may count what is listed, or a part of it."""
    if figure.unit is not None and figure.unit.name not in _COUNTED_UNITS:
        return False
    before = clause.text[: figure.start].lower().rstrip()
    if before.endswith("out of") and figure.value in _SCALES:
        return True
    counts = clause.turn.counts | clause.told.counts
    if figure.value in counts:
        return True
    if figure.value + 1 in counts and not clause.said.isdisjoint(_OTHERS):
        return True
    return 0 < figure.value < max(counts, default=0) and _is_part(figure, before, clause)


def _is_part(figure: Figure, before: str, clause: ClauseFacts) -> bool:
    """Say whether a number may count some of what is listed, as it is not said to count all."""
    behind = clause.text[figure.end : figure.end + 40].lower().split()[:1]
    if not before or before.split()[-1] in _PART_OF or behind == ["of"]:
        return True
    if before.endswith(ALL_OF) or not behind:
        return False
    thing = stem(re.sub(r"\W", "", behind[0]))
    return figure.value <= clause.turn.listed.get(thing, 0)


def is_derived(figure: Figure, facts: Sequence[Fact], clause: ClauseFacts) -> bool:
    """Say whether a figure is a sum, a mean or, where the clause compares, a difference."""
    own = [fact for fact in facts if fact.exact and fact.keyed and may_be(figure, fact)]
    by_word: dict[str, list[float]] = {}
    for fact in own:
        for word in fact.label:
            by_word.setdefault(word, []).append(told_as(figure, fact))
    for column in by_word.values():
        if len(column) < 2:
            continue
        total = sum(column)
        if _is_one_of(figure, (total, total / len(column))):
            return True
        pairs = (one + other for one, other in combinations(column[:PAIRS_MAX], 2))
        if not clause.said.isdisjoint(_SUMMING) and _is_one_of(figure, pairs):
            return True
    if not clause.said.isdisjoint(_MULTIPLYING):
        values = [*(told_as(figure, fact) for fact in own), *(f.value for f in clause.told.figures)]
        if _is_one_of(figure, (value * by for value in values for by in _MULTIPLES)):
            return True
    if not (compares(clause) or is_duration(figure)):
        return False
    near = [*clause.turn.figures, *clause.told.figures]
    every = {told_as(figure, fact) for fact in near if fact.exact and may_be(figure, fact)}
    pairs = combinations(sorted(every)[:PAIRS_MAX], 2)
    return _is_one_of(figure, (other - one for one, other in pairs))


def is_span(figure: Figure, clause: ClauseFacts) -> bool:
    """Say whether a figure is the time between two times, or may be that from now to one."""
    if not is_duration(figure):
        return False
    turn = clause.turn
    led = words(clause.text[max(0, figure.start - _RELATIVE_CHARS) :])
    if turn.has_moments or ((turn.times or turn.days) and not _FROM_NOW.isdisjoint(led)):
        return True
    if turn.days and not clause.said.isdisjoint(_FROM_TODAY):
        return True
    minutes = {fact.time.minute for fact in [*turn.times, *clause.told.times]}
    spans = {other - one for one, other in combinations(sorted(minutes)[:PAIRS_MAX], 2)}
    unit = figure.unit
    per_unit = 60 / unit.factor if unit is not None and unit.factor else 1.0
    every = spans | {_DAY_MINUTES - span for span in spans}
    return _is_one_of(figure, (span * per_unit for span in every))


def _is_one_of(figure: Figure, values: Iterable[float]) -> bool:
    return any(is_near(figure, value) for value in values)
