"""One HTTP exchange with limits: at most so many bytes, until such a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

CONNECT_TIMEOUT_S = 5.0
"""A host that does not take a connection by then is down, not slow."""
KEEPALIVE_S = 2.0
"""Node closes idle connections after 5 s (`Keep-Alive: timeout=5`). A POST that meets the closing
connection may have run and must not be repeated, so connections are given up well before that."""


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


def open_client(headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
    """A client that follows no redirect, repeats nothing, and leaves the deadline to its caller."""
    return httpx2.AsyncClient(
        # A compressed body could be a thousand times its size on the wire.
        headers={"accept-encoding": "identity", **(headers or {})},
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
        follow_redirects=False,
    )


async def exchange(
    client: httpx2.AsyncClient, method: str, url: str, *, max_bytes: int, **request: Any
) -> Reply:
    """Send and read. Raises httpx2's own errors; cancelling closes the connection."""
    async with client.stream(method, url, **request) as response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk[: max_bytes + 1 - len(body)]
            if len(body) > max_bytes:
                break
        truncated = len(body) > max_bytes
        del body[max_bytes:]
        return Reply(response.status_code, response.headers, bytes(body), truncated)


def retry_after_s(reply: Reply) -> float | None:
    """The Retry-After header: seconds, or a date."""
    value = reply.headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
