"""The remote tiers as one LiveKit toolset, whose tools are swapped at a reload.

LiveKit calls `setup` when the agent comes in and `aclose` when it leaves, so nothing here depends
on what a subclass does in `on_enter`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from livekit.agents import RunContext, ToolError, function_tool
from livekit.agents.llm import RawFunctionTool, Tool, ToolResult, Toolset

from caal_node.core.errors import ToolFailure
from caal_node.core.events import TierName, ToolProgress
from caal_node.core.paths import state_folder
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.embedding import kept_vectors
from caal_node.models.server_embedder import ServerEmbedder
from caal_node.tools.call_conversation import RoomCallConversation
from caal_node.tools.example_store import FILE_NAME, with_made
from caal_node.tools.outcomes import Verbatim, error_text
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.source import (
    Changing,
    Conversing,
    Growing,
    Listing,
    Polled,
    Searched,
    Serving,
    ToolSource,
)
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_catalog import ToolCatalog
from mcp_bridge import Embedder, ServerStatus
from mcp_bridge.embedding.semantic_index import SemanticIndex

logger = logging.getLogger("caal_node.tools")

DISCOVERY_S: Final = 15.0
"""Seconds all tiers together may take to list their tools; they are asked side by side."""


class RemoteToolset(Toolset):
    """Owns the tiers and the table; hands LiveKit one function tool for each remote entry."""

    def __init__(
        self,
        tiers: Mapping[TierName, ToolSource],
        pipeline: Pipeline,
        *,
        methods: Callable[[], Sequence[ToolSpec]],
        on_ready: Callable[[], Awaitable[None]],
        on_close: Callable[[], Awaitable[None]],
        on_progress: Callable[[ToolProgress], None] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """`embedder` is this toolset's to close, where it can be closed."""
        super().__init__(id="caal-node")
        self.table: ToolTable = ToolTable()
        self.failed: Mapping[str, str] = {}
        self._tiers = tiers
        self._pipeline = pipeline
        self._methods = methods
        self._on_ready = on_ready
        self._on_close = on_close
        self._on_progress = on_progress
        self._growing: set[asyncio.Task[None]] = set()
        self._listings: dict[TierName, Listing] = {}
        self._polls: list[asyncio.Task[None]] = []
        self._reloading = asyncio.Lock()
        self._whole = ToolCatalog((), ToolTable)
        self._embedder = embedder
        self._meanings = SemanticIndex(embedder, kept_vectors()) if embedder else None

    async def setup(self) -> RemoteToolset:
        for name, tier in self._tiers.items():
            if isinstance(tier, Changing):
                tier.watch(partial(self._changed, name))
        try:
            await self.reload()
        except Exception:
            # LiveKit would go on without a word, and without what attends the agent.
            logger.exception("the tools could not be listed; a reload tries again")
        await self._on_ready()
        self._polls += [
            asyncio.create_task(self._poll(name, tier.poll_s))
            for name, tier in self._tiers.items()
            if isinstance(tier, Polled) and tier.poll_s
        ]
        return self

    async def aclose(self) -> None:
        beside, self._polls = [*self._polls, *self._growing], []
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        # Side by side, and one that fails leaves none of the others open.
        closing = [self._on_close(), *(tier.aclose() for tier in self._tiers.values())]
        for ended in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(ended, Exception):
                logger.error("closing the tools failed", exc_info=ended)
        if self._meanings is not None:
            await self._meanings.aclose()
        if isinstance(self._embedder, ServerEmbedder):
            await self._embedder.aclose()

    async def reload(self, only: TierName | None = None) -> None:
        """List every tier afresh, or one of them, and swap table and tools in one step.

        `failed` holds the sources that could not be listed, with their reasons; whether such a
        source keeps the tools it had is its tier's to say. A tier that fails as a whole keeps them.
        """
        async with self._reloading:
            names: list[TierName] = list(self._tiers) if only is None else [only]
            listings = await asyncio.gather(*(self._listed(name) for name in names))
            if only is not None and self._listings.get(only) == listings[0]:
                return
            self._listings.update(zip(names, listings, strict=True))
            await self._swap()
        for source, reason in self.failed.items():
            logger.warning("tools of %s are missing: %s", source, reason)
        logger.info("%d tools, %d sources failed", len(self.table), len(self.failed))

    async def whole(self) -> ToolCatalog:
        """All tools of all tiers, also those that the model has to search for."""
        specs = [*self._methods()]
        for name, tier in self._tiers.items():
            if isinstance(tier, Searched):
                specs += await tier.everything()
            else:
                specs += self._listings.get(name, Listing()).specs
        if self._whole.specs != tuple(specs):
            self._whole = await asyncio.to_thread(ToolCatalog, specs, _table)
        return self._whole

    async def find(self, patterns: Sequence[str]) -> list[ToolEntry]:
        """Those of `whole` that match, best first."""
        return await (await self.whole()).find(patterns, self._meanings)

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """How each configured MCP server is doing."""
        serving = (tier for tier in self._tiers.values() if isinstance(tier, Serving))
        return tuple(itertools.chain.from_iterable(tier.servers for tier in serving))

    async def run(self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any]) -> Any:
        """Run a remote tool for someone who is not the model; gives the value as it came.

        Raises:
            ToolFailure: as `Pipeline.run`.
        """
        tier = self._tiers[entry.spec.tier]

        async def work() -> Any:
            return await tier.call(entry.spec, arguments)

        return await self._pipeline.run(entry, call_id, arguments, work, plain=lambda _: False)

    async def _grow(self, name: TierName) -> None:
        """Take in what a search has found: it can be called from the next request on."""
        tier = self._tiers[name]
        if isinstance(tier, Growing) and (listing := tier.grown()) is not None:
            async with self._reloading:
                self._listings[name] = listing
                await self._swap()

    def _changed(self, name: TierName) -> None:
        task = asyncio.create_task(self._grow(name), name="caal-tools-changed")
        self._growing.add(task)
        task.add_done_callback(self._growing.discard)

    async def _swap(self) -> None:
        """Make table and tools those of the listings."""
        known = [self._listings.get(name, Listing()) for name in self._tiers]
        specs: list[ToolSpec] = [
            *self._methods(),
            *(spec for one in known for spec in one.specs),
        ]
        # A large schema takes 0.4 ms to compact; a hundred of them would be heard.
        table = await asyncio.to_thread(_table, specs)
        tools: list[Tool | Toolset] = [
            self._tool(entry) for entry in table if entry.spec.tier in self._tiers
        ]
        self.failed = {k: v for one in known for k, v in one.failed.items()}
        self.table = table
        self._tools = tools  # what LiveKit reads, anew for each request

    async def _poll(self, name: TierName, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.reload(name)
            except Exception:  # the next look may go well
                logger.exception("looking for %s tools failed", name)

    async def _listed(self, name: TierName) -> Listing:
        try:
            async with asyncio.timeout(DISCOVERY_S):
                return await self._tiers[name].discover()
        except TimeoutError:
            why = f"gave no list of tools in {DISCOVERY_S:g} seconds"
        except Exception as error:  # a tier's own defect must not stop the session either
            logger.exception("listing the %s tools failed", name)
            why = f"listing its tools failed with {type(error).__name__}"
        before = self._listings.get(name, Listing())
        return Listing(before.specs, {**before.failed, name: why})

    def _tool(self, entry: ToolEntry) -> RawFunctionTool[..., Any]:
        tier = self._tiers[entry.spec.tier]

        async def call(
            raw_arguments: dict[str, object], context: RunContext[Any]
        ) -> str | ToolResult:
            words: list[str] = []

            async def run() -> Any:
                if isinstance(tier, Conversing):
                    value = await caller.attend(tier.call_for(entry.spec, raw_arguments, caller))
                else:
                    value = await tier.call(entry.spec, raw_arguments)
                await self._grow(entry.spec.tier)
                if isinstance(value, Verbatim):
                    words.append(value.words)
                    return value.value
                return value

            call_id = context.function_call.call_id
            caller = RoomCallConversation(
                entry, context, self._pipeline.redacted, self._on_progress
            )
            try:
                line = await self._pipeline.run(entry, call_id, raw_arguments, run)
            except ToolFailure as failure:
                if failure.words is None:
                    raise ToolError(error_text(failure)) from failure
                words, line = [failure.words], error_text(failure)
            if words and not context.speech_handle.interrupted:
                # The author's own sentence, as it stands: the model is not asked for another one.
                context.session.say(self._pipeline.redacted(words[0]))
                return ToolResult(line, reply_required=False)
            return line

        return function_tool(call, raw_schema=dict(entry.schema["function"]))


def _table(specs: Sequence[ToolSpec]) -> ToolTable:
    return ToolTable(with_made(specs, state_folder() / FILE_NAME))
