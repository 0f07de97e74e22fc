"""Passes LiveKit's signalling on, so that a page needs no connection but to its own server.

Browsers refuse `ws://` to a page that came over https, and a LiveKit server on loopback is out of
reach of other devices. Only signalling goes this way: sound goes straight to the LiveKit server.
LiveKit checks the token of each connection, as it does without this.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

SIGNALLING: Final = "/page/livekit"
"""What a page is given as LiveKit's address. LiveKit's clients add PATHS to it."""
PATHS: Final = frozenset({"rtc", "rtc/v1"})
OPEN_S: Final = 10.0
CLOSE_S: Final = 2.0
MAX_MESSAGE_BYTES: Final = 1 << 20
"""A message of a room with a hundred participants has 100 kB."""
MAX_CONNECTIONS: Final = 128
"""Two for each page that the server remembers, as a page that reconnects has two for a moment."""
_REFUSED: Final = 1008
_TRY_LATER: Final = 1013
_NORMAL: Final = 1000
_BROKEN: Final = 1011
"""With any code but the normal one LiveKit's clients connect again."""

logger = logging.getLogger(__name__)


class SignallingProxy:
    """Connects pages to one LiveKit server, `ws://HOST:PORT`."""

    def __init__(self, livekit_url: str) -> None:
        self._url: Final = livekit_url.rstrip("/")
        self._open = 0

    async def serve(self, page: WebSocket, path: str) -> None:
        """Pass on what the page and LiveKit send each other, until one of them closes."""
        code = _REFUSED if path not in PATHS else _TRY_LATER
        if path in PATHS and self._open < MAX_CONNECTIONS:
            self._open += 1
            try:
                code = await self._connected(page, path)
            finally:
                self._open -= 1
        with suppress(WebSocketDisconnect, RuntimeError):  # it has left already
            await page.close(code)

    async def _connected(self, page: WebSocket, path: str) -> int:
        """Return with which code the page's connection ends."""
        try:
            async with connect(
                f"{self._url}/{path}?{page.url.query}",
                open_timeout=OPEN_S,
                close_timeout=CLOSE_S,
                max_size=MAX_MESSAGE_BYTES,
                compression=None,
                proxy=None,
            ) as livekit:
                await page.accept()
                await _pass_on(page, livekit)
            return _NORMAL if livekit.close_code == _NORMAL else _BROKEN
        except (OSError, TimeoutError, WebSocketException) as error:
            # Its text may hold the address, and with it the token.
            logger.warning("LiveKit did not take a page's connection: %s", type(error).__name__)
            return _TRY_LATER


async def _pass_on(page: WebSocket, livekit: ClientConnection) -> None:
    ways = [
        asyncio.create_task(_from_page(page, livekit), name="caal-signalling-up"),
        asyncio.create_task(_from_livekit(page, livekit), name="caal-signalling-down"),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _from_page(page: WebSocket, livekit: ClientConnection) -> None:
    while (message := await page.receive())["type"] == "websocket.receive":
        data = message.get("bytes")
        await livekit.send(message["text"] if data is None else data)


async def _from_livekit(page: WebSocket, livekit: ClientConnection) -> None:
    async for message in livekit:
        if isinstance(message, str):
            await page.send_text(message)
        else:
            await page.send_bytes(message)
