"""A number with its noun: `1 tool`, `2 tools`."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return the number and its noun. `many` is the plural where an "s" does not make it."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
