"""One HTTP exchange with limits: at most so many bytes, until such a time."""

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
class Reply:
    status: int
    headers: Mapping[str, str]
    """Lower-cased names."""
    body: bytes
    truncated: bool
    """The body was longer than the limit; what is here is its beginning."""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


async def open_client(
    base_url: str, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """A client that follows no redirect, repeats nothing, and leaves the deadline to its caller.

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
        verify=_trusting() if base_url.startswith("https:") else _trusting_nobody(),
        follow_redirects=False,
    )


@cache
def _trusting() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@cache
def _trusting_nobody() -> ssl.SSLContext:
    """For plain http: without authorities every https connection fails, as it should."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def exchange(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    max_bytes: int,
    on_chunk: Callable[[bytes], None] | None = None,
    **request: Any,
) -> Reply:
    """Send and read; `on_chunk` sees the body as it comes. Raises httpx2's own errors; cancelling
    closes the connection."""
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
        return Reply(response.status_code, response.headers, bytes(body), truncated)


def without_userinfo(url: str) -> str:
    """An address fit for messages: a password for a proxy in front of n8n may stand in it."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def retry_after_s(reply: Reply) -> float | None:
    """The Retry-After header: seconds, or a date."""
    value = reply.headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def is_text(reply: Reply) -> bool:
    """Whether the body is for reading, by its type, or by its first bytes without one."""
    kind = reply.media_type
    if not kind:
        return b"\x00" not in reply.body[:1024]
    return kind.startswith("text/") or kind.endswith(("json", "+xml")) or kind in _TEXT_TYPES
