"""Many servers as one: their tools in one table, their failures in one place."""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias

from mcp_bridge.discover import discover
from mcp_bridge.errors import BadArguments, ConfigError, UnknownTool
from mcp_bridge.limits import Limits
from mcp_bridge.names import server_prefixes
from mcp_bridge.servers import ServerConfig, TransportName
from mcp_bridge.session import ServerSession
from mcp_bridge.tools import ToolCallResult, ToolInfo

MAX_ARGUMENT_BYTES: Final = 1024 * 1024
"""Of one call, as JSON. The SDK's own servers take up to 4 MiB; a model writes some 100 bytes."""
_NEAREST: Final = 5

State: TypeAlias = Literal["ready", "down", "off"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one configured server is doing."""

    name: str
    state: State
    transport: TransportName
    tools: int
    connect_ms: int | None
    """Of the last connection; None where there was none."""
    error: str | None
    """What is wrong, and the mend; one line."""
    notes: tuple[str, ...]
    """What was left out of its tools, and why."""


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload changed: exposed names of tools, and servers with their reasons."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]


class ServerManager:
    """Use it as `async with ServerManager(servers) as manager`; a dead server raises nothing.

    Args:
        connect_timeout_s, call_timeout_s: seconds; a server's own settings go before them.
        limits: the other bounds.

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
        self._reloading: Final = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            await self.reload()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes every server side by side; no process of theirs is left."""
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
        return discover(patterns, self._tools.values())

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
        if (tool := self._tools.get(name)) is None:
            near = difflib.get_close_matches(name[:64], self._tools, _NEAREST, 0.3)
            raise UnknownTool(name, near)
        arguments = arguments or {}
        _check_arguments(name, arguments)
        return await self._sessions[tool.server].call(tool.tool, arguments, timeout_s)

    async def reload(self, servers: Iterable[ServerConfig] | None = None) -> ReloadReport:
        """Lists every server anew, tries failed ones again, and takes `servers` for the old ones.

        Calls to servers whose configuration is unchanged go on undisturbed.
        """
        async with self._reloading:
            if servers is not None:
                self._configs = _checked(servers)
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
            await asyncio.gather(
                *(session.refresh(prefixes[name]) for name, session in sessions.items()),
                *(session.aclose() for session in gone),
            )
            self._tools = MappingProxyType(
                {tool.name: tool for session in sessions.values() for tool in session.listing.tools}
            )
            return self._report(before, self._tools)

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
            return ServerStatus(config.name, "off", config.transport, 0, None, None, ())
        return ServerStatus(
            name=config.name,
            state="ready" if session.failure is None else "down",
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
