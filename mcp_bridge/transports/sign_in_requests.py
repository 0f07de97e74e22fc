"""Sends what a sign-in asks for, to addresses that the server names, and judges these first.

A server says where people sign in to it: documents, a registration, a page, an endpoint for tokens.
Without a rule it could have us ask whatever this machine can reach. So such a request goes to the
server's own origin, to origins that its entry names (`authorization_servers`), and else to https://
addresses of the public internet alone. A name is looked up once, and what is judged is what is then
connected to: a second look-up could say something else.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread
import httpx2

from mcp_bridge.core.addresses import is_loopback
from mcp_bridge.core.bounded_http import bound_transport, bounded
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.security.addresses import is_public, origin_of, plain_text

MAX_URL_CHARS: Final = 16 * 1024
"""The length of any address of a sign-in, that of the way back included."""
MAX_BODY_BYTES: Final = 32 * 1024
"""Such documents are rarely over 8 KiB. At worst, as a list of nothing but errors, this much is
parsed in 15 ms."""
DEADLINE_S: Final = 20.0
"""The time for one request, from looking up its name to the last byte of its answer."""
_NO_KEEPALIVE: Final = httpx2.Limits(max_keepalive_connections=0)
"""Connections are pooled by address, and two names at one address must not share one."""

_NUMBER: Final = re.compile(r"(?=.*\Z)(?:.*:.*|(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?)")
"""A host that is an address written as a number, in any way that one can be (127.1, 0x7f000001)."""

LookUp: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""A function that gives all addresses of a name."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """Gives all addresses of a name. Raises: httpx2.ConnectError."""
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host[:100]!r} cannot be looked up") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class SignInRequests:
    """The requests of one server's sign-ins."""

    def __init__(self, config: ServerConfig, look_up: LookUp) -> None:
        self._server: Final = config.name
        self._look_up: Final = look_up
        self._own: Final = {origin_of(url) for url in (config.url, *config.authorization_servers)}

    async def check(self, url: str) -> Sequence[str]:
        """Gives the public addresses that `url` may be asked at; none where any will do.

        Raises: ServerUnavailable, with the mend; httpx2.ConnectError.
        """
        try:
            parts, origin = urlsplit(url), origin_of(url)
        except ValueError:
            parts, origin = urlsplit(""), None
        host = parts.hostname
        if not host or parts.scheme not in ("http", "https") or not _is_plainly_written(url):
            raise ServerUnavailable(self._server, "has its sign-in at what is no web address")
        if plain_text(url) is not None:
            raise self._refusal(url, "not encrypted; it has to be https://")
        if origin in self._own:
            return ()
        mend = "if that is yours, name it in authorization_servers"
        if parts.scheme != "https" or is_loopback(url):
            raise self._refusal(url, f"neither its own address nor a public one; {mend}")
        if _proxy_of(url) is not None and _NUMBER.fullmatch(host) is None:
            return ()  # the owner's proxy looks names up, and decides what it reaches
        found = await self._look_up(host, parts.port or 443)
        if not found or not all(map(is_public, found)):
            raise self._refusal(url, f"neither its own address nor a public one; {mend}")
        return found

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request and reads its whole answer.

        Raises: ServerUnavailable, where it may not be sent or its answer is no document.
        """
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout(DEADLINE_S):
                addresses = await self.check(str(request.url))
                client = await anyio.to_thread.run_sync(_client, str(request.url), addresses)
                async with client:
                    response = await client.send(request, stream=True, follow_redirects=False)
                    try:
                        await self._read(response)
                    finally:
                        await response.aclose()
                    return response
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no answer in {DEADLINE_S:g} s", request=request) from None

    async def _read(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ServerUnavailable(self._server, "packs its sign-in though it was asked not to")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _CappedBody(response.stream, self._server)
        await response.aread()

    def _refusal(self, url: str, why: str) -> ServerUnavailable:
        parts = urlsplit(url)
        where = one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", 100)
        return ServerUnavailable(self._server, f"has its sign-in at {where}, which is {why}")


class _CappedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, server: str) -> None:
        self._inner: Final = inner
        self._server: Final = server

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_BODY_BYTES
        async for part in self._inner:
            left -= len(part)
            if left < 0:
                long = f"answers a sign-in with over {MAX_BODY_BYTES // 1024} KiB"
                raise ServerUnavailable(self._server, long)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class JudgedTransport(httpx2.AsyncBaseTransport):
    """Connects to addresses that were judged, whatever the name leads to by now.

    The certificate must still be the name's.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, addresses: Sequence[str]) -> None:
        self._inner: Final = inner
        self._addresses: Final = addresses

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        failure = httpx2.ConnectError("it has no address")
        for address in self._addresses:
            there = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode()},
            )
            try:
                return await self._inner.handle_async_request(there)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def _client(url: str, addresses: Sequence[str]) -> httpx2.AsyncClient:
    """Makes a client for one request, in a thread, as it reads certificates."""
    if not addresses:
        return bounded(httpx2.AsyncClient(timeout=DEADLINE_S, trust_env=not is_loopback(url)))
    inner = bound_transport(httpx2.AsyncHTTPTransport(limits=_NO_KEEPALIVE))
    return httpx2.AsyncClient(timeout=DEADLINE_S, transport=JudgedTransport(inner, addresses))


def _is_plainly_written(url: str) -> bool:
    """Tells whether it reads as it leads: no user name as a disguise, nothing that is not seen."""
    visible = url.isascii() and url.isprintable() and not {" ", "\\"} & set(url)
    return visible and len(url) <= MAX_URL_CHARS and urlsplit(url).username is None


def _proxy_of(url: str) -> str | None:
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc) else proxy
