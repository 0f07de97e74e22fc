"""The client with which this package asks every server over HTTP, and what an answer may cost.

An answer comes plain, as it was asked for: a few compressed bytes may unpack to any number, past
every limit. Its bytes and its pieces are counted as they come, and the event loop gets its turns
meanwhile. Cookies are neither read nor sent, and redirects are not followed. Deadlines are the
caller's.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, cast

import httpx2

from mcp_bridge.core.bounded_http import bounded

ANSWER_MAX_BYTES: Final = 1_048_576
"""Bytes of an answer, where the caller does not say."""
PIECES_MAX: Final = 131_072
"""Pieces in which an answer may come. Each costs a tenth of a millisecond, however short it is, and
no server needs more: 30,000 tokens, four times over."""
STEP_S: Final = 0.005
"""Seconds that reading goes on before the event loop gets its turn."""


class UnfitAnswer(httpx2.TransportError):
    """An answer that is not read. The text says why, and follows the server's name."""


class TooLongAnswer(UnfitAnswer):
    """An answer of more bytes or pieces than are read."""


class LoopTurns:
    """Lets the event loop have its turn where work would go on for longer than `STEP_S`.

    What has arrived already is handed out without any wait: a packet may hold thousands of pieces.
    """

    def __init__(self) -> None:
        self._ends = 0.0

    async def give(self) -> None:
        if time.perf_counter() > self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + STEP_S


def open_client(max_bytes: int = ANSWER_MAX_BYTES, **options: Any) -> httpx2.AsyncClient:
    """Open a client with `options` of `httpx2.AsyncClient`, for answers of up to `max_bytes`."""

    async def check(response: httpx2.Response) -> None:
        if coding := packing_of(response):
            raise UnfitAnswer(
                f"packs its answers ({coding}), though it was asked not to; turn that off"
            )
        stream = cast(httpx2.AsyncByteStream, response.stream)
        response.stream = _CountedBody(stream, max_bytes)

    return bounded(
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **options.pop("headers", {})},
            event_hooks={"response": [check]},
            cookies=CookieJar(DefaultCookiePolicy(netscape=False)),
            **options,
        )
    )


async def tls_for(address: str) -> ssl.SSLContext:
    """Return what a client checks a server at `address` by, to be given to it as `verify`.

    A client without one reads the system's certificates for 30 to 130 ms on the event loop.
    """
    # Without authorities it trusts nobody, so that https fails, as it should.
    return await asyncio.to_thread(_authorities) if address.startswith("https:") else _nobody()


@cache
def _authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@cache
def _nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def packing_of(response: httpx2.Response) -> str:
    """Return how the body is compressed, or "" for a plain one."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding[:40]


class _CountedBody(httpx2.AsyncByteStream):
    """The body of a response, which ends with an error at its limit."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        turns = LoopTurns()
        size = pieces = 0
        async for piece in self._inner:
            size, pieces = size + len(piece), pieces + 1
            if size > self._max_bytes or pieces > PIECES_MAX:
                raise TooLongAnswer(f"sent an answer longer than {self._max_bytes:,} bytes")
            await turns.give()
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
