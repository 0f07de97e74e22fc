"""The remote tiers as one LiveKit toolset, whose tools are swapped at a reload.

LiveKit calls `setup` when the agent comes in and `aclose` when it leaves, so nothing here depends
on what a subclass does in `on_enter`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from livekit.agents import RunContext, ToolError, function_tool
from livekit.agents.llm import RawFunctionTool, Tool, Toolset

from caal_node.errors import ToolFailure
from caal_node.events import TierName
from caal_node.tools.outcome import error_text
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.spec import ToolSpec
from caal_node.tools.table import Entry, ToolTable
from caal_node.tools.tiers.port import Listing, Tier

logger = logging.getLogger("caal_node.tools")

DISCOVERY_S: Final = 15.0
"""Seconds all tiers together may take to list their tools; they are asked side by side."""


class RemoteTools(Toolset):
    """Owns the tiers and the table; hands LiveKit one function tool for each remote entry."""

    def __init__(
        self,
        tiers: Mapping[TierName, Tier],
        pipeline: Pipeline,
        *,
        methods: Callable[[], Sequence[ToolSpec]],
        on_ready: Callable[[], Awaitable[None]],
        on_close: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(id="caal-node")
        self.table: ToolTable = ToolTable()
        self.failed: Mapping[str, str] = {}
        self._tiers = tiers
        self._pipeline = pipeline
        self._methods = methods
        self._on_ready = on_ready
        self._on_close = on_close
        self._reloading = asyncio.Lock()

    async def setup(self) -> RemoteTools:
        try:
            await self.reload()
        except Exception:
            # LiveKit would go on without a word, and without what attends the agent.
            logger.exception("the tools could not be listed; a reload tries again")
        await self._on_ready()
        return self

    async def aclose(self) -> None:
        # Side by side, and one that fails leaves none of the others open.
        closing = [self._on_close(), *(tier.aclose() for tier in self._tiers.values())]
        for ended in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(ended, Exception):
                logger.error("closing the tools failed", exc_info=ended)

    async def reload(self) -> None:
        """List every tier afresh and swap table and tools in one step.

        A tier that cannot be listed keeps none of its tools; it is in `failed` with its reason.
        """
        async with self._reloading:
            listings = await asyncio.gather(*(self._listed(t) for t in self._tiers))
            specs = [*self._methods(), *(spec for one in listings for spec in one.specs)]
            # A large schema takes 0.4 ms to compact; a hundred of them would be heard.
            table = await asyncio.to_thread(ToolTable, specs)
            tools: list[Tool | Toolset] = [
                self._tool(entry) for entry in table if entry.spec.tier in self._tiers
            ]
            self.failed = {k: v for one in listings for k, v in one.failed.items()}
            self.table = table
            self._tools = tools  # what LiveKit reads; it takes effect at the next turn
        for source, reason in self.failed.items():
            logger.warning("tools of %s are missing: %s", source, reason)
        logger.info("%d tools, %d sources failed", len(table), len(self.failed))

    async def _listed(self, name: TierName) -> Listing:
        try:
            async with asyncio.timeout(DISCOVERY_S):
                return await self._tiers[name].discover()
        except TimeoutError:
            return Listing(failed={name: f"gave no list of tools in {DISCOVERY_S:g} seconds"})
        except Exception as error:  # a tier's own defect must not stop the session either
            logger.exception("listing the %s tools failed", name)
            return Listing(failed={name: f"listing its tools failed with {type(error).__name__}"})

    def _tool(self, entry: Entry) -> RawFunctionTool[..., Any]:
        tier = self._tiers[entry.spec.tier]

        async def call(raw_arguments: dict[str, object], context: RunContext[Any]) -> str:
            try:
                return await self._pipeline.run(
                    entry,
                    context.function_call.call_id,
                    raw_arguments,
                    lambda: tier.call(entry.spec, raw_arguments),
                )
            except ToolFailure as failure:
                raise ToolError(error_text(failure)) from failure

        return function_tool(call, raw_schema=dict(entry.schema["function"]))
