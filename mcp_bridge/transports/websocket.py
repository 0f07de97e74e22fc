"""Speaks JSON-RPC over a WebSocket, one message in each text frame, with `mcp-bridge serve`.

Messages are capped, giant answers are cut in a worker thread (`mcp_bridge/protocol/messages.py`),
and the end of the connection is told at once, in words. Redirects are not followed: the token is
for one address. Nothing is compressed, so that a small frame cannot grow into a giant one.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.shared.message import SessionMessage
from mcp_types import RequestId
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from mcp_bridge.core.errors import ServerUnavailable, why_not_permitted
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig, is_loopback
from mcp_bridge.protocol.inbound_filter import Flooded, InboundFilter
from mcp_bridge.protocol.messages import MAX_MESSAGE_BYTES, Incoming, Streams, read_message, refusal
from mcp_bridge.security.policy import objections

SUBPROTOCOL: Final = Subprotocol("mcp")
_OPEN_S: Final = 30.0
"""The time for TCP, TLS and the handshake; a session's own deadline is shorter."""
PING_S: Final = 20.0
"""The time between two pings, and for the answer to one: a dead peer is known within 40 s."""
_SEND_S: Final = 30.0
"""The time for the peer to take in one message."""
_CLOSE_S: Final = 2.0
"""The time for the closing handshake; then the connection is cut."""
_QUEUE_FRAMES: Final = 1
"""So many frames are read ahead of the session; the peer waits beyond that."""
_READ_BYTES: Final = 4 * 1024
"""The library takes apart in one step what was read at once: 2,000 frames, if they are empty."""
_MAX_UNSENT_BYTES: Final = 24 * 1024 * 1024
"""What waits to be sent: one message of the largest size, and the answers to pings."""
_REASON_CHARS: Final = 200
_AT_ONCE_CHARS: Final = 8 * 1024
"""Four bytes each at most: the library's buffer takes 32 KiB before it makes senders wait."""


class _Connect(connect):
    """The library's own client, without redirects."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


def sends_at_once(transport: asyncio.WriteTransport, message: str | bytes) -> bool:
    """Tells whether the library's buffer has room, so that sending cannot wait for the peer."""
    return len(message) <= _AT_ONCE_CHARS and not transport.get_write_buffer_size()


class _Connection(ClientConnection):
    """The library's own, which takes apart and keeps only so much."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        read_less_at_once(transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cut_off_unread(self.transport)


def cut_off_unread(transport: asyncio.WriteTransport) -> None:
    """Ends a connection whose peer sends pings and does not read the library's answers."""
    if transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
        transport.abort()


def read_less_at_once(transport: asyncio.BaseTransport) -> None:
    """Bounds the step in which the library takes frames apart."""
    if hasattr(transport, "max_size"):  # asyncio's own transports, but not those of TLS
        setattr(transport, "max_size", _READ_BYTES)  # noqa: B010 - it has no declaration


def quiet_logger(name: str) -> logging.Logger:
    """Gives a logger for the library, which would log whole messages at DEBUG."""
    quiet = logging.getLogger(name)
    quiet.setLevel(logging.WARNING)
    return quiet


_LIBRARY: Final = quiet_logger(f"{__name__}.library")


@asynccontextmanager
async def websocket_transport(
    config: ServerConfig, max_chars: int, inbound: InboundFilter, on_close: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Connects, yields the read and write streams, and closes.

    `on_close` is called once, with the reason, when the connection ends by itself; not when the
    caller leaves.

    Raises:
        ServerUnavailable: there is no connection; it says why and how to fix it.
    """
    socket = await _connected(config)
    to_session, from_server = anyio.create_memory_object_stream[Incoming](0)
    from_session, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    leaving = False

    async def read() -> None:
        with to_session, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                while True:
                    # As bytes: decoding a giant one would hold the event loop.
                    text = await socket.recv(decode=False)
                    if await inbound.admits(text):
                        message = await read_message(text, max_chars)
                        if message is not None:
                            await to_session.send(SessionMessage(message))
            except Flooded as flood:
                socket.transport.abort()
                reason = f"was left, as it {flood}"
            except ConnectionClosed as closed:
                reason = _reason(closed)
            if not leaving:
                on_close(config.redact(reason))

    def refuse(request: RequestId) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            from_session.send_nowait(SessionMessage(refusal(request)))

    inbound.refuse = refuse

    async def write() -> None:
        async with to_server:
            with suppress(ConnectionClosed):  # whoever reads says so
                async for message in to_server:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    if sends_at_once(socket.transport, text):
                        await socket.send(text)
                        continue
                    with anyio.move_on_after(_SEND_S) as sending:
                        await socket.send(text)
                    if sending.cancelled_caught:
                        socket.transport.abort()

    async with anyio.create_task_group() as tasks:
        try:
            tasks.start_soon(read)
            tasks.start_soon(write)
            yield from_server, from_session
        finally:
            leaving = True
            with anyio.CancelScope(shield=True):  # bounded: see `_hang_up`
                from_server.close()
                from_session.close()
                await anyio.lowlevel.checkpoint()  # lets the writer pass on what it accepted
                await _hang_up(socket)
            tasks.cancel_scope.cancel()


async def _connected(config: ServerConfig) -> ClientConnection:
    parts = urlsplit(config.url)
    where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    tls = await anyio.to_thread.run_sync(_tls_context, config)  # which reads the disk
    try:
        return await _Connect(
            config.url,
            subprotocols=[SUBPROTOCOL],
            additional_headers=dict(config.headers),
            compression=None,
            proxy=None if is_loopback(config.url) else True,
            open_timeout=_OPEN_S,
            ping_interval=PING_S,
            ping_timeout=PING_S,
            close_timeout=_CLOSE_S,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=_QUEUE_FRAMES,
            logger=_LIBRARY,
            ssl=tls,
            create_connection=_Connection,
        )
    except InvalidStatus as error:
        reason = _explain_status(error.response.status_code)
    except InvalidHandshake as error:
        reason = f"is no WebSocket server at {where} ({type(error).__name__}); fix the url"
    except TimeoutError:
        reason = f"does not answer at {where}; see that it runs, or fix the url"
    except ssl.SSLError:
        reason = f"has no certificate to be trusted at {where}; fix it, or the url"
    except PermissionError as error:
        said = why_not_permitted(error)
        reason = f"may not be connected to at {where} ({said}); allow it, or fix the url"
    except OSError:
        reason = f"nothing answers at {where}; start it, or fix the url"
    except ImportError:
        reason = "is behind a SOCKS proxy, which needs the package python-socks; install it"
    raise ServerUnavailable(config.name, reason)


def _tls_context(config: ServerConfig) -> ssl.SSLContext | None:
    """Gives what TLS trusts; None without TLS.

    Raises: ServerUnavailable, where the address may not be used.
    """
    for finding in objections(config):
        raise ServerUnavailable(config.name, f"{finding.key}: {finding}")
    secure = urlsplit(config.url).scheme.lower() == "wss"
    return ssl.create_default_context() if secure else None


def _explain_status(status: int) -> str:
    match status:
        case 401:
            fix = "set or fix its token"
        case 403 | 421:
            fix = "let the bridge allow our host name (--allow-host), or fix the url"
        case 404 | 426:
            fix = "fix the path of the url"
        case 503:
            fix = "it is shutting down or full; try again later"
        case _:
            fix = "look into its log"
    return f"refused the connection (HTTP {status}); {fix}"


def _reason(closed: ConnectionClosed) -> str:
    """Says on one line what the connection ended with."""
    if closed.rcvd is not None and not closed.rcvd_then_sent and closed.sent is not None:
        closing = closed.sent  # we were the first
    else:
        closing = closed.rcvd or closed.sent
    if closing is None:
        return "the connection broke"
    if closing is closed.rcvd:
        said = one_line(closing.reason, _REASON_CHARS)
        return f"closed the connection ({int(closing.code)}{f': {said}' if said else ''})"
    if closing.code == CloseCode.MESSAGE_TOO_BIG:
        return f"sent a message over {MAX_MESSAGE_BYTES // 1024**2} MiB"
    if closing.code == CloseCode.INTERNAL_ERROR:
        return f"answered no ping within {PING_S:g} s"
    return f"does not follow the WebSocket protocol ({int(closing.code)})"


async def _hang_up(socket: ClientConnection) -> None:
    # The library's own close waits without a bound for a peer that reads nothing.
    with anyio.move_on_after(_CLOSE_S):
        await socket.close()
    socket.transport.abort()
