"""The listening server: it lets clients in, answers /health, and stops in good order."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Self

import anyio
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from mcp_bridge.core.errors import ConfigError, ServerUnavailable
from mcp_bridge.core.server_config import EMPTY
from mcp_bridge.serve.access_control import (
    HEALTH,
    PATHS,
    AccessControl,
    ConnectionQuota,
    QuotaExceeded,
    Refusal,
)
from mcp_bridge.serve.half_open import HalfOpen, Listener, client_of, listening_sockets
from mcp_bridge.serve.options import ServeOptions, tls_context
from mcp_bridge.serve.relay import CloseReason, Relay, ShutdownSignals
from mcp_bridge.transports.process import ServerProcess, spawn
from mcp_bridge.transports.websocket import (
    SUBPROTOCOL,
    cut_off_unread,
    quiet_logger,
    read_less_at_once,
)

logger = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
"""The time for the closing handshake; then the connection is cut."""
_QUEUE_FRAMES: Final = 2
"""So many frames are read ahead; with the cap of a message this bounds what a client can fill."""
_BACKLOG: Final = 128
_REASON_BYTES: Final = 123
"""RFC 6455, 5.5: a control frame holds 125 bytes, two of them the code."""
_LIBRARY: Final = quiet_logger(f"{__name__}.library")


class _Connection(ServerConnection):
    """The library's own, which takes apart and keeps only so much."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        read_less_at_once(transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cut_off_unread(self.transport)


class Bridge:
    """Use it as `async with Bridge(options) as bridge`; leaving it ends every connection at once.

    `drain` ends them in good order.

    Raises:
        ConfigError: the options are refused, or nobody can listen there.
    """

    def __init__(self, options: ServeOptions) -> None:
        options.check()
        self._options: Final = options
        self._config: Final = options.server()
        self._tls: Final = tls_context(options.tls)
        self._access: Final = AccessControl(options)
        self._quota: Final = ConnectionQuota(
            options.limits.max_connections, options.limits.max_per_client
        )
        self._shutdown: Final = ShutdownSignals(asyncio.Event(), asyncio.Event())
        self._half_open: Final = HalfOpen(options.limits.max_per_client)
        self._servers: list[Server] = []
        self.port = options.port

    @property
    def url(self) -> str:
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"{'wss' if self._tls else 'ws'}://{host}:{self.port}/mcp"

    async def __aenter__(self) -> Self:
        host, port = self._options.host, self._options.port
        try:
            for listener in await listening_sockets(host, port, self._half_open):
                self._servers.append(await self._listen(listener))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(
                f"cannot listen at {host}:{port} ({reason}); mend --host or --port"
            ) from None
        self.port = self._servers[0].sockets[0].getsockname()[1]
        return self

    async def _listen(self, listener: Listener) -> Server:
        limits = self._options.limits
        return await serve(
            self._handle,
            sock=listener,
            ssl=self._tls,
            ssl_handshake_timeout=limits.open_timeout_s if self._tls else None,
            subprotocols=[SUBPROTOCOL],
            compression=None,
            process_request=self._admit,
            server_header=None,
            open_timeout=limits.open_timeout_s,
            ping_interval=limits.ping_interval_s,
            ping_timeout=limits.ping_timeout_s,
            close_timeout=_CLOSE_S,
            max_size=limits.max_message_bytes,
            max_queue=_QUEUE_FRAMES,
            logger=_LIBRARY,
            create_connection=_Connection,
            backlog=_BACKLOG,
        )

    async def __aexit__(self, *_: object) -> None:
        await self.drain(0)

    async def drain(self, within_s: float | None = None) -> None:
        """Stops listening; each connection ends when its last call is answered, or at the deadline.

        Args:
            within_s: seconds; None takes the options'.
        """
        servers, self._servers = self._servers, []
        for server in servers:
            server.close(close_connections=False)
        self._shutdown.soon.set()
        self._half_open.end()
        seconds = self._options.limits.drain_s if within_s is None else within_s
        with anyio.CancelScope(shield=True):  # bounded: each connection's end is
            with anyio.move_on_after(seconds):
                await _all_closed(servers)
            self._shutdown.now.set()
            await _all_closed(servers)

    def hurry(self) -> None:
        """Ends a drain at once."""
        self._shutdown.now.set()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answers None to let the client in. Nothing here waits, so nobody slips past a check."""
        headers, path = request.headers, request.path.partition("?")[0]
        refusal = self._access.host(headers, _host(connection.local_address))
        if refusal is None and path == HEALTH:
            return self._health(request.method)
        if refusal is None and path not in PATHS:
            refusal = Refusal(HTTPStatus.NOT_FOUND, f"connect to {PATHS[-1]}, or ask {HEALTH}")
        if refusal is None:
            refusal = self._access.client(headers)
        if refusal is None:
            return None
        logger.info("refused a client: %d", refusal.status)
        more = {"WWW-Authenticate": "Bearer"} if refusal.status == HTTPStatus.UNAUTHORIZED else {}
        return _response(refusal.status, {"error": refusal.reason}, more)

    def _health(self, method: str) -> Response:
        if method not in ("GET", "HEAD"):
            return _response(
                HTTPStatus.METHOD_NOT_ALLOWED, {"error": "use GET"}, {"Allow": "GET, HEAD"}
            )
        told = {
            "status": "ok",
            "connections": len(self._quota),
            "max_connections": self._quota.most,
        }
        return _response(HTTPStatus.OK, told, empty=method == "HEAD")

    async def _handle(self, socket: ServerConnection) -> None:
        client = _host(socket.remote_address)
        began = anyio.current_time()
        self._half_open.let_in(socket.remote_address)
        try:
            with self._quota.reserve(client_of(client)):
                close = await self._serve(socket)
        except QuotaExceeded as full:
            close = CloseReason(CloseCode.TRY_AGAIN_LATER, str(full))
            await _hang_up(socket, close)
        except ServerUnavailable as error:
            close = CloseReason(CloseCode.INTERNAL_ERROR, f"the server {error.reason}")
            await _hang_up(socket, close)
        finally:
            socket.transport.abort()
        took_s = anyio.current_time() - began
        logger.info("%s: %s after %.1f s", client, self._config.redact(close.reason), took_s)

    async def _serve(self, socket: ServerConnection) -> CloseReason:
        """Runs one process for one client. Raises: ServerUnavailable."""
        process = await spawn(self._config)
        close = CloseReason(CloseCode.INTERNAL_ERROR, "the bridge failed; look into its log")
        try:
            relay = Relay(socket, process, self._options.limits, self._shutdown)
            close = await relay.run()
            said = self._config.redact(close.reason)
            close = CloseReason(close.code, said)
        finally:
            # Bounded: every wait of both has a deadline.
            with anyio.CancelScope(shield=True):
                await _end_both(socket, close, process)
        return close


async def _all_closed(servers: list[Server]) -> None:
    for server in servers:
        await server.wait_closed()


async def _end_both(socket: ServerConnection, close: CloseReason, process: ServerProcess) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hang_up, socket, close)
        tasks.start_soon(process.stop)


async def _hang_up(socket: ServerConnection, close: CloseReason) -> None:
    if close.code is not None:
        # The library's own close waits without a bound for a peer that reads nothing.
        with anyio.move_on_after(_CLOSE_S):
            await socket.close(close.code, _close_frame_text(close.reason))
    socket.transport.abort()


def _host(address: Any) -> str:
    """Gives the host of a socket's address; empty where the peer is gone already."""
    return str(address[0]) if address else ""


def _close_frame_text(reason: str) -> str:
    """Gives `reason` on one line, as long as a close frame may hold it."""
    line = " ".join(reason.split())
    return line.encode("utf-8", "replace")[:_REASON_BYTES].decode(errors="ignore")


def _response(
    status: HTTPStatus,
    told: Mapping[str, Any],
    more: Mapping[str, str] = EMPTY,
    *,
    empty: bool = False,
) -> Response:
    body = json.dumps(told).encode() + b"\n"
    headers = Headers(
        {
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            **more,
        }
    )
    return Response(status.value, status.phrase, headers, b"" if empty else body)
