"""Makes the HTTP client that remote servers are spoken to with.

Answers are capped and, where they are large, cut in a worker thread before the SDK reads them
(`answer_truncation.py`). A server on this machine is never reached through a proxy.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NoReturn
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2

from mcp_bridge.core.addresses import is_loopback as is_loopback
from mcp_bridge.core.bounded_http import bounded
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.server_config import ServerConfig, ServerSecrets
from mcp_bridge.protocol.envelope import find_request_id
from mcp_bridge.protocol.inbound_filter import InboundFilter
from mcp_bridge.protocol.messages import bounded_message
from mcp_bridge.security.addresses import same_origin
from mcp_bridge.security.policy import objections
from mcp_bridge.transports.event_stream import MAX_MESSAGE_BYTES, EventStream

_MAX_OTHER_BYTES: Final = 1024 * 1024
"""The cap of a body that is neither JSON nor events: a page that says what is wrong."""
_MAX_REDIRECTS: Final = 3
"""So many are followed for one request: a slash that is missing, a path that has moved."""
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""An event stream may be silent for long; calls have deadlines of their own."""
_END_S: Final = 2.0
"""The time for telling the server that a session is over."""
_SESSION: Final = ("mcp-session-id", "mcp-protocol-version")
_EVENTS: Final = "text/event-stream"
_READ_TYPES: Final = (_EVENTS, "application/json")


class HttpMonitor:
    """Looks at every request and response of one connection.

    Args:
        endpoint: Whether the server says in an event where to post (the transport `sse`).
        flooded: Called with the reason when the server does not stop.
    """

    def __init__(
        self,
        max_chars: int,
        secrets: ServerSecrets,
        inbound: InboundFilter,
        flooded: Callable[[str], None] = lambda _: None,
        *,
        endpoint: bool = False,
    ) -> None:
        self._max_chars: Final = max_chars
        self._secrets: Final = secrets
        self._inbound: Final = inbound
        self._flooded: Final = flooded
        self._endpoint: Final = endpoint
        self.refused = ""
        """Why a response was not taken, and how to mend it."""
        self.status: int | None = None
        """The status of the last response."""
        self.session: Mapping[str, str] = {}
        """The headers that name the session to the server; empty while there is none."""

    async def request(self, request: httpx2.Request) -> None:
        self._secrets.note_headers(request.headers)

    async def response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        sent = response.request.headers
        self.session = {name: sent[name] for name in _SESSION if name in sent} or self.session
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # Some bytes may unpack to any number, past every cap.
            self._refuse("packs its answers though it was asked not to; turn that off")
        if isinstance(stream := response.stream, httpx2.AsyncByteStream):
            response.stream = self._bounded(response, stream)
        if response.has_redirect_location:
            self._check_redirect(response)

    def _bounded(
        self, response: httpx2.Response, stream: httpx2.AsyncByteStream
    ) -> httpx2.AsyncByteStream:
        kind = response.headers.get("content-type", "").lower()
        if response.has_redirect_location or not kind.startswith(_READ_TYPES):
            return _OtherBody(stream, self._inbound)
        if kind.startswith(_EVENTS):
            response.encoding = "utf-8"  # whatever its header says
            return EventStream(
                stream,
                self._inbound,
                self._max_chars,
                self._flooded,
                any_id=response.request.method == "POST",
                endpoint=self._endpoint,
            )
        return _JsonBody(stream, self._inbound, self._max_chars)

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
    return bounded(
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **config.headers},
            timeout=_TIMEOUT,
            auth=auth,
            event_hooks={"request": [watch.request] if auth else [], "response": [watch.response]},
            max_redirects=_MAX_REDIRECTS,
            trust_env=not is_loopback(config.url),
        )
    )


async def end_session(client: httpx2.AsyncClient, url: str, monitor: HttpMonitor) -> None:
    """Tells the server that a session is over, as far as it listens."""
    if "mcp-session-id" in monitor.session:
        with anyio.move_on_after(_END_S), contextlib.suppress(httpx2.HTTPError):
            async with client.stream("DELETE", url, headers=dict(monitor.session)):
                pass


class _Body(httpx2.AsyncByteStream):
    """The body of a response, read within a cap."""

    def __init__(self, inner: httpx2.AsyncByteStream, inbound: InboundFilter) -> None:
        self._inner: Final = inner
        self._inbound: Final = inbound

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _parts(self, max_bytes: int) -> AsyncIterator[bytes]:
        """Raises: httpx2.StreamError, where it is longer."""
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > max_bytes:
                raise httpx2.StreamError(f"over {max_bytes // 1024**2} MiB")
            yield part
            await self._inbound.give_way(len(part))


class _JsonBody(_Body):
    """A JSON body, given as one piece."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, inbound: InboundFilter, max_chars: int
    ) -> None:
        super().__init__(inner, inbound)
        self._max_chars: Final = max_chars

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for part in self._parts(MAX_MESSAGE_BYTES):
            body += part
        text = bytes(body)
        if written := find_request_id(text, text):
            self._inbound.answered(json.loads(written))
        try:
            yield await bounded_message(text, self._max_chars)
        except ValueError:
            raise httpx2.StreamError("no JSON that can be read") from None


class _OtherBody(_Body):
    """What nobody reads, or only somebody who looks for what is wrong."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts(_MAX_OTHER_BYTES):
            yield part
