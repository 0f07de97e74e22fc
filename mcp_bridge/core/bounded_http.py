"""Bounds what one step of an HTTP client reads, so that no server holds the event loop.

httpcore2 has one size of reads and of heads for the whole process. Here they belong to one client:
its connections read through a network stream that hands out less at once, and ends an answer whose
head is too long. Clients of other packages in the process keep httpcore2's sizes.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore2
import httpx2

READ_BYTES: Final = 8_192
"""Bytes that are read at once: as many as hold 300 heads of `100 Continue`, which take 9 ms."""
HEAD_BYTES: Final = 16_384
"""Bytes of an answer's head: 100 KB of short headers would take 40 ms. Servers allow their own
clients 8 to 16 KiB."""


def bounded(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Bound all that `client` reads, directly and through proxies, and return it.

    It must not have connected yet.
    """
    # There is no public way to give one client a network backend and leave it its proxies.
    for transport in (client._transport, *client._mounts.values()):  # pyright: ignore[reportPrivateUsage]
        if isinstance(transport, httpx2.AsyncHTTPTransport):
            bound_transport(transport)
    return client


def bound_transport(transport: httpx2.AsyncHTTPTransport) -> httpx2.AsyncHTTPTransport:
    """Bound what `transport` reads, as `bounded` does, and return it."""
    pool: Any = transport._pool  # pyright: ignore[reportPrivateUsage]
    pool._network_backend = _BoundedBackend(pool._network_backend)
    return transport


class _BoundedBackend(httpcore2.AsyncNetworkBackend):
    """Makes connections that read within bounds."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner: Final = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return _BoundedStream(stream)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _BoundedStream(await self._inner.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _BoundedStream(httpcore2.AsyncNetworkStream):
    """A connection that reads `READ_BYTES` at once, and no head of over `HEAD_BYTES`."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner: Final = inner
        self._head: bytearray | None = None
        """What has come of the head that is read; None behind its end."""

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
    ) -> bytes:
        data = await self._inner.read(min(max_bytes, READ_BYTES), timeout)
        if self._head is not None:
            self._read_head(self._head, data)
        return data

    def _read_head(self, head: bytearray, data: bytes) -> None:
        """Raises: httpcore2.RemoteProtocolError: the head is too long."""
        head += data
        while end := _end_of_head(head):
            if not head.startswith(b" 1", 8):  # "HTTP/1.1 100 Continue" is followed by another one
                self._head = None
                return
            del head[:end]
        if len(head) > HEAD_BYTES:
            raise httpcore2.RemoteProtocolError(f"a head of over {HEAD_BYTES:,} bytes")

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
    ) -> None:
        self._head = bytearray()
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
    ) -> httpcore2.AsyncNetworkStream:
        return _BoundedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _end_of_head(head: bytearray) -> int:
    """Return where the head ends, behind its empty line, or 0. Line ends may be LF alone."""
    ends = [at + len(mark) for mark in (b"\n\r\n", b"\n\n") if (at := head.find(mark)) >= 0]
    return min(ends, default=0)
