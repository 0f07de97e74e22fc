"""Requests to the servers of calendars: with a deadline, a cap, and few redirects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2

from caal_node.core.errors import ToolBroke, ToolFailure, ToolOutside, ToolTimeout, ToolUnavailable
from caal_node.http_client import TooLongAnswer, open_client, tls_for
from caal_node.network.guard import refusal_in

ANSWER_MAX_BYTES: Final = 20_000_000
"""Bytes of a calendar: some 40,000 events."""
TIMEOUT_S: Final = 10.0
"""Seconds for each step of a request; a call may take 20 in all."""
REDIRECTS_MAX: Final = 4
_MOVED: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered, and the address that it came from in the end."""

    status: int
    body: bytes
    address: str
    etag: str = ""


class LongAnswer(ToolBroke):
    """A server has more to say than is read."""


class CalendarRequests:
    """Asks one calendar's server. It is opened at its first use, and closed by its owner.

    `transport` carries its requests in place of the network.
    """

    def __init__(
        self,
        username: str = "",
        password: str = "",
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport: Final = transport
        self._auth: Final = httpx2.BasicAuth(username, password) if username or password else None
        self._client: httpx2.AsyncClient | None = None

    async def ask(
        self,
        method: str,
        address: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, and return the answer, whatever its status is.

        A redirect is followed to the same host, or to one of the same domain over TLS, as the
        password goes along.

        Raises:
            ToolUnavailable, ToolTimeout, ToolOutside: the server cannot be reached.
            ToolBroke: it answers with what is no HTTP, or sends elsewhere.
            LongAnswer: it answers with more than is read.
        """
        tls = await tls_for("https:")  # where a redirect may lead
        if self._client is None:
            self._client = open_client(
                ANSWER_MAX_BYTES, timeout=TIMEOUT_S, transport=self._transport, verify=tls
            )
        for _ in range(REDIRECTS_MAX + 1):
            try:
                response = await self._client.request(
                    method, address, content=body, headers=dict(headers or {}), auth=self._auth
                )
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise _failure(error, address) from error
            if response.status_code not in _MOVED or "location" not in response.headers:
                etag = response.headers.get("etag", "")
                return Answer(response.status_code, response.content, address, etag)
            address = same_domain(address, response.headers["location"])
        raise ToolBroke(f"{host_of(address)} sends from one address to the next.")

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def same_domain(address: str, target: str) -> str:
    """Return where `target`, which the server at `address` has named, is.

    Raises:
        ToolBroke: it is elsewhere, where the password must not go.
    """
    try:
        made = urljoin(address, target)
        here, there = urlsplit(address), urlsplit(made)
        same = (here.hostname, here.port) == (there.hostname, there.port)
        tls = there.scheme == "https" or (same and here.scheme == there.scheme == "http")
    except ValueError as error:
        raise ToolBroke(f"{host_of(address)} names an address that is none.") from error
    same = here.hostname == there.hostname or _domain(here.hostname) == _domain(there.hostname)
    if not (tls and same):
        raise ToolBroke(
            f"{host_of(address)} sends to {host_of(made)}; write that address into the options."
        )
    return made


def host_of(address: str) -> str:
    """Return the host of an address, which is all of it that a log or a model may read."""
    try:
        return urlsplit(address).hostname or "the calendar's address"
    except ValueError:
        return "the calendar's address"


def refused(answer: Answer, what: str) -> ToolFailure:
    """Return the failure for an answer whose status says no."""
    host = host_of(answer.address)
    if answer.status in (401, 403):
        why = "accept the username and password for"
        why = why if answer.status == 401 else "let this user see"
        there = "" if answer.status == 401 else " there; look at the address"
        failure = ToolBroke(f"{host} does not {why} {what}{there}.")
        failure.words = "The calendar doesn't let me in."
        return failure
    kind = ToolUnavailable if answer.status >= 500 or answer.status == 429 else ToolBroke
    failure = kind(f"{host} answered {answer.status} for {what}.")
    failure.words = f"I can't reach {what} right now."
    return failure


def _domain(host: str | None) -> tuple[str, ...]:
    labels = tuple((host or "").lower().split("."))
    # The addresses of machines in a home have no domain of which others could be a part.
    return labels[-2:] if len(labels) > 2 and not labels[-1].isdecimal() else labels


def _failure(error: Exception, address: str) -> ToolFailure:
    host = host_of(address)
    if (why := refusal_in(error)) is not None:
        return ToolOutside(f"The calendar may not connect to {host}: {why}.")
    if isinstance(error, httpx2.TimeoutException):
        failure: ToolFailure = ToolTimeout(f"{host} did not answer in {TIMEOUT_S:g} s.")
    elif isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        failure = ToolBroke("The address of the calendar is none.")
    elif isinstance(error, TooLongAnswer):
        return LongAnswer(f"{host} {error}.")
    else:
        failure = ToolUnavailable(f"{host} cannot be reached.")
    failure.words = "I can't reach the calendar right now."
    return failure
