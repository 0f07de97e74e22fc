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
    """By name, in the order of the configuration. Whoever goes has to be made to `leave`.

    Args:
        pool: None is the event loop's own.
        changed: told the name of a server whose list has become another one.
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
        self._members: dict[str, ManagedServer] = {}

    def __getitem__(self, name: str) -> ManagedServer:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def become(self, wanted: Mapping[str, ServerConfig]) -> tuple[set[str], list[ManagedServer]]:
        """Takes these servers for the ones before; the names that are new, and those that go.

        A server whose configuration is the same stays as it is.
        """
        before = self._members
        stays = {n: m for n, m in before.items() if wanted.get(n) == m.config}
        self._members = {n: stays.get(n) or self._join(config) for n, config in wanted.items()}
        return wanted.keys() - stays.keys(), [m for n, m in before.items() if n not in stays]

    async def leave(self, member: ManagedServer) -> None:
        """Closes its session, unless others use that."""
        member.session.watchers.remove(member.watcher)
        if self._pool is not None:
            await self._pool.give_back(member.session)

    def _join(self, config: ServerConfig) -> ManagedServer:
        if self._pool is None:
            self._pool = pool_of_loop()
        session = self._pool.take(config, self._limits, self._oauth)
        member = ManagedServer(config, session, partial(self._changed, config.name))
        session.watchers.append(member.watcher)
        return member


def status_of(
    config: ServerConfig, session: ServerSession | None, held: Mapping[str, str]
) -> ServerStatus:
    """Of a configured server; without a session it is off."""
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
