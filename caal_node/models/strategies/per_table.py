"""Caching of what is made of a tool table, so that no request makes it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

from caal_node.context.prompt_tools import PromptTools

T = TypeVar("T")

TABLES_MAX: Final = 8
"""Tables whose result is kept. The rooms of one process share a table, and a reload makes another.
For 196 tools an index takes 18 ms to make, which would be on the event loop in every turn."""


def once_per_table(make: Callable[[PromptTools], T]) -> Callable[[PromptTools], T]:
    """Wrap `make` so that it runs once for each table, whichever object holds the table."""
    known: dict[str, T] = {}

    @wraps(make)
    def cached(tools: PromptTools) -> T:
        if tools.digest not in known:
            if len(known) >= TABLES_MAX:
                del known[next(iter(known))]
            known[tools.digest] = make(tools)
        return known[tools.digest]

    return cached
