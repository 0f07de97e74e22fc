"""Follows `tools/list_changed` in both eras: the server says so, and the list is asked for anew.

Up to 2025-11-25 a server sends the notification by itself. Since 2026-07-28 it sends it on a
stream that the client opens with `subscriptions/listen`; the SDK hands it to the same handler. What
was sent while nothing listened is lost, so every newly opened stream asks for the list once; the
first as well, since a list was read before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_bridge.connection.resilience import Backoff

logger = logging.getLogger(__name__)

SETTLE_S: Final = 0.2
"""A server that loads plug-ins says so once for each of them; one list serves them all."""
GAP_S: Final = 2.0
"""The time between two lists, however often a server says that it has changed."""
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0
"""The bounds of the wait before a stream that ended is opened again."""


class ToolChanges:
    """The changes of one connection. `handle_message` is the SDK's handler; the rest runs beside
    the calls.
    """

    def __init__(self, server: str) -> None:
        self._server: Final = server
        self._changed: Final = asyncio.Event()

    def note(self) -> None:
        """Notes that the list may be another."""
        self._changed.set()

    async def handle_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.note()

    async def follow(self, relist: Callable[[], Awaitable[None]]) -> None:
        """Runs `relist` after every change, never more often than it has to."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_S)
            self._changed.clear()
            logger.debug("%s: its tools may have changed", self._server)
            await relist()
            await asyncio.sleep(GAP_S)

    async def listen(self, client: Client) -> None:
        """Keeps a stream open where the era needs one and the server has changes to tell."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        if tools is None or not tools.list_changed:
            return
        backoff = Backoff(_FIRST_S, _LONGEST_S)
        while True:
            try:
                async with client.listen(tools_list_changed=True) as stream:
                    self.note()
                    async for _ in stream:
                        backoff.reset()
            except SubscriptionLost:
                pass
            except MCPError as error:
                logger.info("%s: tells of no changes (%d)", self._server, error.code)
                return
            await asyncio.sleep(backoff.next())
