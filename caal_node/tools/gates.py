"""What stands between a call and its tool: three places where a rule can say no or change a value.

Each gate passes everything unless something else is put in its place. They are functions, so that
a rule is one function and two rules are two functions called in turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

from caal_node.tools.table import Entry

Arguments: TypeAlias = Mapping[str, Any]
Policy: TypeAlias = Callable[[Entry, Arguments], Awaitable[None]]
"""Raises ToolRefused where the call may not run."""
Plan: TypeAlias = Callable[[Entry, Arguments, str], AbstractAsyncContextManager[None]]
"""Held while the call (by its id) runs: what makes conflicting calls wait for each other."""
Redact: TypeAlias = Callable[[str], str]
"""Takes the text that would go to the model; gives it without what it may not see."""


async def allow_all(entry: Entry, arguments: Arguments) -> None:
    """No policy: each name in the table may be called."""


def all_at_once(
    entry: Entry, arguments: Arguments, call_id: str
) -> AbstractAsyncContextManager[None]:
    """No plan: calls of one reply run side by side."""
    return nullcontext()


def as_it_is(text: str) -> str:
    """No redaction."""
    return text


@dataclass(frozen=True, slots=True)
class Gates:
    policy: Policy = allow_all
    plan: Plan = all_at_once
    redact: Redact = as_it_is
