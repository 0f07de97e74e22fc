"""Bounds the connections that are accepted and not let in yet, in all and by address.

They are counted where the listening socket gives them out: TLS and the handshake come later, and a
peer that begins neither is known to nobody else. Each has `open_timeout_s` for both. Where there
are too many, the oldest has to go: whoever means it is let in within a moment, also beside others
of the same address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import suppress
from typing import Any, Final

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
