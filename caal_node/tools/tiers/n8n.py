"""The second tier: n8n workflows, each called by its webhook."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import n8n
from caal_node.errors import ToolBroke, ToolFailure, ToolTimeout, ToolUnavailable
from caal_node.tools.spec import Example, ToolSpec
from caal_node.tools.tiers.port import Listing

SOURCE = "n8n"


class N8nTier:
    """One n8n instance. Opened at the first discovery, since a session must not wait for it."""

    def __init__(
        self,
        base_url: str,
        *,
        mcp_token: str | None,
        api_key: str | None,
        call_timeout_s: float,
    ) -> None:
        self._open = AsyncExitStack()
        self._n8n = n8n.N8nTools(
            base_url, mcp_token=mcp_token, api_key=api_key, call_timeout_s=call_timeout_s
        )
        self._entered = False

    async def discover(self) -> Listing:
        if not self._entered:
            await self._open.enter_async_context(self._n8n)
            self._entered = True
        try:
            found = await self._n8n.discover()
        except n8n.N8nError as error:
            return Listing(failed={SOURCE: str(error)})
        return Listing(
            tuple(
                ToolSpec(
                    tier="n8n",
                    source=SOURCE,
                    name=tool.name,
                    wanted=tool.name,
                    description=tool.description,
                    parameters=tool.input_schema,
                    examples=tuple(Example(e.utterance, e.arguments) for e in tool.examples),
                )
                for tool in found.tools
            )
        )

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        try:
            result = await self._n8n.call(spec.name, dict(arguments))
        except n8n.N8nError as error:
            raise _failure(error) from error
        return result.value

    async def aclose(self) -> None:
        await self._open.aclose()


def _failure(error: n8n.N8nError) -> ToolFailure:
    kinds: dict[str, type[ToolFailure]] = {"timeout": ToolTimeout, "unreachable": ToolUnavailable}
    return kinds.get(error.kind, ToolBroke)(str(error))
