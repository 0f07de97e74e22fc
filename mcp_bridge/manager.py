"""Many servers as one: their tools in one table, their failures in one place."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Self

from mcp_bridge.catalogue import Catalogue
from mcp_bridge.discover import Finder
from mcp_bridge.errors import BadArguments, ConfigError, ServerUnavailable, UnknownTool
from mcp_bridge.limits import Limits
from mcp_bridge.names import server_prefixes
from mcp_bridge.servers import ServerConfig
from mcp_bridge.session import ServerSession
from mcp_bridge.status import ReloadReport, ServerStatus
from mcp_bridge.tools import Definition, ToolCallResult, ToolInfo

logger = logging.getLogger(__name__)

MAX_ARGUMENT_BYTES: Final = 1024 * 1024
"""Of one call, as JSON. The SDK's own servers take up to 4 MiB; a model writes some 100 bytes."""
_NEAREST: Final = 5
_LEAST_S: Final = 0.1
"""Left to a call when connecting took all of its time: it then ends as a time-out, in words."""


class ServerManager:
    """Use it as `async with ServerManager(servers) as manager`; a dead server raises nothing.

    Args:
        connect_timeout_s, call_timeout_s: seconds; a server's own settings go before them.
        limits: the other bounds.
        catalogue: where tools are remembered. Servers that it knows are not connected at first,
            but by the first call of one of their tools, which also asks for their list afresh.

    Raises:
        ConfigError: two servers have one name.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig] = (),
        *,
        connect_timeout_s: float | None = None,
        call_timeout_s: float | None = None,
        limits: Limits | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        limits = limits or Limits()
        self._limits: Final = dataclasses.replace(
            limits,
            connect_timeout_s=connect_timeout_s or limits.connect_timeout_s,
            call_timeout_s=call_timeout_s or limits.call_timeout_s,
        )
        self._configs = _checked(servers)
        self._sessions: dict[str, ServerSession] = {}
        self._tools: Mapping[str, ToolInfo] = MappingProxyType({})
        self._finder: Finder | None = None
        self._waking: Final[dict[str, asyncio.Task[None]]] = {}
        self._catalogue: Final = catalogue
        self._reloading: Final = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            async with self._reloading:
                await self._renew(await self._remembered())
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes every server side by side; no process of theirs is left."""
        waking = list(self._waking.values())
        for task in waking:
            task.cancel()
        await asyncio.gather(*waking, return_exceptions=True)
        sessions, self._sessions = list(self._sessions.values()), {}
        self._tools = MappingProxyType({})
        await asyncio.gather(*(session.aclose() for session in sessions))

    @property
    def failed(self) -> Mapping[str, str]:
        """Server -> what is wrong with it and how to mend it, for those that are down."""
        return {
            name: session.failure
            for name, session in self._sessions.items()
            if session.failure is not None
        }

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """Every configured server, in the file's order."""
        return tuple(self._status(config) for config in self._configs.values())

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """All tools, in the order of the servers and of their lists, as of the last reload."""
        return tuple(self._tools.values())

    async def discover(self, patterns: str | Sequence[str]) -> tuple[ToolInfo, ...]:
        """The tools that match a glob (`*file*`) or words, best first."""
        if (finder := self._finder) is None:
            tools = self._tools
            finder = await asyncio.to_thread(Finder, tuple(tools.values()))
            if tools is self._tools:
                self._finder = finder
        return finder.find(patterns)

    def wake(self, servers: Iterable[str]) -> None:
        """Connects those of `servers` that are idle, beside the caller.

        What goes wrong is in `failed`; the next call of such a server tries again.
        """
        for name in dict.fromkeys(servers):
            session = self._sessions.get(name)
            if session is not None and session.recalled and name not in self._waking:
                task = asyncio.create_task(self._woken(session), name=f"mcp-wake:{name}")
                self._waking[name] = task
                task.add_done_callback(lambda _, name=name: self._waking.pop(name, None))

    async def _woken(self, session: ServerSession) -> None:
        with contextlib.suppress(ServerUnavailable):
            await self._confirm(session)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> ToolCallResult:
        """Calls a tool by its exposed name. Cancelling the caller cancels it at the server.

        Args:
            timeout_s: from here to the result, a reconnect included.

        Raises:
            UnknownTool: no such name.
            BadArguments: the arguments are not JSON, or too large.
            ServerUnavailable, CallTimeout, ServerError: as in `errors.py`.
        """
        arguments = arguments or {}
        tool = self._known(name)
        _check_arguments(name, arguments)
        session = self._sessions[tool.server]
        if session.recalled:
            limit = timeout_s or session.config.timeout_s or self._limits.call_timeout_s
            began = time.monotonic()
            await self._confirm(session)
            tool = self._known(name)
            timeout_s = max(limit - (time.monotonic() - began), _LEAST_S)
        return await session.call(tool.tool, arguments, timeout_s)

    def _known(self, name: str) -> ToolInfo:
        if (tool := self._tools.get(name)) is None:
            near = difflib.get_close_matches(name[:64], self._tools, _NEAREST, 0.3)
            raise UnknownTool(name, near)
        return tool

    async def _confirm(self, session: ServerSession) -> None:
        """Connects an idle server and takes its list of today for the remembered one.

        Raises: ServerUnavailable.
        """
        async with session.confirming:
            if not session.recalled:
                return  # another call has done it meanwhile
            before = session.listing.definitions
            await session.refresh(server_prefixes(self._configs)[session.config.name])
            if session.failure is not None:
                raise ServerUnavailable(session.config.name, session.failure)
            if session.listing.definitions != before:
                logger.info("%s: its tools are not those it had", session.config.name)
                self._collect()
                await self._remember([session])

    async def reload(self, servers: Iterable[ServerConfig] | None = None) -> ReloadReport:
        """Lists every server anew, tries failed ones again, and takes `servers` for the old ones.

        Calls to servers whose configuration is unchanged go on undisturbed.
        """
        async with self._reloading:
            if servers is not None:
                self._configs = _checked(servers)
            return await self._renew({})

    async def _renew(self, remembered: Mapping[str, tuple[Definition, ...]]) -> ReloadReport:
        """Makes the sessions those of the configuration, and lists all but the remembered ones."""
        before = self._tools
        wanted = {name: config for name, config in self._configs.items() if config.enabled}
        gone = [
            self._sessions.pop(name)
            for name, session in list(self._sessions.items())
            if wanted.get(name) != session.config
        ]
        sessions: dict[str, ServerSession] = {}
        for name, config in wanted.items():
            sessions[name] = self._sessions.get(name) or ServerSession(config, self._limits)
            if name not in self._sessions:
                sessions[name].start()
        self._sessions = sessions
        prefixes = server_prefixes(self._configs)
        asked: list[ServerSession] = []
        for name, session in sessions.items():
            if (known := remembered.get(name)) is not None:
                session.recall(known, prefixes[name])
            else:
                asked.append(session)
        await asyncio.gather(
            *(session.refresh(prefixes[session.config.name]) for session in asked),
            *(session.aclose() for session in gone),
        )
        self._collect()
        await self._remember(asked)
        return self._report(before, self._tools)

    def _collect(self) -> None:
        self._finder = None
        self._tools = MappingProxyType(
            {
                tool.name: tool
                for session in self._sessions.values()
                for tool in session.listing.tools
            }
        )

    async def _remembered(self) -> Mapping[str, tuple[Definition, ...]]:
        """Server -> its tools, for those that the catalogue knows."""
        if (catalogue := self._catalogue) is None:
            return {}
        configs = [config for config in self._configs.values() if config.enabled]
        known = await asyncio.to_thread(lambda: [catalogue.read(config) for config in configs])
        return {c.name: tools for c, tools in zip(configs, known, strict=True) if tools is not None}

    async def _remember(self, sessions: Sequence[ServerSession]) -> None:
        if (catalogue := self._catalogue) is None:
            return
        fresh = [s for s in sessions if s.failure is None and not s.recalled]
        lists = [(session.config, session.listing.definitions) for session in fresh]
        await asyncio.to_thread(lambda: [catalogue.write(*one) for one in lists])

    def _report(
        self, before: Mapping[str, ToolInfo], after: Mapping[str, ToolInfo]
    ) -> ReloadReport:
        return ReloadReport(
            added=tuple(name for name in after if name not in before),
            removed=tuple(name for name in before if name not in after),
            changed=tuple(n for n, tool in after.items() if n in before and before[n] != tool),
            failed=self.failed,
        )

    def _status(self, config: ServerConfig) -> ServerStatus:
        session = self._sessions.get(config.name)
        if session is None:
            notes = (config.off_because,) if config.off_because else ()
            return ServerStatus(config.name, "off", config.transport, 0, None, None, notes)
        return ServerStatus(
            name=config.name,
            state="down" if session.failure else "idle" if session.recalled else "ready",
            transport=config.transport,
            tools=len(session.listing.tools),
            connect_ms=session.connect_ms,
            error=session.failure,
            notes=session.listing.notes,
        )


def _checked(servers: Iterable[ServerConfig]) -> dict[str, ServerConfig]:
    configs: dict[str, ServerConfig] = {}
    for config in servers:
        if config.name in configs:
            raise ConfigError("two servers have this name; rename one", key=config.name)
        configs[config.name] = config
    return configs


def _check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """What cannot be written would break the connection, and every other call with it."""
    try:
        written = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(name, f"are not JSON ({type(error).__name__})") from None
    if len(written) > MAX_ARGUMENT_BYTES:
        raise BadArguments(name, f"are {len(written)} bytes; at most {MAX_ARGUMENT_BYTES} may be")
