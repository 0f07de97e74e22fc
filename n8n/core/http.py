"""One HTTP exchange with limits: on the bytes that are read and the time that it takes."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from mcp_bridge.core.bounded_http import bounded

# Turns the address of an instance as people write it into a URL that a client can use.

PORT: Final = 5678
"""Where n8n listens unless it is told otherwise."""
MCP_PATH: Final = "/mcp-server/http"
"""Where an instance has its own MCP server."""
_SCHEMES: Final = ("http", "https")
_LOCAL_ENDINGS: Final = (".local", ".localhost", ".lan", ".home", ".internal", ".home.arpa")
"""Names that end so are of one network alone."""


def instance_url(text: str) -> str:
    """Return the http(s) URL of an instance, with no slash at its end.

    People may leave out the scheme: `localhost:5678` gets http://, and a public name without a port
    https://, since keys go there. A host of one's own network gets n8n's port where it has none.
    The address that n8n shows for its MCP server is taken for the instance's.

    Raises:
        ValueError: This is no such address; the message says why, without the address.
    """
    text = text.strip().rstrip("/").removesuffix(MCP_PATH)
    has_scheme = "://" in text
    if not has_scheme and text.partition("/")[0].rstrip(":") in _SCHEMES:
        raise _wrong_scheme()  # such as http//host
    try:
        parts = urlsplit(text if has_scheme else f"http://{text}")
        port = parts.port  # the parser checks it only here
    except ValueError:
        raise ValueError("this is no address; check brackets and port (1 to 65535)") from None
    if parts.scheme not in _SCHEMES:
        raise _wrong_scheme()
    if not parts.hostname or port == 0:
        raise ValueError("this is no address; write e.g. localhost:5678, or a URL")
    if any(char.isspace() for char in text):
        raise ValueError("the address has a space in it")
    if not has_scheme and port is None:
        if _is_of_this_network(parts.hostname):
            parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORT}")
        else:
            parts = parts._replace(scheme="https")
    return parts.geturl().rstrip("/")


def _wrong_scheme() -> ValueError:
    return ValueError("the address must begin with http:// or https://")


def _is_of_this_network(host: str) -> bool:
    """Return whether a name or an address cannot be one of the public Internet's."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host.rstrip(".") or host.endswith(_LOCAL_ENDINGS)


CONNECT_TIMEOUT_S = 5.0
"""A host that does not take a connection by then is down, not slow."""
KEEPALIVE_S = 2.0
"""Node closes idle connections after 5 s (`Keep-Alive: timeout=5`). A POST that meets the closing
connection may have run and must not be repeated, so connections are given up well before that."""
STEP_S = 0.005
"""How long a body is read before the event loop gets its turn: what has arrived already would else
be read to its end."""
STEP_BYTES = 1_024
"""How much of a body is shown at once to who looks at it while it comes."""
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
    def packing(self) -> str:
        """How the body is compressed. Such a body is not read: nobody asked for it, and a few bytes
        may unpack to any number."""
        return packing_of(self.headers)

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


def packing_of(headers: Mapping[str, str]) -> str:
    """Return the encoding of a body that came compressed though it was asked for plain, or ""."""
    coding = headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding[:40]


async def open_client(
    base_url: str, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """Open a client that follows no redirect, repeats nothing, and has no deadline of its own.

    It is made in a thread: the first one imports for 100 ms, and for https the certificate
    authorities are read, which takes as long again. An event loop may not be held for that.
    """
    return await asyncio.to_thread(_client, base_url, headers or {})


def _client(base_url: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    return bounded(
        httpx2.AsyncClient(
            # Cookies are not even read: those of one giant head take 70 ms.
            cookies=CookieJar(DefaultCookiePolicy(netscape=False)),
            headers={"accept-encoding": "identity", "user-agent": "caal-node", **headers},
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
            verify=_tls_context() if base_url.startswith("https:") else _empty_tls_context(),
            follow_redirects=False,
        )
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

    `on_chunk` sees the body as it comes. A compressed body is not read. Raises httpx2's own errors.
    Cancelling closes the connection.
    """
    async with client.stream(method, url, **request) as response:
        body = bytearray()
        if packing_of(response.headers):
            return HttpResponse(response.status_code, response.headers, b"", truncated=False)
        turn_ends = time.perf_counter() + STEP_S
        async for chunk in response.aiter_bytes():
            body += chunk[: max_bytes + 1 - len(body)]
            if len(body) > max_bytes:
                break
            for at in range(0, len(chunk), STEP_BYTES):
                if on_chunk is not None:
                    on_chunk(chunk[at : at + STEP_BYTES])
                if time.perf_counter() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.perf_counter() + STEP_S
        truncated = len(body) > max_bytes
        del body[max_bytes:]
        return HttpResponse(response.status_code, response.headers, bytes(body), truncated)


def without_userinfo(url: str) -> str:
    """Return an address fit for messages: without a password, whatever is in it."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
