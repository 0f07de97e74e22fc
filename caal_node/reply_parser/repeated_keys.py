"""Keys that stand several times in one call's arguments.

Models that are asked for elements write a list as the same element again and again, and some do it
in JSON and in Python, too. All values are kept until the parameter's schema says whether it is a
list; where it is none, the last one counts, as in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class RepeatedValues(list[Any]):
    """The values of one key, in the order in which they were written."""


def collect(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping of `pairs`, with all the values of keys that stand in it twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        add(found, key, value)
    return found


def add(found: dict[str, Any], key: str, value: Any) -> None:
    """Add one value to `found`."""
    if key not in found:
        found[key] = value
    elif isinstance(found[key], RepeatedValues):
        found[key].append(value)
    else:
        found[key] = RepeatedValues([found[key], value])


def last(value: Any) -> Any:
    """Return what counts of a value where no list is wanted."""
    return value[-1] if isinstance(value, RepeatedValues) else value
