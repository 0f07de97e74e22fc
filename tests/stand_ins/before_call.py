"""A middleware of the tests' own, made of one function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest


class BeforeCall(CallMiddleware):
    """Awaits a function before each call; what it raises is why the call does not run."""

    name = "before_call"

    def __init__(self, rule: Callable[[ToolCallRequest], Awaitable[None]]) -> None:
        self._rule = rule

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        await self._rule(call)
        return await proceed()
