"""Decides who may connect, and how many: nobody gets a process before all of this is passed.

The checks are in this order: the host that the client believes to speak to, the path, the origin of
a web page, the token. A page whose name was made to point at this machine (DNS rebinding) sends its
own name as Host; so names must be known, and an address must be the one that the connection came in
at.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from websockets.datastructures import Headers

from mcp_bridge.serve.options import ServeOptions

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
