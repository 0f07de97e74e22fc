"""Many servers as one: their tools in one table, their failures in one place."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self, TypeAlias

from mcp_bridge.connection.server_session import ServerSession, progress_reporter
from mcp_bridge.connection.tool_registry import Catalogue, ToolRegistry, ToolTable
from mcp_bridge.core.computing import computed
from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import CallTimeout, ConfigError, ServerUnavailable
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
from mcp_bridge.embedding.embedders import Embedder
from mcp_bridge.embedding.semantic_index import SemanticIndex, VectorCache
from mcp_bridge.protocol.tool_results import check_arguments
from mcp_bridge.security.pins import Pins, VettedTools
from mcp_bridge.transports.oauth import OAuth

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
        differences = await computed(self._registry.table.differences, before)
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
        found = await computed(self._registry.table.differences, before)
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


# Sessions that several managers of one process use together, counted.
#
# A server is shared only where its configuration says `"share": true`. The default is not to share:
# whether a server keeps something between two calls (an open page, a folder that it stands in, what
# was said so far) cannot be seen from outside, and what one room said must not come up in another.
# Sharing saves a process and a start for each further room; it is for servers that answer every
# call from its arguments alone, such as clocks, converters and searches.

_Key: TypeAlias = tuple[str, str, float | None, Limits, OAuth | None]
"""What must be the same: the name, the digest of what starts or reaches the server, the bounds, and
who signs in."""


@dataclass(slots=True)
class _SharedSession:
    session: ServerSession
    users: int = 0


class SessionPool:
    """The shared sessions of one event loop, on which they live. Give back all that you take."""

    def __init__(self) -> None:
        self._shared: Final[dict[_Key, _SharedSession]] = {}

    def take(
        self, config: ServerConfig, limits: Limits, oauth: OAuth | None = None
    ) -> ServerSession:
        """Gives a started session: one of its own, or the one that others use."""
        if not config.share:
            session = _session(config, limits, oauth)
            session.start()
            return session
        key = config.name, config.digest(), config.connect_timeout_s, limits, oauth
        if (shared := self._shared.get(key)) is None:
            shared = self._shared[key] = _SharedSession(_session(config, limits, oauth))
            shared.session.start()
        shared.users += 1
        return shared.session

    async def give_back(self, session: ServerSession) -> None:
        """Closes the session when this was its last user."""
        for key, shared in self._shared.items():
            if shared.session is session:
                shared.users -= 1
                if shared.users:
                    return
                del self._shared[key]  # whoever comes now begins a new one
                break
        await session.aclose()


def _session(config: ServerConfig, limits: Limits, oauth: OAuth | None) -> ServerSession:
    return ServerSession(config, limits, auth=oauth.auth(config) if oauth else None)


_POOLS: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, SessionPool]] = (
    weakref.WeakKeyDictionary()
)


def pool_of_loop() -> SessionPool:
    """Gives the pool that all managers of this event loop have in common."""
    return _POOLS.setdefault(asyncio.get_running_loop(), SessionPool())
