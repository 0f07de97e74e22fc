"""Caching of what is made of a tool table, so that no request makes it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from caal_node.context.prompt_tools import PromptTools

P = ParamSpec("P")
T = TypeVar("T")

RESULTS_MAX: Final = 8
"""Results that are kept. The rooms of one process share a table, and a reload makes another. For
196 tools an index takes 18 ms to make, which would be on the event loop in every turn."""


def once_per_table(
    make: Callable[Concatenate[PromptTools, P], T],
) -> Callable[Concatenate[PromptTools, P], T]:
    """Wrap `make` so that it runs once for each table, whichever object holds the table.

    All further arguments have to be positional and hashable.
    """
    known: dict[tuple[object, ...], T] = {}

    @wraps(make)
    def cached(tools: PromptTools, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (tools.digest, *args)
        if key not in known:
            if len(known) >= RESULTS_MAX:
                del known[next(iter(known))]
            known[key] = make(tools, *args, **kwargs)
        return known[key]

    return cached
