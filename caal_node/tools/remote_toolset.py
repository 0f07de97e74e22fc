"""The remote tiers as one LiveKit toolset, whose tools are replaced at a reload.

LiveKit calls `setup` when the agent enters a session and `aclose` when it leaves, so nothing here
depends on what a subclass of the agent does in `on_enter`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from livekit.agents import RunContext, function_tool
from livekit.agents.llm import RawFunctionTool, Tool, ToolResult, Toolset

from caal_node.core.caller import Caller
from caal_node.core.errors import ToolFailure
from caal_node.core.events import TierName, ToolProgress
from caal_node.core.paths import state_folder
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.embedding import ServerEmbedder, kept_vectors
from caal_node.tools.call_conversation import RoomCallConversation
from caal_node.tools.example_store import FILE_NAME, with_examples
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.source import (
    ToolListing,
    ToolProvider,
    ToolSource,
    VerbatimResult,
    as_tool_source,
)
from caal_node.tools.spoken_result import result_of, said
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_catalog import ToolCatalog
from mcp_bridge import Embedder, ServerStatus
from mcp_bridge.embedding.semantic_index import SemanticIndex

logger = logging.getLogger("caal_node.tools")

DISCOVERY_S: Final = 15.0
"""Seconds all tiers together may take to list their tools; they are asked side by side."""
_LOGGED: Final = 20
"""So many tools that are missing or new are logged one by one; a server may list thousands."""


class RemoteTool(RawFunctionTool[..., Any]):
    """LiveKit's form of a tool of a remote tier: its calls go through the pipeline."""


class RemoteToolset(Toolset):
    """Owns the sources and the table, and gives LiveKit a function tool for each remote entry."""

    def __init__(
        self,
        tiers: Mapping[TierName, ToolProvider],
        pipeline: Pipeline,
        *,
        methods: Callable[[], Sequence[ToolSpec]],
        on_ready: Callable[[], Awaitable[None]],
        on_close: Callable[[], Awaitable[None]],
        on_begin: Callable[[], None] = lambda: None,
        on_progress: Callable[[ToolProgress], None] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """`on_begin` is called before any source is asked, `on_ready` once all were listed.

        `embedder` is this toolset's to close, where it can be closed.
        """
        super().__init__(id="caal-node")
        self.table: ToolTable = ToolTable()
        self.failed: Mapping[str, str] = {}
        self.new: tuple[str, ...] = ()
        """What known MCP servers have added, and nobody has accepted yet."""
        self._sources: Mapping[TierName, ToolSource] = {
            tier: as_tool_source(provider) for tier, provider in tiers.items()
        }
        self._pipeline = pipeline
        for source in self._sources.values():
            pipeline.redaction.add(partial(getattr, source, "secrets"))
        self._methods = methods
        self._on_begin = on_begin
        self._on_ready = on_ready
        self._on_close = on_close
        self._on_progress = on_progress
        self._listings = dict.fromkeys(self._sources, ToolListing())
        self._polls: list[asyncio.Task[None]] = []
        self._changes: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._catalog = ToolCatalog((), ToolTable)
        self._embedder = embedder
        self._meanings = SemanticIndex(embedder, kept_vectors()) if embedder else None

    async def setup(self) -> RemoteToolset:
        """List the tools for the first time, then begin to watch for changes."""
        self._on_begin()
        for tier, source in self._sources.items():
            source.watch_changes(partial(self._on_change, tier))
        try:
            await self.reload()
        except Exception:
            # LiveKit would go on without a word, and without the agent's other services.
            logger.exception("the tools could not be listed; a reload tries again")
        await self._on_ready()
        self._polls += [
            asyncio.create_task(self._poll(tier, source.poll_s), name="caal-tools-poll")
            for tier, source in self._sources.items()
            if source.poll_s
        ]
        return self

    async def aclose(self) -> None:
        """End what runs in the background, and close every source, even where one of them fails."""
        tasks = [*self._polls, *self._changes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closing = [self._on_close(), *(source.aclose() for source in self._sources.values())]
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, Exception):
                logger.error("closing the tools failed", exc_info=result)
        if self._meanings is not None:
            await self._meanings.aclose()
        if isinstance(self._embedder, ServerEmbedder):
            await self._embedder.aclose()

    async def reload(self, only: TierName | None = None) -> None:
        """List every tier afresh, or one of them, and replace table and tools in one step.

        `failed` then says what could not be listed, and why. Whether a part of a source that failed
        keeps its tools is the source's decision; a source that fails as a whole keeps them.
        """
        async with self._reloading:
            tiers: list[TierName] = list(self._sources) if only is None else [only]
            changed = await asyncio.gather(*(self._list(tier) for tier in tiers))
            if only is not None and not any(changed):
                return
            await self._replace_table()
        for source, reason in itertools.islice(self.failed.items(), _LOGGED):
            logger.warning("tools of %s are missing: %s", source, reason)
        for name in self.new[:_LOGGED]:
            logger.warning("%s is new at a server that is known; read and accept it", name)
        if more := max(0, len(self.failed) - _LOGGED) + max(0, len(self.new) - _LOGGED):
            logger.warning("and so it is with %d more; `caal-node doctor` has them", more)
        logger.info("%d tools, %d sources failed", len(self.table), len(self.failed))

    async def catalog(self) -> ToolCatalog:
        """Return all tools of all tiers, those included that the model has to search for."""
        specs = [*self._methods()]
        for tier, source in self._sources.items():
            found = await source.all_tools()
            specs += self._listings[tier].specs if found is None else found
        if self._catalog.specs != tuple(specs):
            self._catalog = await asyncio.to_thread(ToolCatalog, specs, _make_table)
        return self._catalog

    async def find(self, patterns: Sequence[str]) -> list[ToolEntry]:
        """Return the tools of the catalog that match, best first."""
        return await (await self.catalog()).find(patterns, self._meanings)

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The state of each configured MCP server."""
        return tuple(itertools.chain.from_iterable(s.servers for s in self._sources.values()))

    async def call_directly(
        self, entry: ToolEntry, call_id: str, arguments: Mapping[str, Any], caller: Caller
    ) -> Any:
        """Run a remote tool for a caller who is not the model, and return the value as it came.

        Raises:
            ToolFailure: as `Pipeline.run`.
        """
        source = self._sources[entry.spec.tier]
        execute = partial(source.call, entry.spec, arguments)
        return await self._pipeline.run(
            entry, call_id, arguments, execute, becomes_text=lambda _: False, caller=caller
        )

    async def _call(
        self, entry: ToolEntry, arguments: Mapping[str, Any], context: RunContext[Any]
    ) -> str | ToolResult:
        """Run a remote tool for the model."""
        source = self._sources[entry.spec.tier]
        conversation = RoomCallConversation(
            entry, context, self._pipeline.redact, self._on_progress
        )

        async def execute() -> Any:
            value = await conversation.run(source.call(entry.spec, arguments, conversation))
            if self._changes:
                await asyncio.wait(self._changes)  # what it found is offered in the next request
            return value

        call_id = context.function_call.call_id
        try:
            result = await self._pipeline.run(entry, call_id, arguments, execute, context=context)
        except ToolFailure as failure:
            result = result_of(failure, self._pipeline.redact)
        return said(result, context) if isinstance(result, VerbatimResult) else result

    def _function_tool(self, entry: ToolEntry) -> RemoteTool:
        async def call(
            raw_arguments: dict[str, object], context: RunContext[Any]
        ) -> str | ToolResult:
            return await self._call(entry, raw_arguments, context)

        return RemoteTool(call, function_tool(call, raw_schema=dict(entry.schema["function"])).info)

    def _on_change(self, tier: TierName, listing: ToolListing) -> None:
        self._listings[tier] = listing
        change = asyncio.create_task(self.refresh(), name="caal-tools-changed")
        self._changes.add(change)
        change.add_done_callback(self._changes.discard)

    async def refresh(self, methods: Sequence[ToolSpec] | None = None) -> None:
        """Replace table and tools by what is listed now; `methods` are the agent's own from now on.

        None takes those that the agent has.
        """
        async with self._reloading:
            await self._replace_table(methods)

    async def _replace_table(self, methods: Sequence[ToolSpec] | None = None) -> None:
        """Make table and tools from the listings."""
        listings = list(self._listings.values())
        own = self._methods() if methods is None else methods
        specs = [*own, *(spec for listing in listings for spec in listing.specs)]
        # A large schema takes 0.4 ms to compact; a hundred of them would be heard.
        table = await asyncio.to_thread(_make_table, specs)
        tools: list[Tool | Toolset] = [
            self._function_tool(entry) for entry in table if entry.spec.tier in self._sources
        ]
        self.failed = {
            name: self._pipeline.redact(why) for one in listings for name, why in one.failed.items()
        }
        self.new = tuple(itertools.chain.from_iterable(one.new for one in listings))
        self.table = table
        self._tools = tools  # what LiveKit reads, anew for each request

    async def _poll(self, tier: TierName, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.reload(tier)
            except Exception:  # the next listing may go well
                logger.exception("listing the %s tools again failed", tier)

    async def _list(self, tier: TierName) -> bool:
        """List a tier afresh, and say whether its listing has changed.

        The listing is taken at once: one that the source reports later on is newer.
        """
        try:
            async with asyncio.timeout(DISCOVERY_S):
                listing = await self._sources[tier].discover()
        except TimeoutError:
            reason = f"gave no list of tools in {DISCOVERY_S:g} seconds"
            listing = _failed(self._listings[tier], tier, reason)
        except Exception as error:  # a source's own defect must not stop the session either
            logger.exception("listing the %s tools failed", tier)
            reason = f"listing its tools failed with {type(error).__name__}"
            listing = _failed(self._listings[tier], tier, reason)
        changed = listing != self._listings[tier]
        self._listings[tier] = listing
        return changed


def _failed(last: ToolListing, tier: TierName, reason: str) -> ToolListing:
    """Return the tier's last listing, with the reason why there is no new one."""
    return ToolListing(last.specs, {**last.failed, tier: reason})


def _make_table(specs: Sequence[ToolSpec]) -> ToolTable:
    return ToolTable(with_examples(specs, state_folder() / FILE_NAME))
