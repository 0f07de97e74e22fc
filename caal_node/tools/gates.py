"""The three places between a call and its tool where an owner's rule can refuse, delay or redact.

Each place holds one function, so that a rule is a function and two rules are two functions called
in turn. Without a rule, every call is allowed and nothing is redacted; calls that conflict run one
after the other (`call_scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from caal_node.tools.source import Arguments
from caal_node.tools.table import ToolEntry

Policy: TypeAlias = Callable[[ToolEntry, Arguments], Awaitable[None]]
"""A policy raises ToolRefused where the call may not run."""
Redact: TypeAlias = Callable[[str], str]
"""A redaction takes text that would go to the model, and returns what the model may see of it."""


class CallTurn(AbstractContextManager[None], Protocol):
    """A call's turn among the other calls.

    It is entered in the order of the model's calls, before anything is awaited, and left when the
    call is over, whatever ended it.
    """

    async def come(self) -> None:
        """Wait until the call may run.

        Raises:
            ToolFailure: it may not run any more.
        """
        ...


Plan: TypeAlias = Callable[[ToolEntry, Arguments, str], CallTurn]
"""A plan gives a call its turn, by the call's entry, arguments and id."""


async def allow_all(entry: ToolEntry, arguments: Arguments) -> None:
    """Allow every call of a tool in the table."""


class _ImmediateTurn(nullcontext[None]):
    async def come(self) -> None:
        """Return at once."""


def all_at_once(entry: ToolEntry, arguments: Arguments, call_id: str) -> CallTurn:
    """Let all calls of a reply run side by side."""
    return _ImmediateTurn()


def redact_nothing(text: str) -> str:
    """Return the text as it is."""
    return text


@dataclass(frozen=True, slots=True)
class Gates:
    """The rules of one agent's pipeline."""

    policy: Policy = allow_all
    plan: Plan | None = None
    """None makes calls wait for earlier ones that they conflict with."""
    redact: Redact = redact_nothing
