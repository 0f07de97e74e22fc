"""The remote tiers as one LiveKit toolset, the table of all tiers, and the search over it.

LiveKit calls `setup` when the agent enters a session and `aclose` when it leaves, so nothing here
depends on what a subclass of the agent does in `on_enter`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from livekit.agents.llm import Tool, Toolset

from caal_node.context.token_estimate import text_tokens
from caal_node.core.events import TierName, ToolSourceChanged, ToolsTold
from caal_node.core.tool_spec import ToolSpec
from caal_node.telemetry.spans import write_tools
from caal_node.tools.argument_check import fits
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_calls import RemoteCalls, RemoteTool
from caal_node.tools.source import ToolListing, ToolProvider, ToolSource, as_tool_source
from caal_node.tools.table import ToolEntry, ToolTable
from caal_node.tools.tool_search import (
    PromptHead,
    ToolSearch,
    UsedTools,
    search_answer,
    search_patterns,
    search_spec,
)
from mcp_bridge import Embedder, ServerStatus
from mcp_bridge.core.computing import computed

logger = logging.getLogger("caal_node.tools")

DISCOVERY_S: Final = 15.0
"""Seconds all tiers together may take to list their tools; they are asked side by side."""
_LOGGED: Final = 20
"""So many tools that are missing or new are logged one by one; a server may list thousands."""


class HasOwnTools(Protocol):
    """An agent with tools of its own."""

    async def own_specs(self) -> Sequence[ToolSpec]:
        """Describe the agent's function tools that are not remote."""
        ...


class Stay(Protocol):
    """What begins and ends with an agent's stay in a session."""

    async def prepare(self) -> None:
        """Do what has to be done before any source is asked."""
        ...

    async def begin(self) -> None:
        """Begin, once all sources were listed."""
        ...

    def note_tools(self) -> None:
        """Hear that the table of tools is another one."""
        ...

    async def aclose(self) -> None: ...


class RemoteToolset(Toolset):
    """Owns the sources and the table, and gives LiveKit function tools of the remote entries.

    `head` has the tools at every prompt's front. Where those are not all, LiveKit is given them
    alone, and `function_tools` makes those that a turn has told of.
    """

    def __init__(
        self,
        tiers: Mapping[TierName, ToolProvider],
        pipeline: Pipeline,
        *,
        own: HasOwnTools | None = None,
        stay: Stay | None = None,
        head: PromptHead | None = None,
        embedder: Embedder | None = None,
        used: UsedTools | None = None,
    ) -> None:
        """Nothing is listed before `setup`.

        Args:
            own: The agent, whose own tools are in the table too.
            stay: What begins and ends with the agent's stay in a session.
            head: It says which tools stand at every prompt's front; None puts all there.
            embedder: Makes searches go by meaning too. It is this toolset's to close, where it can
                be closed.
            used: It counts what is used, for the head; None counts nothing.
        """
        super().__init__(id="caal-node")
        self.table: ToolTable = ToolTable()
        """The tools of all tiers, whether prompts show them or not."""
        self.search: ToolEntry = self.table.beside(search_spec(self.table))
        """The tool that finds the others. It is not in the table; only a reload changes it."""
        self._head: frozenset[str] | None = None
        self._given: list[Tool | Toolset] | None = None
        """What LiveKit reads, made when it is first asked for."""
        self._methods_listed: tuple[ToolSpec, ...] = ()
        """The agent's own tools, as the table has them."""
        self._late: tuple[ToolTable, tuple[ToolSpec, ...], ToolTable] | None = None
        """A table, own tools that came after it, and the table with those."""
        self.failed: Mapping[str, str] = {}
        self._reported: dict[str, str] | None = None
        """What is reported of `failed`; None before anybody listens."""
        self.new: tuple[str, ...] = ()
        """What known MCP servers have added, and nobody has accepted yet."""
        self._sources: Mapping[TierName, ToolSource] = {
            tier: as_tool_source(provider) for tier, provider in tiers.items()
        }
        self._pipeline = pipeline
        for source in self._sources.values():
            pipeline.redaction.add(source)
        self._own: Final = own
        self._stay: Final = stay
        self._head_rule = head
        self._used: Final = used
        self.calls: Final = RemoteCalls(self._sources, pipeline, self)
        """Runs the calls of remote tools."""
        self._listings = dict.fromkeys(self._sources, ToolListing())
        self._polls: list[asyncio.Task[None]] = []
        self._changes: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._finder = ToolSearch(embedder, self._hides)

    async def setup(self) -> RemoteToolset:
        """List the tools for the first time, then begin to watch for changes."""
        if self._stay is not None:
            await self._stay.prepare()
        for tier, source in self._sources.items():
            source.watch_changes(partial(self._on_change, tier))
        try:
            await self.reload()
        except Exception:
            # LiveKit would go on without a word, and without the agent's other services.
            logger.exception("the tools could not be listed; a reload tries again")
        if self._stay is not None:
            await self._stay.begin()
        async with self._reloading:
            self._reported = {}
            await self._report_sources()
        self._polls += [
            asyncio.create_task(self._poll(tier, source.poll_s), name="caal-tools-poll")
            for tier, source in self._sources.items()
            if source.poll_s
        ]
        return self

    async def aclose(self) -> None:
        """End what runs in the background, and close every source, even where one of them fails."""
        self._pipeline.undos.clear()
        tasks = [*self._polls, *self._changes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closing = [*self._sources.values(), *([] if self._stay is None else [self._stay])]
        ends = (each.aclose() for each in closing)
        for result in await asyncio.gather(*ends, return_exceptions=True):
            if isinstance(result, Exception):
                logger.error("closing the tools failed", exc_info=result)
        await self._finder.aclose()
        if self._used is not None:
            await asyncio.to_thread(self._used.save)

    def note_used(self, name: str) -> None:
        """Count a call of a tool that has worked in the conversation."""
        if self._used is not None:
            self._used.note(name)

    async def reload(self, only: TierName | None = None) -> None:
        """List every tier afresh, or one of them, and replace table and tools in one step.

        `failed` then says what could not be listed, and why. Whether a part of a source that failed
        keeps its tools is the source's decision; a source that fails as a whole keeps them.
        """
        async with self._reloading:
            if self._used is not None and only is None:
                await asyncio.to_thread(self._used.load)
            tiers: list[TierName] = list(self._sources) if only is None else [only]
            changed = await asyncio.gather(*(self._list(tier) for tier in tiers))
            if only is not None and not any(changed):
                return
            await self._replace_table(reloaded=only is None)
        for source, reason in itertools.islice(self.failed.items(), _LOGGED):
            logger.warning("tools of %s are missing: %s", source, reason)
        for name in self.new[:_LOGGED]:
            logger.warning("%s is new at a server that is known; read and accept it", name)
        if more := max(0, len(self.failed) - _LOGGED) + max(0, len(self.new) - _LOGGED):
            logger.warning("and so it is with %d more; `caal-node doctor` has them", more)
        logger.info("%d tools, %d sources failed", len(self.table), len(self.failed))

    @property
    def head(self) -> frozenset[str] | None:
        """The names at every prompt's front, the search tool among them; None: all tools are."""
        return self._head

    def allow_head(self, max_tokens: int) -> None:
        """Let all tools stand in front where they have at most so many estimated tokens."""
        if self._head_rule is not None and self._head_rule.max_tokens != max_tokens:
            self._head_rule = replace(self._head_rule, max_tokens=max_tokens)
            self.choose_head()

    def choose_head(self, *, reloaded: bool = True, most: int | None = None) -> None:
        """Settle which tools stand at every prompt's front, until the next table.

        Args:
            reloaded: Whether somebody has asked for the table; else a source has changed it.
            most: Estimated tokens that they may have, where the prompt has no room for more.
        """
        self._use_head(self._head_of(self.table, self.search, reloaded=reloaded, most=most))

    def _head_of(
        self, table: ToolTable, search: ToolEntry, *, reloaded: bool, most: int | None = None
    ) -> frozenset[str] | None:
        if self._head_rule is None:
            return None
        return self._head_rule.names(
            table,
            search.exposed,
            self._head,
            reloaded=reloaded,
            most=most,
            used=self._used.often if self._used is not None else (),
        )

    def _use_head(self, head: frozenset[str] | None) -> None:
        self._head = head
        self._given = None
        if head is not None:
            self._finder.prepare(self.table)

    @property
    def head_entries(self) -> tuple[ToolEntry, ...]:
        """The tools at every prompt's front, in the order of the table, behind the search tool."""
        if (head := self._head) is None:
            return tuple(self.table)
        return tuple(entry for entry in (self.search, *self.table) if entry.exposed in head)

    def stands_in_head(self, name: str) -> bool:
        """Say whether every prompt has the tool at its front; the search does when others do
        not."""
        return name in self.table if self._head is None else name in self._head

    def entry(self, name: str) -> ToolEntry | None:
        """Return the tool of an exposed name, the search included; None where there is none."""
        return self.search if name == self.search.exposed else self.table.get(name)

    @property
    def tools(self) -> Sequence[Tool | Toolset]:
        """What LiveKit is given without a turn: nothing that is on demand."""
        if self._given is None:
            entries = self.table if self._head is None else self.head_entries
            self._given = [*self.function_tools(entry.exposed for entry in entries)]
        return self._given

    def function_tools(self, names: Iterable[str]) -> list[RemoteTool]:
        """Return LiveKit's form of the remote tools among `names`, and of the search.

        The same tool has the same form each time. Names of the agent's own tools, which LiveKit has
        already, and unknown ones are left out.
        """
        entries = filter(None, map(self.entry, names))
        return [tool for each in entries if (tool := self.calls.function_tool(each)) is not None]

    async def fitting(self, words: str, besides: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names of the few tools that fit a person's words, best first.

        Those of `besides`, which the model knows of, are left out. Servers are prepared for calls.
        """
        table = self.table
        names = await self._finder.fitting(table, words, besides)
        self._wake([table.resolve(name) for name in names])
        return names

    async def whole_table(self) -> ToolTable:
        """Return the table, with what LiveKit's toolsets have found since it was made."""
        if (own := await self._own_specs()) == self._methods_listed:
            return self.table
        if self._late is None or self._late[:2] != (self.table, own):
            specs = [*own, *self._remote_specs()]
            self._late = self.table, own, await computed(self._make_table, specs)
        return self._late[2]

    async def find(self, patterns: Sequence[str]) -> list[ToolEntry]:
        """Return the tools of all tiers that match, best first, hidden ones too."""
        return await self._finder.find(await self.whole_table(), patterns)

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The state of each configured MCP server."""
        return tuple(itertools.chain.from_iterable(s.servers for s in self._sources.values()))

    async def run_search(self, arguments: Mapping[str, Any], request: str) -> Mapping[str, Any]:
        """Run the search tool: what it tells of can be called from then on."""
        patterns = search_patterns(arguments.get("patterns"))
        found = await self._finder.find_shown(self.table, patterns, request)
        starting = [server.name for server in self.servers if server.state == "starting"]
        told, answer = search_answer(found, starting)
        self._wake(told)
        tokens = text_tokens(json.dumps(answer, ensure_ascii=False)) if told else 0
        event = ToolsTold("search", tuple(entry.exposed for entry in told), tokens)
        write_tools(event)
        if told:
            self._pipeline.events.emit(event)
        logger.info("%s: %d match, %d told", self.search.exposed, len(found), len(told))
        return answer

    def _wake(self, entries: Sequence[ToolEntry]) -> None:
        for tier, source in self._sources.items():
            if specs := [entry.spec for entry in entries if entry.spec.tier == tier]:
                source.wake(specs)

    async def settled(self) -> None:
        """Wait until the changes that are reported by now are in the table."""
        if self._changes:
            await asyncio.wait(self._changes)

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
            await self._replace_table(methods, reloaded=methods is not None)

    def _make_table(self, specs: Sequence[ToolSpec]) -> ToolTable:
        """Make a table, and all that is asked of every tool of it, in the thread of the caller."""
        table = ToolTable(map(_with_fitting_examples, specs), self.table)
        _ = table.schema_tokens, table.prompt_tools, table.described, table.specs
        for entry in table:
            self._hides(entry)  # a policy remembers which of its rules fit a tool
        return table

    def _hides(self, entry: ToolEntry) -> bool:
        return self._head_rule is not None and self._head_rule.hides(entry)

    async def _own_specs(self) -> tuple[ToolSpec, ...]:
        return () if self._own is None else tuple(await self._own.own_specs())

    def _remote_specs(self) -> Iterable[ToolSpec]:
        return itertools.chain.from_iterable(one.specs for one in self._listings.values())

    async def _replace_table(
        self, methods: Sequence[ToolSpec] | None = None, *, reloaded: bool
    ) -> None:
        """Make the table from the listings, in a thread, then swap all that depends on it."""
        listings = list(self._listings.values())
        own = await self._own_specs() if methods is None else tuple(methods)
        specs, head_before = [*own, *self._remote_specs()], self._head
        table, search, head, failed = await computed(
            partial(self._made, specs, listings, reloaded=reloaded)
        )
        self.failed = failed
        self.new = tuple(itertools.chain.from_iterable(one.new for one in listings))
        self.table, self._methods_listed = table, own
        self.calls.forget_others(table)
        self.search = search
        if reloaded or self._head is head_before:
            self._use_head(head)
        else:  # a prompt had no room meanwhile
            self.choose_head(reloaded=False)
        if self._stay is not None:
            self._stay.note_tools()
        await self._report_sources()

    def _made(
        self, specs: Sequence[ToolSpec], listings: Sequence[ToolListing], *, reloaded: bool
    ) -> tuple[ToolTable, ToolEntry, frozenset[str] | None, Mapping[str, str]]:
        """Return what replaces table, search, head and `failed`, in the thread of the caller."""
        table = self._make_table(specs)
        search = table.beside(search_spec(table)) if reloaded else self.search
        redact = self._pipeline.redact
        failed = {name: redact(why) for one in listings for name, why in one.failed.items()}
        return table, search, self._head_of(table, search, reloaded=reloaded), failed

    async def _report_sources(self) -> None:
        """Tell of the sources that are down, or ready again, since the last time.

        Each event is a step of its own, as a server may have thousands of tools that are held.
        """
        if (reported := self._reported) is None:
            return
        now = self.failed
        for source in [source for source in reported if source not in now]:
            del reported[source]
            self._pipeline.events.emit(ToolSourceChanged(source, "ready"))
            await asyncio.sleep(0)
        for source, reason in now.items():
            if reported.get(source) != reason:
                reported[source] = reason
                self._pipeline.events.emit(ToolSourceChanged(source, "down", reason))
                await asyncio.sleep(0)

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


def _with_fitting_examples(spec: ToolSpec) -> ToolSpec:
    """Leave out the examples that do not fit the schema: they would teach refused calls."""
    examples = tuple(e for e in spec.examples if fits(spec.parameters, dict(e.arguments)))
    if not (left_out := len(spec.examples) - len(examples)):
        return spec
    logger.warning("%s: %d examples do not fit its schema", spec.wanted, left_out)
    return replace(spec, examples=examples)


def _failed(last: ToolListing, tier: TierName, reason: str) -> ToolListing:
    """Return the tier's last listing, with the reason why there is no new one."""
    return ToolListing(last.specs, {**last.failed, tier: reason})
