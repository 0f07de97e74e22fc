"""Many servers as one: their tools in one table, their failures in one place."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

from mcp_bridge.connection.catalogue import Catalogue
from mcp_bridge.connection.server_session import ServerSession, progress_reporter
from mcp_bridge.connection.session_pool import SessionPool, pool_of_loop
from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import CallTimeout, ConfigError, ServerUnavailable, UnknownTool
from mcp_bridge.core.server_config import Limits, ServerConfig
from mcp_bridge.core.tools import (
    CallRoute,
    EventSink,
    ReloadReport,
    ServerStatus,
    ToolCallResult,
    ToolDefinition,
    ToolInfo,
    ToolsChanged,
)
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.embedders import Embedder
from mcp_bridge.embedding.semantic_index import SemanticIndex, VectorCache
from mcp_bridge.protocol.tool_listing import exposed_tools, server_prefixes
from mcp_bridge.protocol.tool_results import check_arguments
from mcp_bridge.security.pins import Pins, VettedTools, shown_name
from mcp_bridge.transports.oauth import OAuth

# Holds the tools of all servers, and what is remembered of them from one run to the next.
#
# They are found by name, by a similar name, and by search.

ToolLists: TypeAlias = Sequence[tuple[ServerConfig, Sequence[ToolDefinition]]]
"""The tools of servers, as each of them lists its own."""
_TOLD: Final = 20
"""So many of a server's tools that are held are told of one by one."""
_NEAREST: Final = 5
"""So many similar names are proposed for one that does not exist."""


class ToolTable:
    """The tools that can be called. It is immutable, and a name is looked up in it, never split."""

    def __init__(self, tools: Iterable[ToolInfo] = ()) -> None:
        self.by_name: Final[Mapping[str, ToolInfo]] = MappingProxyType(
            {tool.name: tool for tool in tools}
        )
        self.tools: Final = tuple(self.by_name.values())
        self.finder: ToolFinder | None = None
        """What searches these tools; it is made at the first search."""

    def resolve(self, name: str) -> ToolInfo:
        """Gives the tool of that name. Raises: UnknownTool, with the nearest names there are."""
        if (tool := self.by_name.get(name)) is None:
            near = difflib.get_close_matches(name[:64], self.by_name, _NEAREST, 0.3)
            raise UnknownTool(name, near)
        return tool

    def differences(self, before: ToolTable) -> dict[str, tuple[str, ...]]:
        """Gives the `added`, `removed` and `changed` exposed names, each a tuple in table order.

        Thousands of tools take longer than an audio frame, so compare tables in a thread.
        """
        old, new = before.by_name, self.by_name
        return {
            "added": tuple(name for name in new if name not in old),
            "removed": tuple(name for name in old if name not in new),
            "changed": tuple(n for n, tool in new.items() if n in old and old[n] != tool),
        }


@dataclass(frozen=True, slots=True)
class _JudgedList:
    """What one server's list came to."""

    config: ServerConfig
    definitions: Sequence[ToolDefinition]
    prefix: str
    tools: tuple[ToolInfo, ...]
    vetted: VettedTools | None
    """None without pins."""


class ToolRegistry:
    """The tools of one manager's servers, as they were accepted and as they are called.

    The disk is used in threads. Lists are judged in threads as well: at 8 us a tool, 2,000 tools of
    each of three servers would hold the loop for longer than an audio frame. Without a catalogue
    nothing is remembered, without pins everything is accepted, and without `meanings` searches go
    by words alone.
    """

    def __init__(
        self, catalogue: Catalogue | None, pins: Pins | None, meanings: SemanticIndex | None
    ) -> None:
        self.table = ToolTable()
        self.vetted: Mapping[str, VettedTools] = {}
        """For each server what the comparison with its pins has found; empty without pins."""
        self._catalogue: Final = catalogue
        self._pins: Final = pins
        self._meanings: Final = meanings
        self._judged: dict[str, _JudgedList] = {}
        """For each server its list as it was judged last."""
        self._judging: Final = asyncio.Lock()
        """Held while lists are judged, so that no list is judged twice at the same time."""

    async def rebuild(self, servers: Collection[str], lists: Callable[[], ToolLists]) -> None:
        """Makes the table of what these servers offer.

        Args:
            servers: The names of all configured servers, which decide the tools' names.
            lists: Gives the lists as they are. One that changes while others are judged is for the
                next time.
        """
        prefixes = server_prefixes(servers)
        async with self._judging:
            if new := [one for one in lists() if not self.has_judged(*one, prefixes)]:
                self._judged |= await asyncio.to_thread(self._judge, new, prefixes)
            names = [config.name for config, _ in lists()]
            self._judged = {name: self._judged[name] for name in names if name in self._judged}
            found = self._judged.values()
            self.vetted = {one.config.name: one.vetted for one in found if one.vetted is not None}
            self.table = ToolTable(tool for one in found for tool in one.tools)
            if self._meanings is not None:
                self._meanings.set_tools(self.table.tools)

    def has_judged(
        self,
        config: ServerConfig,
        definitions: Sequence[ToolDefinition],
        prefixes: Mapping[str, str] | None = None,
    ) -> bool:
        """Says whether the table is made of this list, and under these prefixes if they matter."""
        one = self._judged.get(config.name)
        if one is None or one.definitions is not definitions or one.config != config:
            return False
        return prefixes is None or one.prefix == prefixes[config.name]

    def drop(self, servers: Collection[str]) -> None:
        """Takes the tools of these servers out of the table at once."""
        self._judged = {n: one for n, one in self._judged.items() if n not in servers}
        self.table = ToolTable(tool for tool in self.table.tools if tool.server not in servers)

    def _judge(self, lists: ToolLists, prefixes: Mapping[str, str]) -> dict[str, _JudgedList]:
        judged: dict[str, _JudgedList] = {}
        for config, definitions in lists:
            prefix, vetted = prefixes[config.name], None
            if self._pins is not None:
                vetted = self._pins.vet(config, definitions)
            offered = definitions if vetted is None else vetted.offered
            tools = exposed_tools(offered, config, prefix)
            judged[config.name] = _JudgedList(config, definitions, prefix, tools, vetted)
        return judged

    @property
    def held(self) -> Mapping[str, str]:
        """For each tool that is held back, as `server__tool`: why, and how to fix it."""
        return {
            f"{server}__{shown_name(tool)}": why
            for server, vetted in self.vetted.items()
            for tool, why in vetted.held.items()
        }

    @property
    def added(self) -> tuple[str, ...]:
        """The exposed names of what known servers have added, and nobody has accepted yet."""
        added = {(server, tool) for server, vetted in self.vetted.items() for tool in vetted.added}
        return tuple(tool.name for tool in self.table.tools if (tool.server, tool.tool) in added)

    def notes(self, server: str) -> tuple[str, ...]:
        """Gives what a person should know of a server's tools, on one line each."""
        if (vetted := self.vetted.get(server)) is None:
            return ()
        held = [f"{shown_name(tool)!r}: {why}" for tool, why in vetted.held.items()]
        more = [f"{len(held) - _TOLD} more tools are held"] if len(held) > _TOLD else []
        return (*held[:_TOLD], *more, *vetted.notes)

    def counts(self, server: str) -> tuple[int, int]:
        """Gives how many of a server's tools are held, and how many are new and offered."""
        vetted = self.vetted.get(server)
        return (len(vetted.held), len(vetted.added)) if vetted is not None else (0, 0)

    async def find(self, patterns: str | Sequence[str]) -> tuple[ToolInfo, ...]:
        """Gives the tools that match, best first. What searches is made in a thread."""
        table = self.table
        if (finder := table.finder) is None:
            finder = table.finder = await asyncio.to_thread(ToolFinder, table.tools)
        if self._meanings is None:
            return finder.find(patterns)
        meaning = await self._meanings.query(table.tools, finder.patterns_of_words(patterns))
        return finder.find(patterns, meaning)

    async def read_pins(self, configs: Sequence[ServerConfig]) -> None:
        """Loads the pins of these servers, as another process may have accepted more."""
        if self._pins is not None:
            await asyncio.to_thread(self._pins.read, configs)
            self._judged = {}

    async def read_lists(
        self, configs: Sequence[ServerConfig]
    ) -> Mapping[str, Sequence[ToolDefinition]]:
        """Gives for each known server its tools when it was last asked."""
        if (catalogue := self._catalogue) is None:
            return {}
        known = await asyncio.to_thread(lambda: [catalogue.read(config) for config in configs])
        return {c.name: tools for c, tools in zip(configs, known, strict=True) if tools is not None}

    async def remember(self, lists: ToolLists) -> bool:
        """Keeps the lists as servers have just given them, and what was vetted since.

        True: another process has vetted other tools meanwhile, and the table is to be made anew.
        """
        changed = self._pins is not None and await asyncio.to_thread(self._pins.write)
        if changed:
            self._judged = {}
        if (catalogue := self._catalogue) is not None:
            await asyncio.to_thread(lambda: [catalogue.write(*one) for one in lists])
        return changed

    async def aclose(self) -> None:
        """Forgets the tools, and ends what searches them."""
        self.table = ToolTable()
        if self._meanings is not None:
            await self._meanings.aclose()


logger = logging.getLogger(__name__)

_LATE: Final = "is not ready yet; its tools come as soon as it is"
_LISTING: Final = "mcp-list:"
_NO_DIFFERENCES: Final = ToolTable().differences(ToolTable())
_MIN_CALL_S: Final = 0.1
"""So much is left to a call when connecting took all of its time: it then ends as a time-out."""


@dataclass(frozen=True, slots=True)
class _ManagedServer:
    """A server in use, with settings of this manager's own around a session, which others share."""

    config: ServerConfig
    session: ServerSession


class ServerManager:
    """Use it as `async with ServerManager(servers) as manager`; a dead server raises nothing.

    Args:
        connect_timeout_s, call_timeout_s: Seconds; a server's own settings go before them.
        ready_s: How long entering and reloading wait for servers. One that takes longer is among
            `failed` until it is there, which `on_event` then tells of. None waits as long as an
            ordinary start and list may take: twice `connect_timeout_s` (20 s), or where a server
            has one of its own twice that, up to a minute. The 300 s of a package runner's first
            start (`Limits.first_start_s`) are never waited for.
        limits: The other bounds.
        pins: Where tools are kept as they were accepted; one that changes is held back until it is
            accepted again, and is among `failed`; one that a known server adds is among `added`.
            None takes them as they come.
        catalogue: Where tools are remembered. Servers that it knows are not connected at first,
            but by the first call of one of their tools, which also asks for their list afresh.
        on_event: Told what happens between calls and within them.
        elicitor: Asks the person what a server asks; None declines. A call may bring its own.
        pool: Where servers with `"share": true` are shared; None is the event loop's own.
        oauth: Signs in to remote servers that ask for it; None tells of it in `failed`.
        embedder: Makes searches go by what words mean as well; None goes by words. Whoever made it
            closes it.
        vectors: Where the tools' vectors are kept between runs; None makes them anew.

    Raises:
        ConfigError: Two servers have one name.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig] = (),
        *,
        connect_timeout_s: float | None = None,
        call_timeout_s: float | None = None,
        ready_s: float | None = None,
        limits: Limits | None = None,
        catalogue: Catalogue | None = None,
        pins: Pins | None = None,
        on_event: EventSink | None = None,
        elicitor: Elicitor | None = None,
        pool: SessionPool | None = None,
        oauth: OAuth | None = None,
        embedder: Embedder | None = None,
        vectors: VectorCache | None = None,
    ) -> None:
        limits = limits or Limits()
        self._limits: Final = replace(
            limits,
            connect_timeout_s=connect_timeout_s or limits.connect_timeout_s,
            call_timeout_s=call_timeout_s or limits.call_timeout_s,
        )
        self._ready_s: Final = ready_s
        self._configs = _by_name(servers)
        self._pool = pool
        self._oauth: Final = oauth
        self._servers: dict[str, _ManagedServer] = {}
        """The servers in use by name, in the order of the configuration."""
        self._registry: Final = ToolRegistry(
            catalogue, pins, SemanticIndex(embedder, vectors) if embedder else None
        )
        self._renewing = False
        """Whether the table is about to be made anew, so that no change needs to be told."""
        self._told_failed: Mapping[str, str] = {}
        """What `failed` was when the last change was told."""
        self._changes = 0
        """How many lists have changed so far."""
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        """The tasks that run beside the callers, by name; joined at the end."""
        self._on_event: Final = on_event
        self._elicitor: Final = elicitor
        self._reloading: Final = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            async with self._reloading:
                known = await self._registry.read_lists(list(self._wanted.values()))
                await self._renew(known, self._ready_s)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes every server side by side; no process of theirs is left."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._registry.aclose()
        _, gone = self._replace_servers({})
        await asyncio.gather(*map(self._release, gone))

    @property
    def failed(self) -> Mapping[str, str]:
        """For each server that is down: what is wrong with it and how to fix it.

        The same for each tool that is held back, as `server__tool`.
        """
        down = {
            name: server.session.failure or _LATE
            for name, server in self._servers.items()
            if server.session.failure is not None or self._is_late(server)
        }
        return down | dict(self._registry.held)

    @property
    def added(self) -> tuple[str, ...]:
        """The tools that known servers have added, and nobody has accepted yet; see `Pins`."""
        return self._registry.added

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The status of every configured server, in the file's order."""
        return tuple(
            server.session.status(config, *self._registry.counts(name), self._registry.notes(name))
            if (server := self._servers.get(name))
            else _status_of_unused(config)
            for name, config in self._configs.items()
        )

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """Gives all tools that can be called now, in the order of the servers and their lists."""
        return self._registry.table.tools

    async def discover(self, patterns: str | Sequence[str]) -> tuple[ToolInfo, ...]:
        """Gives the tools that match a glob (`*file*`) or words, best first."""
        return await self._registry.find(patterns)

    def wake(self, servers: Iterable[str]) -> None:
        """Connects those of `servers` that are idle, beside the caller.

        What goes wrong is in `failed`; the next call of such a server tries again.
        """
        for name in dict.fromkeys(servers):
            server = self._servers.get(name)
            if server is not None and server.session.recalled:
                self._start_task(f"mcp-wake:{name}", partial(_wake, server.session))

    def route(self, server: str) -> CallRoute | None:
        """Gives the way that calls of a server take now; None for a server that is not used."""
        used = self._servers.get(server)
        return None if used is None else used.session.route

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        on_event: EventSink | None = None,
        elicitor: Elicitor | None = None,
    ) -> ToolCallResult:
        """Calls a tool by its exposed name. Cancelling the caller cancels it at the server.

        Args:
            timeout_s: How long the server may be silent, from here to the result or a sign of
                progress, a reconnect included. `Limits.call_cap_s` bounds the whole.
            on_event, elicitor: For this call, in place of the manager's.

        Raises:
            UnknownTool: No tool has that name.
            BadArguments: The arguments are not JSON, or too large.
            ServerUnavailable, CallTimeout, ServerError: As in `mcp_bridge.core.errors`.
        """
        arguments = arguments or {}
        tool = self._registry.table.resolve(name)
        check_arguments(name, arguments)
        server = self._servers[tool.server]
        timeout_s = timeout_s or server.config.timeout_s or self._limits.call_timeout_s
        if server.session.recalled:
            began = time.monotonic()
            try:
                async with asyncio.timeout(timeout_s):  # its entry may allow a start an hour
                    await server.session.confirm()
            except TimeoutError:
                what = f"was not ready within {timeout_s:g} s"
                raise CallTimeout(tool.server, what) from None
            timeout_s = max(timeout_s - (time.monotonic() - began), _MIN_CALL_S)
        if not self._registry.has_judged(server.config, server.session.listing.definitions):
            await self._rebuild_table()  # what has changed under this name may be held back
            tool = self._registry.table.resolve(name)
        return await server.session.call(
            tool.tool,
            arguments,
            timeout_s=timeout_s,
            on_progress=progress_reporter(tool, on_event or self._on_event),
            elicitor=elicitor or self._elicitor,
        )

    async def reload(
        self, servers: Iterable[ServerConfig] | None = None, *, ready_s: float | None = None
    ) -> ReloadReport:
        """Lists every server anew, tries failed ones again, and takes `servers` for the old ones.

        Calls to servers whose configuration is unchanged go on undisturbed. `ready_s` goes before
        the manager's own.
        """
        async with self._reloading:
            if servers is not None:
                self._configs = _by_name(servers)
            return await self._renew({}, self._ready_s if ready_s is None else ready_s)

    async def _renew(
        self, remembered: Mapping[str, Sequence[ToolDefinition]], ready_s: float | None
    ) -> ReloadReport:
        """Uses the servers of the configuration, and lists all but the remembered ones."""
        before, wanted = self._registry.table, self._wanted
        self._renewing = True
        try:
            await self._registry.read_pins(list(wanted.values()))
            new, gone = self._replace_servers(wanted)
            asked: list[_ManagedServer] = []
            for name, server in self._servers.items():
                if name in new and server.session.listed:
                    continue  # another manager has asked it
                if (known := remembered.get(name)) is not None:
                    server.session.recall(known)
                else:
                    asked.append(server)
            # No name may lead to a server that is not there.
            self._registry.drop([server.config.name for server in gone])
            await asyncio.gather(self._list_within(asked, ready_s), *map(self._release, gone))
        finally:
            self._renewing = False
            await self._rebuild_table()
        self._told_failed = self.failed
        await self._remember(asked)
        differences = await asyncio.to_thread(self._registry.table.differences, before)
        return ReloadReport(**differences, failed=self._told_failed)

    def _replace_servers(
        self, wanted: Mapping[str, ServerConfig]
    ) -> tuple[set[str], list[_ManagedServer]]:
        """Takes these servers for the ones before. One with the same configuration stays as it is.

        Gives the names that are new, and the servers that are gone, which must be released.
        """
        before = self._servers
        stays = {n: s for n, s in before.items() if wanted.get(n) == s.config}
        self._servers = {n: stays.get(n) or self._use(config) for n, config in wanted.items()}
        return wanted.keys() - stays.keys(), [s for n, s in before.items() if n not in stays]

    def _use(self, config: ServerConfig) -> _ManagedServer:
        self._pool = self._pool or pool_of_loop()
        session = self._pool.take(config, self._limits, self._oauth)
        session.watchers.append(self._list_changed)
        return _ManagedServer(config, session)

    async def _release(self, server: _ManagedServer) -> None:
        """Closes a server's session, unless others use it."""
        server.session.watchers.remove(self._list_changed)
        if self._pool is not None:
            await self._pool.give_back(server.session)

    async def _list_within(self, servers: Sequence[_ManagedServer], ready_s: float | None) -> None:
        """Lists the tools of `servers` anew. Those that take longer go on beside the callers."""
        names = [f"{_LISTING}{id(server.session)}" for server in servers]
        for name, server in zip(names, servers, strict=True):
            self._start_task(name, partial(self._list, server))
        if tasks := [self._tasks[name] for name in names]:
            if ready_s is None:
                ready_s = self._limits.usual_wait_s(s.config.connect_timeout_s for s in servers)
            done, late = await asyncio.wait(tasks, timeout=ready_s)
            for task in done:
                task.result()
            for task, server in zip(tasks, servers, strict=True):
                if task in late:
                    said = "%s: after %g s " + _LATE + "; the others go on without it"
                    logger.warning(said, server.config.name, ready_s)

    async def _list(self, server: _ManagedServer) -> None:
        session = server.session
        await session.refresh()
        if not self._renewing and (session.failure is not None or not session.listing.definitions):
            self._tell(server.config.name)  # nobody waits any more to hear of it

    def _is_late(self, server: _ManagedServer) -> bool:
        session = server.session
        begun = session.listed or session.recalled or session.failure is not None
        return f"{_LISTING}{id(session)}" in self._tasks and not begun and not self._renewing

    @property
    def _wanted(self) -> dict[str, ServerConfig]:
        return {name: config for name, config in self._configs.items() if config.enabled}

    def _list_changed(self, server: str) -> None:
        """Has the table made anew, as a server's list is another one, or it has gone or come."""
        if not self._renewing:
            self._changes += 1  # each has a task of its own, as one may come while another is taken
            before, vetted = self._registry.table, self._registry.vetted.get(server)
            take = partial(self._take_change, server, before, vetted)
            self._start_task(f"mcp-changed:{self._changes}", take)

    async def _take_change(
        self, server: str, before: ToolTable, vetted: VettedTools | None
    ) -> None:
        await self._rebuild_table()
        # A tool that is held back is remembered as well, though nothing changes in the table. This
        # comes first: who has seen the new table may close the manager, which ends the rest.
        if (changed := self._servers.get(server)) is not None:
            await self._remember([changed])
        found = await asyncio.to_thread(self._registry.table.differences, before)
        if any(found.values()) or self._registry.vetted.get(server) != vetted:
            logger.info("%s: its tools are not those it had", server)
            self._tell(server, found)
        elif self.failed != self._told_failed:
            self._tell(server)

    def _tell(self, server: str, found: Mapping[str, tuple[str, ...]] = _NO_DIFFERENCES) -> None:
        self._told_failed = self.failed
        if self._on_event is not None:
            self._on_event(ToolsChanged(server, **found, failed=self.failed))

    async def _rebuild_table(self) -> None:
        await self._registry.rebuild(
            self._configs,
            lambda: [(s.config, s.session.listing.definitions) for s in self._servers.values()],
        )

    def _start_task(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs `work` beside the callers, once at a time for each name."""
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work(), name=name)
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _remember(self, servers: Sequence[_ManagedServer]) -> None:
        fresh = [
            (server.config, session.listing.definitions)
            for server in servers
            if (session := server.session).listed and not session.failure and not session.recalled
        ]
        if await self._registry.remember(fresh):
            await self._rebuild_table()


async def _wake(session: ServerSession) -> None:
    with contextlib.suppress(ServerUnavailable):
        await session.confirm()


def _by_name(servers: Iterable[ServerConfig]) -> dict[str, ServerConfig]:
    configs: dict[str, ServerConfig] = {}
    for config in servers:
        if config.name in configs:
            raise ConfigError("two servers have this name; rename one", key=config.name)
        configs[config.name] = config
    return configs


def _status_of_unused(config: ServerConfig) -> ServerStatus:
    notes = (config.off_because,) if config.off_because else ()
    return ServerStatus(config.name, "off", config.transport, 0, None, None, notes)
