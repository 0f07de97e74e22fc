"""The terms on which calls of a function tool run, where its author asks for more than LiveKit's.

A plain function tool runs as LiveKit runs it. One that is marked is treated as a remote tool is:
its calls have a deadline, its results are cut to what a small model can read, and calls that
conflict wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

T = TypeVar("T", bound=Callable[..., Any])

_ATTRIBUTE: Final = "__caal_call_terms__"


@dataclass(frozen=True, slots=True)
class CallTerms:
    """What holds for the calls of one tool."""

    source: str = ""
    """The toolset that it belongs to; "" leaves it to the agent's class."""
    timeout_s: float | None = None
    """Seconds that a call may take, where that is more than usual."""
    remembered: bool = True
    """Whether its results are kept for later turns, so that a person can refer to them."""


def with_terms(tool: T, terms: CallTerms) -> T:
    """Mark a function or a function tool with its terms, and return it."""
    setattr(tool, _ATTRIBUTE, terms)
    return tool


def terms_of(tool: object) -> CallTerms | None:
    """Return the terms of a function tool; None for one that runs as LiveKit runs it."""
    return cast("CallTerms | None", getattr(tool, _ATTRIBUTE, None))
