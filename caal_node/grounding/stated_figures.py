"""Whether the figures, times, dates and codes of a clause are those of the results.

A figure is right if it is in a result, in the person's own words or in a call's arguments: in
whatever unit, rounded as it was said, or as a count, a sum, a mean, a difference or a duration of
what is there. It is wrong if it is nowhere, or if it belongs to another thing, or another key, than
the one that the clause names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from caal_node.grounding.clause_facts import ClauseFacts, FactIndex
from caal_node.grounding.derived_figures import (
    ALL_OF,
    compares,
    is_count,
    is_derived,
    is_span,
    numbers_a_list,
)
from caal_node.grounding.fact_words import stemmed
from caal_node.grounding.figure_values import is_close, is_small, may_be, told_as, written
from caal_node.grounding.quantities import Figure, Stated
from caal_node.grounding.result_facts import Fact, Facts
from caal_node.grounding.spoken_times import Time
from caal_node.grounding.stated_times import is_known_day, is_known_time, right_time
from caal_node.policy.heard_words import stem, words

_FOLLOWING: Final = stemmed("following")
_FALLING: Final = stemmed("falling")
_JOINT: Final = re.compile(r"[,;:]|\b(?:and|but|with|while|or)\b")
_ONE_SCALE: Final = frozenset({"share", "money"})
"""Dimensions whose figures are taken for what the clause says: percent, the clause's currency."""
_SCORE: Final = re.compile(r"\d(?: to |-|–|:)$")
_SCORED: Final = re.compile(r"(?: to |-|–|:)(?:\d|[a-z]+\b)")
_NOUN_CHARS: Final = 24
_DECIMALS_KEPT: Final = 3
"""Decimals up to which two values are one."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong in a clause, by its characters, and what is right, where that is certain."""

    start: int
    end: int
    right: str | None = None


class StatedFigures:
    """Holds clauses against the facts of a turn."""

    def __init__(self, turn: Facts, told: Facts) -> None:
        """`turn` is of this turn's results, `told` of all else that may rightly be told."""
        self._index = FactIndex(turn, told)

    def wrong_in(self, text: str, stated: Stated) -> list[Wrong]:
        """Return what a clause states wrongly, in its order."""
        clause = self._index.facts_for(text, stated)
        times = [time for time in stated.times if time.is_sure]
        found = [
            *self._wrong_figures(clause),
            *(
                Wrong(time.start, time.end, right_time(time, clause))
                for time in times
                if not is_known_time(time, clause)
            ),
            *(Wrong(day.start, day.end) for day in stated.days if not is_known_day(day, clause)),
            *_wrong_codes(clause),
        ]
        return sorted(found, key=lambda wrong: wrong.start)

    def _wrong_figures(self, clause: ClauseFacts) -> Iterator[Wrong]:
        before = 0
        for figure in clause.stated.figures:
            is_any = figure.unit is not None and figure.unit.dimension == "any"
            skipped = is_any or numbers_a_list(figure, clause)
            if not skipped and self._is_of_results(figure, clause):
                wrong = self._judge(figure, _led(clause.text, before, figure), clause)
                if wrong is not None:
                    yield wrong
            before = figure.end

    def _is_of_results(self, figure: Figure, clause: ClauseFacts) -> bool:
        """Say whether a small number can be held against the results.

        "Two colours" and "in one go" count what no result has, so of such a number something must
        show what it is: a word of the results beside it, a score, a time, or a list that it counts.
        """
        turn = clause.turn
        if not is_small(figure) or not turn.words:
            return True
        if turn.times and any(_overlaps(figure, time) for time in clause.stated.times):
            return True
        behind = words(clause.text[figure.end : figure.end + _NOUN_CHARS])[:1]
        if behind and stem(behind[0]) in turn.words:
            return True
        led = clause.text[: figure.start].lower().rstrip()
        if self._index.is_led_by_label(led) or _SCORE.search(led):
            return True
        if _SCORED.match(clause.text, figure.end):
            return True
        return bool(turn.counts) and (not led or led.endswith(ALL_OF))

    def _judge(self, figure: Figure, led: str, clause: ClauseFacts) -> Wrong | None:
        label = self._index.label_in(led)
        facts = _labelled(label, figure, clause)
        if _is_known(figure, facts, clause) or _is_a_time(figure, clause):
            return None
        if not clause.said.isdisjoint(_FOLLOWING):
            return None
        if label is None and len(clause.stated.figures) == 1:
            # What stands behind a figure ("points") may be said of many a one, so it tells what is
            # right and not what is wrong.
            label = self._index.label_in(clause.text[figure.end :])
            facts = _labelled(label, figure, clause)
        right = None if compares(clause) else _right(figure, facts, label)
        # The unit stays as it was said; only what was added to the number goes.
        whole = right is None or figure.value != figure.number.value
        return Wrong(figure.start, figure.end if whole else figure.number.end, right)


def _overlaps(figure: Figure, time: Time) -> bool:
    return time.start <= figure.start and figure.end <= time.end


def _led(text: str, before: int, figure: Figure) -> str:
    """Return the words that lead to a figure, without those behind the figure before it."""
    led = text[before : figure.start]
    if not before:
        return led
    joint = _JOINT.search(led)
    return led[joint.end() :] if joint else ""


def _labelled(label: frozenset[str] | None, figure: Figure, clause: ClauseFacts) -> list[Fact]:
    """Return the figures of the results that one may be which has been named so."""
    own = [fact for fact in clause.figures if fact.label == label and may_be(figure, fact)]
    return own or clause.figures


def _is_known(figure: Figure, facts: Sequence[Fact], clause: ClauseFacts) -> bool:
    known = [*facts, *clause.told.figures]
    if any(is_close(figure, fact) for fact in known):
        return True
    if not clause.said.isdisjoint(_FALLING):
        below = replace(figure, value=-figure.value)
        if any(fact.value < 0 and is_close(below, fact) for fact in known):
            return True
    if figure.number.ordinal:
        days = [*clause.turn.days, *clause.told.days]
        return any(day.day == figure.value for day, _ in days)
    return (
        is_count(figure, clause)
        or is_derived(figure, clause.figures, clause)
        or is_span(figure, clause)
    )


def _is_a_time(figure: Figure, clause: ClauseFacts) -> bool:
    """Say whether what reads like a figure is a time of day that is right: "at four"."""
    return any(
        _overlaps(figure, time) and is_known_time(time, clause) for time in clause.stated.times
    )


def _right(figure: Figure, facts: Sequence[Fact], label: frozenset[str] | None) -> str | None:
    """Return the only value that can be meant, written as the wrong one was."""
    if figure.number.ordinal or (figure.unit is None and label is None):
        return None
    meant = {
        round(told_as(figure, fact), _DECIMALS_KEPT)
        for fact in facts
        if fact.exact
        and may_be(figure, fact)
        and (fact.unit is not None or label is not None)
        and not _has_no_scale(fact, figure)
        and (label is None or fact.label == label)
    }
    return written(meant.pop(), figure) if len(meant) == 1 else None


def _has_no_scale(fact: Fact, figure: Figure) -> bool:
    """Say whether a result's figure does not say its scale, and the clause's does."""
    if figure.unit is None or not figure.unit.factor:
        return False
    return fact.unit is None or (not fact.unit.factor and fact.unit.name not in _ONE_SCALE)


def _wrong_codes(clause: ClauseFacts) -> Iterator[Wrong]:
    known = [*clause.turn.digits, *clause.told.digits]
    for code in clause.stated.codes:
        if not any(code.digits in digits for digits in known):
            yield Wrong(code.start, code.end)
