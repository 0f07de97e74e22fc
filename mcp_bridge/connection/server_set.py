"""The servers that one manager uses. Their sessions may be other managers' too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.connection.session_pool import SessionPool, pool_of_loop
from mcp_bridge.core.limits import Limits
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.core.status import ServerStatus
from mcp_bridge.transports.oauth import OAuth


@dataclass(frozen=True, slots=True)
class ManagedServer:
    """A server in use, with settings of this manager's own around a session."""

    config: ServerConfig
    session: ServerSession
    watcher: Callable[[], None]


class ServerSet(Mapping[str, ManagedServer]):
    """The servers by name, in the order of the configuration.

    Args:
        pool: Where sessions come from; None is the event loop's own.
        changed: Told the name of a server whose list has become another one.
    """

    def __init__(
        self,
        limits: Limits,
        pool: SessionPool | None,
        oauth: OAuth | None,
        changed: Callable[[str], None],
    ) -> None:
        self._limits: Final = limits
        self._pool = pool
        self._oauth: Final = oauth
        self._changed: Final = changed
        self._servers: dict[str, ManagedServer] = {}

    def __getitem__(self, name: str) -> ManagedServer:
        return self._servers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    def replace(self, wanted: Mapping[str, ServerConfig]) -> tuple[set[str], list[ManagedServer]]:
        """Takes these servers for the ones before. One with the same configuration stays as it is.

        Gives the names that are new, and the servers that are gone, which must be `release`d.
        """
        before = self._servers
        stays = {n: s for n, s in before.items() if wanted.get(n) == s.config}
        self._servers = {n: stays.get(n) or self._begin(config) for n, config in wanted.items()}
        return wanted.keys() - stays.keys(), [s for n, s in before.items() if n not in stays]

    async def release(self, server: ManagedServer) -> None:
        """Closes a server's session, unless others use it."""
        server.session.watchers.remove(server.watcher)
        if self._pool is not None:
            await self._pool.give_back(server.session)

    def _begin(self, config: ServerConfig) -> ManagedServer:
        if self._pool is None:
            self._pool = pool_of_loop()
        session = self._pool.take(config, self._limits, self._oauth)
        server = ManagedServer(config, session, partial(self._changed, config.name))
        session.watchers.append(server.watcher)
        return server


def status_of(
    config: ServerConfig, session: ServerSession | None, held: Mapping[str, str]
) -> ServerStatus:
    """Gives the status of a configured server; without a session it is off."""
    if session is None:
        notes = (config.off_because,) if config.off_because else ()
        return ServerStatus(config.name, "off", config.transport, 0, None, None, notes)
    return ServerStatus(
        name=config.name,
        state="down" if session.failure else "idle" if session.recalled else "ready",
        transport=config.transport,
        tools=len(session.listing.definitions) - len(held),
        connect_ms=session.connect_ms,
        error=session.failure,
        notes=(*(f"{tool[:80]!r}: {why}" for tool, why in held.items()), *session.listing.notes),
        protocol=session.protocol,
        shared=config.share,
    )
