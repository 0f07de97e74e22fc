"""The server under the control API: what a connection may cost before its caller shows the token.

uvicorn has a deadline for the pause between two requests and none for a request's header, counts
connections that say nothing like those that are served, and words its own refusals. So this
protocol has a deadline for every header, closes what is idle to make room, reads in small pieces,
and answers in the API's own shape.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from http import HTTPStatus
from typing import Final, cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from caal_node.control.http_api import TOKEN_SHOWN, ErrorResponse

MAX_CONNECTIONS: Final = 512
"""Half of the descriptors that a process usually has. 256 of them may have a request under way."""
BACKLOG: Final = 100
"""This many connections wait to be accepted, and are accepted in one step: 10 ms."""
HEADER_S: Final = 5.0
"""A request's header has to arrive within this time after the connection or the last answer."""
STALL_S: Final = 10.0
"""The caller has to take some of its answer within this time."""
LINGER_S: Final = 1.0
"""A caller that was refused has this long to read why. What it sends meanwhile is thrown away."""
MAX_HEADER_BYTES: Final = 8 * 1024
PIECE_BYTES: Final = 2 * 1024
"""h11 judges a header that came as a whole however long it is, so it is given it in pieces."""
STOP_S: Final = 5
_TOO_LATE: Final = f"The request's header did not come within {HEADER_S:g} seconds."
_TOO_LONG: Final = f"The request's header is longer than {MAX_HEADER_BYTES} bytes."
_NO_HTTP: Final = "This is no HTTP request."


def make_server(app: FastAPI, host: str, port: int) -> uvicorn.Server:
    """Return the server of `app`; 0 lets the system choose a port."""
    logging.getLogger("uvicorn.error").addFilter(_WarnOnce())
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=ControlProtocol,
            ws="none",
            backlog=BACKLOG,
            timeout_keep_alive=int(HEADER_S),
            timeout_graceful_shutdown=STOP_S,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            server_header=False,
            # A line for each request would let callers without the token fill the disk.
            access_log=False,
            log_config=None,
        )
    )


class _WarnOnce(logging.Filter):
    """Lets each warning pass once: anybody can send what is no HTTP, as often as they like."""

    def __init__(self) -> None:
        super().__init__()
        self._said: Final[set[str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        new = record.msg not in self._said
        self._said.add(str(record.msg))
        return new


class ControlProtocol(H11Protocol):
    """One connection."""

    _deadline: asyncio.TimerHandle | None = None
    _unsent_bytes: int = 0
    """What of the answers the caller had not taken when that was last looked at."""
    _began_request: bool = False
    _refused: bool = False

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride] -- as uvicorn's own
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self._make_room()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            if self._refused or self.transport.is_closing():
                return
            if self._under_way and self.conn.their_state is h11.DONE:
                # One request at a time: what comes before the answer is not read.
                self.cycle.keep_alive = False
                return
            self._began_request = True
            super().data_received(data[start : start + PIECE_BYTES])
        self._set_deadline()

    def on_response_complete(self) -> None:
        self._began_request = False
        super().on_response_complete()
        self._set_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_deadline()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        long = len(self.conn.trailing_data[0]) > MAX_HEADER_BYTES
        if long:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LONG)
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, _NO_HTTP)

    @property
    def _under_way(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # as it is at first
        return cycle is not None and not cycle.response_complete

    @property
    def _is_wanted(self) -> bool:
        """Whether a request is under way whose caller has the token."""
        return self._under_way and TOKEN_SHOWN in self.scope.get("state", {})

    def _make_room(self) -> None:
        """Where there are too many, close the oldest one of the address that has most of them.

        Those are spared whose request is under way with the token. They are never all of them:
        `http_api.Gate` takes fewer.
        """
        here = cast("set[ControlProtocol]", self.connections)
        there = [one for one in here if not one.transport.is_closing()]
        if len(there) <= MAX_CONNECTIONS:
            return
        unwanted = [one for one in there if not one._is_wanted]
        counts = Counter(one._address for one in unwanted)
        _, crowd = max((count, address) for address, count in counts.items())
        oldest = min((one for one in unwanted if one._address == crowd), key=lambda one: one._since)
        oldest.transport.abort()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _set_deadline(self) -> None:
        """Have a deadline while the caller's next move is awaited, and none while ours is."""
        if self._refused:
            return
        if self._under_way and not self.flow.write_paused:
            self._end_deadline()
        elif self._deadline is None:
            self._unsent_bytes = self.transport.get_write_buffer_size()
            wait = STALL_S if self._unsent_bytes else HEADER_S
            self._deadline = self.loop.call_later(wait, self._pass_deadline)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _pass_deadline(self) -> None:
        self._deadline = None
        unsent = self.transport.get_write_buffer_size()
        if 0 < unsent < self._unsent_bytes:
            self._set_deadline()
        elif self._began_request and not unsent and not self._refused:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _TOO_LATE)
        else:
            self.transport.abort()

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Say why and hang up; where another answer has begun, only hang up."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        if self._under_way:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = ErrorResponse(status="error", detail=detail).model_dump_json(exclude_none=True)
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode("ascii")
        )
        # Closed at once, what is still on its way here would make the caller's system throw the
        # answer away.
        self.transport.write_eof()
        self._end_deadline()
        self._refused = True
        self._deadline = self.loop.call_later(LINGER_S, self.transport.abort)
