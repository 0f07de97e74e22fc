"""Many servers as one: their tools in one table, their failures in one place."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self

from mcp_bridge.connection.catalogue import Catalogue
from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.connection.server_set import ManagedServer, ServerSet, status_of
from mcp_bridge.connection.session_pool import SessionPool
from mcp_bridge.connection.tool_memory import ToolMemory
from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import ConfigError, ServerUnavailable
from mcp_bridge.core.limits import Limits
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.status import EventSink, ReloadReport, ServerStatus, ToolsChanged
from mcp_bridge.core.tools import ToolCallResult, ToolDefinition, ToolInfo
from mcp_bridge.discovery.tool_table import ToolTable
from mcp_bridge.embedding.kept import KeptVectors
from mcp_bridge.embedding.meanings import Meanings
from mcp_bridge.embedding.port import Embedder
from mcp_bridge.protocol.call_values import check_arguments
from mcp_bridge.protocol.progress import progress_reporter
from mcp_bridge.protocol.tool_listing import exposed_tools
from mcp_bridge.protocol.tool_names import server_prefixes
from mcp_bridge.security.hidden_text import one_line
from mcp_bridge.security.pins import Pins
from mcp_bridge.transports.oauth import OAuth

logger = logging.getLogger(__name__)

_LATE: Final = "is not ready yet; its tools come as soon as it is"
_LISTING: Final = "mcp-list:"
_LEAST_S: Final = 0.1
"""Left to a call when connecting took all of its time: it then ends as a time-out, in words."""


class ServerManager:
    """Use it as `async with ServerManager(servers) as manager`; a dead server raises nothing.

    Args:
        connect_timeout_s, call_timeout_s: seconds; a server's own settings go before them.
        ready_s: how long entering and reloading wait for servers. One that takes longer is among
            `failed` until it is there, which `on_event` then tells of. None waits for all.
        limits: the other bounds.
        pins: where tools are kept as they were accepted; one that changes is held back until it is
            accepted again, and is among `failed`. None takes them as they come.
        catalogue: where tools are remembered. Servers that it knows are not connected at first,
            but by the first call of one of their tools, which also asks for their list afresh.
        on_event: told what happens between calls and within them; see `events.py`.
        elicitor: asks the person what a server asks; None declines. A call may bring its own.
        pool: where servers with `"share": true` are shared; None is the event loop's own.
        oauth: signs in to remote servers that ask for it; None tells of it in `failed`.
        embedder: makes searches go by what words mean as well; None goes by words. Closing it is
            its maker's.
        vectors: where the tools' vectors are kept between runs; None makes them anew.

    Raises:
        ConfigError: two servers have one name.
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
        vectors: KeptVectors | None = None,
    ) -> None:
        limits = limits or Limits()
        self._limits: Final = dataclasses.replace(
            limits,
            connect_timeout_s=connect_timeout_s or limits.connect_timeout_s,
            call_timeout_s=call_timeout_s or limits.call_timeout_s,
        )
        self._ready_s: Final = ready_s
        self._configs = _checked(servers)
        self._members: Final = ServerSet(self._limits, pool, oauth, self._changed)
        self._table = ToolTable()
        self._renewing = False
        """Whether the table is about to be made anew, so that no change needs to be told."""
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        """What runs beside the callers, by name; joined at the end."""
        self._memory: Final = ToolMemory(catalogue, pins)
        self._held: dict[str, Mapping[str, str]] = {}
        """Server -> its tools that have changed, and why they are held back."""
        self._on_event: Final = on_event
        self._elicitor: Final = elicitor
        self._meanings: Final = Meanings(embedder, vectors) if embedder else None
        self._reloading: Final = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            async with self._reloading:
                known = await self._memory.lists(list(self._wanted.values()))
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
        if self._meanings is not None:
            await self._meanings.aclose()
        _, gone = self._members.become({})
        self._table = ToolTable()
        await asyncio.gather(*map(self._members.leave, gone))

    @property
    def failed(self) -> Mapping[str, str]:
        """Server -> what is wrong with it and how to mend it, for those that are down.

        `server__tool` likewise, for a tool that is held back.
        """
        down = {
            name: member.session.failure or _LATE
            for name, member in self._members.items()
            if member.session.failure is not None or self._is_late(member)
        }
        return down | {
            f"{server}__{one_line(tool, 80)}": why
            for server, held in self._held.items()
            for tool, why in held.items()
        }

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """Every configured server, in the file's order."""
        return tuple(
            status_of(
                config,
                member.session if (member := self._members.get(name)) else None,
                held=self._held.get(name, {}),
            )
            for name, config in self._configs.items()
        )

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """All tools that can be called now, in the order of the servers and of their lists."""
        return self._table.tools

    async def discover(self, patterns: str | Sequence[str]) -> tuple[ToolInfo, ...]:
        """The tools that match a glob (`*file*`) or words, best first."""
        return await self._table.find(patterns, self._meanings)

    def wake(self, servers: Iterable[str]) -> None:
        """Connects those of `servers` that are idle, beside the caller.

        What goes wrong is in `failed`; the next call of such a server tries again.
        """
        for name in dict.fromkeys(servers):
            member = self._members.get(name)
            if member is not None and member.session.recalled:
                self._beside(f"mcp-wake:{name}", partial(_woken, member.session))

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
            timeout_s: the server's silence, from here to the result or a sign of progress, a
                reconnect included. `Limits.call_cap_s` bounds the whole.
            on_event, elicitor: for this call, in place of the manager's.

        Raises:
            UnknownTool: no such name.
            BadArguments: the arguments are not JSON, or too large.
            ServerUnavailable, CallTimeout, ServerError: as in `errors.py`.
        """
        arguments = arguments or {}
        tool = self._table.resolve(name)
        check_arguments(name, arguments)
        member = self._members[tool.server]
        session = member.session
        timeout_s = timeout_s or member.config.timeout_s or self._limits.call_timeout_s
        if session.recalled:
            began = time.monotonic()
            await session.confirm()
            tool = self._table.resolve(name)
            timeout_s = max(timeout_s - (time.monotonic() - began), _LEAST_S)
        return await session.call(
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
                self._configs = _checked(servers)
            return await self._renew({}, self._ready_s if ready_s is None else ready_s)

    async def _renew(
        self, remembered: Mapping[str, Sequence[ToolDefinition]], ready_s: float | None
    ) -> ReloadReport:
        """Makes the members those of the configuration, and lists all but the remembered ones."""
        before, wanted = self._table, self._wanted
        self._renewing = True
        try:
            await self._memory.read_pins(list(wanted.values()))
            came, gone = self._members.become(wanted)
            asked: list[ManagedServer] = []
            for name, member in self._members.items():
                if name in came and member.session.listed:
                    continue  # another manager has asked it
                if (known := remembered.get(name)) is not None:
                    member.session.recall(known)
                else:
                    asked.append(member)
            if gone:
                self._collect()  # no name may lead to a server that is not there
            await asyncio.gather(
                self._listed_within(asked, ready_s), *map(self._members.leave, gone)
            )
        finally:
            self._renewing = False
            self._collect()
        await self._remember(asked)
        return ReloadReport(**self._table.differences(before), failed=self.failed)

    async def _listed_within(self, members: Sequence[ManagedServer], ready_s: float | None) -> None:
        """Has their tools listed anew. Those that take longer go on beside the callers."""
        names = [f"{_LISTING}{id(member.session)}" for member in members]
        for name, member in zip(names, members, strict=True):
            self._beside(name, partial(self._list, member))
        if tasks := [self._tasks[name] for name in names]:
            done, _ = await asyncio.wait(tasks, timeout=ready_s)
            for task in done:
                task.result()

    async def _list(self, member: ManagedServer) -> None:
        await member.session.refresh()
        session = member.session
        if not self._renewing and (session.failure is not None or not session.listing.definitions):
            self._tell(member.config.name)  # nobody waits any more to hear of it

    def _is_late(self, member: ManagedServer) -> bool:
        session = member.session
        begun = session.listed or session.recalled or session.failure is not None
        return f"{_LISTING}{id(session)}" in self._tasks and not begun and not self._renewing

    @property
    def _wanted(self) -> dict[str, ServerConfig]:
        return {name: config for name, config in self._configs.items() if config.enabled}

    def _changed(self, server: str) -> None:
        """A server's list has become another one."""
        if self._renewing:
            return
        before = self._table
        self._collect()
        found = self._table.differences(before)
        # One that is held back is to be remembered as well, though nothing changes in the table.
        self._beside(f"mcp-keep:{server}", partial(self._remember, [self._members[server]]))
        if not any(found.values()):
            return
        logger.info("%s: its tools are not those it had", server)
        self._tell(server, **found)

    def _tell(
        self,
        server: str,
        added: tuple[str, ...] = (),
        removed: tuple[str, ...] = (),
        changed: tuple[str, ...] = (),
    ) -> None:
        if self._on_event is not None:
            self._on_event(ToolsChanged(server, added, removed, changed, failed=self.failed))

    def _collect(self) -> None:
        prefixes = server_prefixes(self._configs)
        offered = {
            name: self._memory.vetted(member.config, member.session.listing.definitions)
            for name, member in self._members.items()
        }
        self._held = {name: vetted.held for name, vetted in offered.items() if vetted.held}
        self._table = ToolTable(
            tool
            for name, member in self._members.items()
            for tool in exposed_tools(offered[name].offered, member.config, prefixes[name])
        )
        if self._meanings is not None:
            self._meanings.renew(self._table.tools)

    def _beside(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs `work` beside the callers, once at a time for each name."""
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work(), name=name)
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _remember(self, members: Sequence[ManagedServer]) -> None:
        fresh = [
            m
            for m in members
            if m.session.listed and m.session.failure is None and not m.session.recalled
        ]
        await self._memory.keep([(m.config, m.session.listing.definitions) for m in fresh])


async def _woken(session: ServerSession) -> None:
    with contextlib.suppress(ServerUnavailable):
        await session.confirm()


def _checked(servers: Iterable[ServerConfig]) -> dict[str, ServerConfig]:
    configs: dict[str, ServerConfig] = {}
    for config in servers:
        if config.name in configs:
            raise ConfigError("two servers have this name; rename one", key=config.name)
        configs[config.name] = config
    return configs
