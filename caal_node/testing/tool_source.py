"""A source of remote tools inside the test's own process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import Arguments, CallConversation, ToolListing, ToolSource


class ScriptedToolSource(ToolSource):
    """Lists `specs`, and answers each call with what `answer` gives or raises.

    Put it in the place of n8n or MCP: `CaalAgent(tiers={"n8n": ScriptedToolSource(...)})`.
    """

    def __init__(
        self, *specs: ToolSpec, answer: Callable[[ToolSpec, Arguments], Awaitable[Any]]
    ) -> None:
        self.specs = list(specs)
        """What is listed. A test may change it and reload the agent's tools."""
        self.failed: dict[str, str] = {}
        """Sources that could not be listed, with the reasons."""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """The name at the source and the arguments of every call, in order."""
        self.closed = False
        self._answer = answer

    async def discover(self) -> ToolListing:
        return ToolListing(tuple(self.specs), dict(self.failed))

    async def call(
        self, spec: ToolSpec, arguments: Arguments, conversation: CallConversation | None = None
    ) -> Any:
        self.calls.append((spec.name, dict(arguments)))
        return await self._answer(spec, arguments)

    async def aclose(self) -> None:
        self.closed = True
