"""Sessions that several managers of one process use together, counted.

A server is shared only where its configuration says `"share": true`. The default is not to share:
whether a server keeps something between two calls (an open page, a folder that it stands in, what
was said so far) cannot be seen from outside, and what one room said must not come up in another.
Sharing saves a process and a start for each further room; it is for servers that answer every
call from its arguments alone, such as clocks, converters and searches.
"""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp_bridge.connection.server_session import ServerSession
from mcp_bridge.core.server_config import Limits, ServerConfig
from mcp_bridge.transports.oauth import OAuth

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
