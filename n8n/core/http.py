"""One HTTP exchange with limits: on the bytes that are read and the time that it takes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

# httpx2 loads it with its first client: 100 ms, which would be on the event loop.
import httpcore2  # noqa: F401  # pyright: ignore[reportUnusedImport]
import httpx2

CONNECT_TIMEOUT_S = 5.0
"""A host that does not take a connection by then is down, not slow."""
KEEPALIVE_S = 2.0
"""Node closes idle connections after 5 s (`Keep-Alive: timeout=5`). A POST that meets the closing
connection may have run and must not be repeated, so connections are given up well before that."""
_TEXT_TYPES = frozenset(
    ("application/xml", "application/javascript", "application/x-www-form-urlencoded")
)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response that was read up to a limit."""

    status: int
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: bytes
    truncated: bool
    """The body was longer than the limit, so `body` is only its beginning."""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_text(self) -> bool:
        """Whether the body can be read, judged by its type, or without one by its first bytes."""
        kind = self.media_type
        if not kind:
            return b"\x00" not in self.body[:1024]
        return kind.startswith("text/") or kind.endswith(("json", "+xml")) or kind in _TEXT_TYPES

    @property
    def retry_after_s(self) -> float | None:
        """How many seconds the Retry-After header asks to wait; it holds seconds or a date."""
        value = self.headers.get("retry-after", "").strip()
        if value.isdecimal():
            return float(value[:9])
        try:
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
        except (ValueError, TypeError):
            return None


async def open_client(
    base_url: str, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """Open a client that follows no redirect, repeats nothing, and has no deadline of its own.

    It is made in a thread: the first one imports for 100 ms, and for https the certificate
    authorities are read, which takes as long again. An event loop may not be held for that.
    """
    return await asyncio.to_thread(_client, base_url, headers or {})


def _client(base_url: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        # A compressed body could be a thousand times its size on the wire.
        headers={"accept-encoding": "identity", "user-agent": "caal-node", **headers},
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
        verify=_tls_context() if base_url.startswith("https:") else _empty_tls_context(),
        follow_redirects=False,
    )


@cache
def _tls_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@cache
def _empty_tls_context() -> ssl.SSLContext:
    """Return the context for plain http: it trusts nobody, so https fails, as it should."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def exchange(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    max_bytes: int,
    on_chunk: Callable[[bytes], None] | None = None,
    **request: Any,
) -> HttpResponse:
    """Send a request and read at most `max_bytes` of its response.

    `on_chunk` sees the body as it comes. Raises httpx2's own errors. Cancelling closes the
    connection.
    """
    async with client.stream(method, url, **request) as response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk[: max_bytes + 1 - len(body)]
            if len(body) > max_bytes:
                break
            if on_chunk is not None:
                on_chunk(chunk)
        truncated = len(body) > max_bytes
        del body[max_bytes:]
        return HttpResponse(response.status_code, response.headers, bytes(body), truncated)


def without_userinfo(url: str) -> str:
    """Return an address fit for messages: without the password that may stand in it."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
