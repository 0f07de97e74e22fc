"""What stands between a call and its tool: three places where a rule can say no or change a value.

Policy and redaction pass everything unless something else is put in their place; the plan is
`line.py`'s unless another one is given. They are functions, so that a rule is one function and two
rules are two functions called in turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from caal_node.tools.table import ToolEntry

Arguments: TypeAlias = Mapping[str, Any]
Policy: TypeAlias = Callable[[ToolEntry, Arguments], Awaitable[None]]
"""Raises ToolRefused where the call may not run."""
Redact: TypeAlias = Callable[[str], str]
"""Takes the text that would go to the model; gives it without what it may not see."""


class CallTurn(AbstractContextManager[None], Protocol):
    """A call's place among the others.

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
"""The turn of a call, by its entry, arguments and id."""


async def allow_all(entry: ToolEntry, arguments: Arguments) -> None:
    """No policy: each name in the table may be called."""


class _AtOnce(nullcontext[None]):
    async def come(self) -> None:
        """Now."""


def all_at_once(entry: ToolEntry, arguments: Arguments, call_id: str) -> CallTurn:
    """No plan: calls of one reply run side by side."""
    return _AtOnce()


def as_it_is(text: str) -> str:
    """No redaction."""
    return text


@dataclass(frozen=True, slots=True)
class Gates:
    policy: Policy = allow_all
    plan: Plan | None = None
    """None: a line of the pipeline's own, where calls wait for earlier ones that they conflict
    with."""
    redact: Redact = as_it_is
