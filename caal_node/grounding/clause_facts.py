"""What a clause may speak of: the records that it names, and the labels in its words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from caal_node.grounding.fact_words import stemmed
from caal_node.grounding.quantities import Stated
from caal_node.grounding.result_facts import Fact, Facts, TimeFact, label_of
from caal_node.policy.heard_words import stem, words

_BESIDE: Final = stemmed("beside")
_SHORT_DIGITS: Final = 3
"""Digits from which on a number names a thing ("RJX 662"); shorter ones more often count things."""


@dataclass(frozen=True)
class ClauseFacts:
    """A clause with the facts that it is held against."""

    text: str
    said: frozenset[str]
    """The stems of its words."""
    stated: Stated
    turn: Facts
    """What the results of the turn state."""
    told: Facts
    """What else may rightly be told: earlier results, the person's words, arguments of calls."""
    apart: frozenset[int]
    """The records of the turn that the clause is not about."""

    @cached_property
    def figures(self) -> list[Fact]:
        """The figures of the results that the clause may be about."""
        return [fact for fact in self.turn.figures if fact.record not in self.apart]

    @cached_property
    def times(self) -> list[TimeFact]:
        """The times of the results that the clause may be about."""
        return [fact for fact in self.turn.times if fact.record not in self.apart]


class FactIndex:
    """Finds what clauses are about in the facts of a turn."""

    def __init__(self, turn: Facts, told: Facts) -> None:
        self._turn = turn
        self._told = told
        self._siblings = _siblings(turn)
        self._labels = {fact.label for fact in turn.figures if fact.keyed}
        every = [*turn.figures, *turn.times]
        self._led = frozenset[str]().union(*(fact.label for fact in every))
        shared = frozenset[str].intersection(*self._labels) if len(self._labels) > 1 else None
        self._shared = shared or frozenset[str]()

    def facts_for(self, clause: str, stated: Stated) -> ClauseFacts:
        """Return a clause with its facts."""
        said = frozenset(map(stem, words(clause)))
        return ClauseFacts(clause, said, stated, self._turn, self._told, self._apart(said))

    def label_in(self, text: str) -> frozenset[str] | None:
        """Return the one label that a text names; None where it is none or more than one."""
        known = frozenset(map(label_of, words(text)))
        hits = [(len((label - self._shared) & known), label) for label in self._labels]
        most = max((count for count, _ in hits), default=0)
        named = [label for count, label in hits if count == most > 0]
        return named[0] if len(named) == 1 else None

    def is_led_by_label(self, led: str) -> bool:
        """Say whether the last word before a figure stands before one in the results, too."""
        last = words(led)[-1:]
        return bool(last) and label_of(last[0]) in self._led

    def _apart(self, said: frozenset[str]) -> frozenset[int]:
        """Return the records beside the only one of its group that a clause names."""
        if said & _BESIDE:
            return frozenset()
        apart = set[int]()
        for group in self._siblings:
            named = [record for record, own in group if own & said]
            if len(named) == 1:
                apart |= {at for at, own in group if own or self._is_listed(at)} - {*named}
        if apart:
            # A record comes after the one within which it lies.
            for at, record in enumerate(self._turn.records):
                if record.parent in apart:
                    apart.add(at)
        return frozenset(apart)

    def _is_listed(self, record: int) -> bool:
        """Say whether a record is one of a list, and no whole result."""
        return self._turn.records[record].parent >= 0


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
        alone = {name for name, times in seen.items() if times == 1 and _names(name)}
        found.append([(at, facts.records[at].names & alone) for at in members])
    return found


def _names(word: str) -> bool:
    return not word.isdecimal() or len(word) >= _SHORT_DIGITS
