"""Makes the HTTP client that remote servers are spoken to with.

Answers are capped and, where they are large, cut in a worker thread before the SDK reads them
(`answer_truncation.py`). A server on this machine is never reached through a proxy.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Final, NoReturn
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2

from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.server_config import ServerConfig, ServerSecrets
from mcp_bridge.protocol.messages import bounded_message
from mcp_bridge.security.addresses import is_loopback as is_loopback
from mcp_bridge.security.addresses import same_origin
from mcp_bridge.security.policy import objections

# The SDK logs a trace with an excerpt of each answer that it cannot read; callers get an error.
logging.getLogger("mcp.client.streamable_http").addFilter(lambda record: not record.exc_info)

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The cap of one JSON body, or of one line of an event stream."""
_MAX_REDIRECTS: Final = 3
"""So many are followed for one request: a slash that is missing, a path that has moved."""
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""An event stream may be silent for long; calls have deadlines of their own."""


class HttpMonitor:
    """Looks at every request and response of one connection."""

    def __init__(self, max_chars: int, secrets: ServerSecrets) -> None:
        self._max_chars = max_chars
        self._secrets = secrets
        self.refused = ""
        """Why a response was not taken, and how to mend it."""
        self.status: int | None = None
        """The status of the last response."""

    async def request(self, request: httpx2.Request) -> None:
        self._secrets.note_headers(request.headers)

    async def response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        if response.has_redirect_location:
            self._check_redirect(response)
            return
        stream = response.stream
        kind = response.headers.get("content-type", "").lower()
        if not isinstance(stream, httpx2.AsyncByteStream):
            return
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # Some bytes may unpack to any number, past every cap.
            self._refuse("packs its answers though it was asked not to; turn that off")
        if kind.startswith("application/json"):
            response.stream = _JsonBody(stream, self._max_chars)
        elif kind.startswith("text/event-stream"):
            response.stream = _EventStream(stream, self._max_chars)

    def _check_redirect(self, response: httpx2.Response) -> None:
        """Refuses to send the token elsewhere than the configuration says.

        The SDK follows redirects within an origin, and no others; here the others get their words.
        """
        where = response.headers["location"]
        if not same_origin(str(response.url), where):
            parts = urlsplit(where)
            host = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "elsewhere"
            self._refuse(f"redirects to {host[:100]}, where its token does not go; mend the url")

    def _refuse(self, reason: str) -> NoReturn:
        self.refused = reason
        raise httpx2.RemoteProtocolError(reason)


async def http_client(
    config: ServerConfig, watch: HttpMonitor, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """Makes a client, which the caller enters. A thread does it, as it reads certificates."""
    return await anyio.to_thread.run_sync(_client, config, watch, auth)


def _client(
    config: ServerConfig, watch: HttpMonitor, auth: httpx2.Auth | None
) -> httpx2.AsyncClient:
    for finding in objections(config):
        raise ServerUnavailable(config.name, f"{finding.key}: {finding}")
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **config.headers},
        timeout=_TIMEOUT,
        auth=auth,
        event_hooks={"request": [watch.request] if auth else [], "response": [watch.response]},
        max_redirects=_MAX_REDIRECTS,
        trust_env=not is_loopback(config.url),
    )


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of a response, whose messages are capped and cut."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_chars: int) -> None:
        self._inner = inner
        self._max_chars = max_chars

    async def aclose(self) -> None:
        await self._inner.aclose()


class _JsonBody(_BoundedBody):
    """A JSON body, given as one piece."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        size = 0
        async for part in self._inner:
            parts.append(part)
            size += len(part)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"over {MAX_MESSAGE_BYTES // 1024**2} MiB")
        yield await bounded_message(b"".join(parts), self._max_chars)


class _EventStream(_BoundedBody):
    """A stream of server-sent events, given line by line."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        size = 0
        async for chunk in self._inner:
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                yield await self._line(b"".join([*parts, piece])) + b"\n"
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.SSEError(f"an event is over {MAX_MESSAGE_BYTES // 1024**2} MiB")
        yield b"".join(parts)

    async def _line(self, line: bytes) -> bytes:
        if not line.startswith(b"data:"):
            return line
        return b"data: " + await bounded_message(
            line.removeprefix(b"data:").strip(), self._max_chars
        )
