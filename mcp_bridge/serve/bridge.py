"""The listening server: it lets clients in, answers /health, and stops in good order."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

import anyio
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from mcp_bridge.core.errors import ConfigError, ServerUnavailable
from mcp_bridge.core.server_config import EMPTY
from mcp_bridge.serve.options import ServeOptions, tls_context
from mcp_bridge.serve.relay import CloseReason, Relay, ShutdownSignals
from mcp_bridge.transports.process import ServerProcess, spawn
from mcp_bridge.transports.websocket import (
    SUBPROTOCOL,
    cut_off_unread,
    quiet_logger,
    read_less_at_once,
)

# Decides who may connect, and how many: nobody gets a process before all of this is passed.
#
# The checks are in this order: the host that the client believes to speak to, the path, the origin
# of a web page, the token. A page whose name was made to point at this machine (DNS rebinding)
# sends its own name as Host; so names must be known, and an address must be the one that the
# connection came in at.

PATHS: Final = ("/", "/mcp")
HEALTH: Final = "/health"
_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a client is not let in."""

    status: HTTPStatus
    reason: str
    """One line for the client; it says nothing of the token."""


class AccessControl:
    """Checks the headers of a client against the options."""

    def __init__(self, options: ServeOptions) -> None:
        self._token: Final = options.token
        self._hosts: Final = frozenset(host.lower() for host in options.allow_hosts)
        self._origins: Final = frozenset(origin.lower() for origin in options.allow_origins)

    def host(self, headers: Headers, arrived_at: str) -> Refusal | None:
        """Checks the host. `arrived_at` is the address of this end of the connection."""
        written = headers.get_all("Host")
        if len(written) != 1:
            return Refusal(HTTPStatus.BAD_REQUEST, "send one Host header")
        host = _hostname(written[0])
        if host in self._hosts or _is_address(host, arrived_at):
            return None
        return Refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            "this host name is not allowed; start the bridge with --allow-host NAME",
        )

    def client(self, headers: Headers) -> Refusal | None:
        """Checks whether a client that reached the right host may have a process."""
        origins = headers.get_all("Origin")
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return Refusal(
                HTTPStatus.FORBIDDEN,
                "this origin is not allowed; start the bridge with --allow-origin ORIGIN",
            )
        if self._token is not None:
            given = headers.get_all("Authorization")
            bearer = given[0] if len(given) == 1 else ""
            known = bearer[: len(_BEARER)].lower() == _BEARER
            if not self._token.matches(bearer[len(_BEARER) :].strip()) or not known:
                return Refusal(
                    HTTPStatus.UNAUTHORIZED, "send the header Authorization: Bearer TOKEN"
                )
        return None


def _hostname(written: str) -> str:
    """Gives a Host header without its port and brackets, in small letters."""
    host = written.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_address(host: str, arrived_at: str) -> bool:
    at = _address(arrived_at)
    if host == "localhost" or host.endswith(".localhost"):
        return at is not None and at.is_loopback
    return at is not None and _address(host) == at


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class QuotaExceeded(Exception):
    """There is no room for another connection; the message says in which way."""


class ConnectionQuota:
    """Counts connections, in all and by address. One counts until its process is gone."""

    def __init__(self, most: int, most_per_client: int) -> None:
        self.most: Final = most
        self._most_per_client: Final = most_per_client
        self._open: Final[Counter[str]] = Counter()

    def __len__(self) -> int:
        return self._open.total()

    @contextmanager
    def reserve(self, client: str) -> Generator[None]:
        """Counts a connection while it is entered. Raises: QuotaExceeded."""
        if len(self) >= self.most:
            raise QuotaExceeded(f"all {self.most} connections are in use; try again later")
        if self._open[client] >= self._most_per_client:
            raise QuotaExceeded(f"{self._most_per_client} connections of yours are open; close one")
        self._open[client] += 1
        try:
            yield
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


# Bounds the connections that are accepted and not let in yet, in all and by address.
#
# They are counted where the listening socket gives them out: TLS and the handshake come later, and
# a peer that begins neither is known to nobody else. Each has `open_timeout_s` for both. Where
# there are too many, the oldest has to go: whoever means it is let in within a moment, also beside
# others of the same address.

MAX_HALF_OPEN: Final = 64
"""Connections that wait, of all clients together."""
_IPV6_NETWORK_BITS: Final = 64
"""So much of an IPv6 address is given to one customer, who chooses the rest."""


def client_of(host: str) -> str:
    """Gives what one client's addresses have in common: an IPv4 address, or an IPv6 network."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))


class HalfOpen:
    """The connections that are not let in yet, the oldest first."""

    def __init__(self, most_per_client: int) -> None:
        self._most_per_client: Final = most_per_client
        self._waiting: Final[dict[Any, socket.socket]] = {}
        """The sockets by their peers' whole addresses."""

    def begin(self, connection: socket.socket, address: Any) -> None:
        """Counts a connection until it is closed or let in; the oldest one too many is ended."""
        for closed in [peer for peer, one in self._waiting.items() if one.fileno() < 0]:
            del self._waiting[closed]
        client = client_of(address[0])
        own = [peer for peer in self._waiting if client_of(peer[0]) == client]
        if len(own) >= self._most_per_client:
            _end(self._waiting.pop(own[0]))
        elif len(self._waiting) >= MAX_HALF_OPEN:
            _end(self._waiting.pop(next(iter(self._waiting))))
        self._waiting[address] = connection

    def let_in(self, address: Any) -> None:
        self._waiting.pop(address, None)

    def end(self) -> None:
        """Ends all that wait."""
        while self._waiting:
            _end(self._waiting.popitem()[1])


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        connection.shutdown(socket.SHUT_RDWR)  # whoever reads from it closes it


class Listener(socket.socket):
    """A listening socket that counts what it accepts."""

    def __init__(self, other: Any, half_open: HalfOpen) -> None:
        super().__init__(other.family, other.type, other.proto, fileno=other.dup().detach())
        self._half_open: Final = half_open

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._half_open.begin(connection, address)
        return connection, address


async def listening_sockets(host: str, port: int, half_open: HalfOpen) -> list[Listener]:
    """Binds to each address of `host`. Raises: OSError."""
    loop = asyncio.get_running_loop()
    bound = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    try:
        return [Listener(one, half_open) for one in bound.sockets]
    finally:
        bound.close()


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
                f"cannot listen at {host}:{port} ({reason}); fix --host or --port"
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
