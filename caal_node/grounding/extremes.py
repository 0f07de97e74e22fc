"""Which thing of a list comes first or last by a field: the cheapest, the latest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from caal_node.grounding.earlier_results import EarlierResult, Thing
from caal_node.grounding.reference_words import name_words

_NUMBER: Final = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_TIMES: Final = (
    re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+\S*)?"),
    re.compile(r"\d{2}:\d{2}(?::\d{2})?"),
)
"""Forms in which times compare as texts do."""


def extreme(
    result: EarlierResult, fields: Iterable[str], *, highest: bool, of_two: bool
) -> Thing | None:
    """Return the one thing that is first or last by its `fields`; None where it is open.

    It is open where the list was shortened, where a thing lacks the field, where two are equal,
    and where two fields disagree.
    """
    things = [thing for thing in result.things if isinstance(thing, Mapping)]
    if not result.is_whole or len(things) != len(result.things) or (of_two and len(things) != 2):
        return None
    wanted = frozenset(fields)
    keys = [key for key in things[0] if wanted.intersection(name_words(key))]
    chosen: list[int] = []
    for key in keys:
        values = _comparable([thing.get(key) for thing in things])
        if values is None:
            continue
        best = max(values) if highest else min(values)
        if values.count(best) != 1:
            return None
        chosen.append(values.index(best))
    return things[chosen[0]] if chosen and len(set(chosen)) == 1 else None


def _comparable(values: Sequence[Any]) -> list[Any] | None:
    """Return `values` as numbers, or as times that compare as texts; None where they are not."""
    if all(isinstance(value, str) for value in values):
        if any(all(form.fullmatch(value) for value in values) for form in _TIMES):
            return list(values)
        numbers = [_NUMBER.findall(value) for value in values]
        if all(len(found) == 1 for found in numbers):
            return [float(found[0].replace(",", ".")) for found in numbers]
        return None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return list(values)
    return None
