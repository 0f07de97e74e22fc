"""The second tier: n8n workflows, each called by its webhook."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Any, Final

import n8n
from caal_node.errors import (
    InvalidArguments,
    ToolBroke,
    ToolFailure,
    ToolRefused,
    ToolTimeout,
    ToolUnavailable,
)
from caal_node.tools.spec import Example, ToolSpec
from caal_node.tools.tiers.port import Listing

logger = logging.getLogger("caal_node.tools")

SOURCE: Final = "n8n"
_KINDS: Final[Mapping[str, type[ToolFailure]]] = MappingProxyType(
    {
        "timeout": ToolTimeout,
        "workflow_timeout": ToolTimeout,
        "unreachable": ToolUnavailable,
        "not_registered": ToolUnavailable,
        "rate_limited": ToolUnavailable,
        "unknown_tool": ToolUnavailable,
        "invalid_arguments": InvalidArguments,
        "auth": ToolRefused,
    }
)
"""What n8n's kinds of failure are in this project's tree; every other one is ToolBroke."""


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
        self._base_url = base_url
        self._mcp_token = mcp_token
        self._api_key = api_key
        self._call_timeout_s = call_timeout_s
        self._open = AsyncExitStack()
        self._n8n: n8n.N8nTools | None = None

    async def discover(self) -> Listing:
        try:
            found = await (await self._opened()).discover()
        except n8n.N8nError as error:
            return Listing(failed={SOURCE: str(error)})
        for notice in found.notices:
            logger.warning("n8n: %s", notice)
        return Listing(tuple(_spec(tool) for tool in found.tools))

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        try:
            result = await (await self._opened()).call(spec.name, dict(arguments))
        except n8n.N8nError as error:
            if error.mend:
                logger.warning("%s: %s; %s", spec.name, error.kind, error.mend)
            raise _KINDS.get(error.kind, ToolBroke)(str(error)) from error
        return result.value

    async def aclose(self) -> None:
        self._n8n = None
        await self._open.aclose()

    async def _opened(self) -> n8n.N8nTools:
        """Raises: n8n.N8nError: the address or a secret is malformed."""
        if self._n8n is None:
            tools = n8n.N8nTools(
                self._base_url,
                mcp_token=self._mcp_token,
                api_key=self._api_key,
                call_timeout_s=self._call_timeout_s,
            )
            self._n8n = await self._open.enter_async_context(tools)
        return self._n8n


def _spec(tool: n8n.WorkflowTool) -> ToolSpec:
    return ToolSpec(
        tier="n8n",
        source=SOURCE,
        name=tool.name,
        wanted=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        examples=tuple(Example(e.utterance, e.arguments) for e in tool.examples),
    )
