"""A small HTTP/1.1 server on 127.0.0.1 inside this process. h11 speaks the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import h11

MAX_BODY_BYTES = 4 * 1024 * 1024
_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    """A request that came in."""

    method: str
    path: str
    """It is decoded, and without the query."""
    query: dict[str, Any]
    """A name that came several times has a list."""
    headers: dict[str, str]
    """They are in their order, with names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class LoopbackResponse:
    """What is answered."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = field(default=())


RequestHandler: TypeAlias = Callable[[LoopbackRequest], Awaitable[LoopbackResponse]]


def form_values(text: str) -> dict[str, Any]:
    """`a=1&b=2&b=3` becomes {"a": "1", "b": ["2", "3"]}."""
    values = parse_qs(text, keep_blank_values=True).items()
    return {name: several[0] if len(several) == 1 else several for name, several in values}


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_response(status: int, value: object, *headers: tuple[str, str]) -> LoopbackResponse:
    content_type = ("content-type", "application/json; charset=utf-8")
    return LoopbackResponse(status, compact_json(value).encode(), (content_type, *headers))


class LoopbackServer:
    """Serves until it is closed; closing ends every connection, whatever it is waiting for."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> int:
        """Listen, and return the port, which is a free one for 0."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while (request := await _receive(connection, reader)) is not None:
                response = await self._handler(request)
                headers = [*response.headers, ("content-length", str(len(response.body)))]
                for event in (
                    h11.Response(status_code=response.status, headers=headers),
                    h11.Data(data=b"" if request.method == "HEAD" else response.body),
                    h11.EndOfMessage(),
                ):
                    writer.write(connection.send(event) or b"")
                await writer.drain()
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return
                connection.start_next_cycle()
        except (h11.RemoteProtocolError, ConnectionError):
            return  # a client that left, or that speaks no HTTP
        finally:
            writer.close()


async def _receive(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> LoopbackRequest | None:
    """Return the next request; None once there are no more."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                raise h11.RemoteProtocolError("100-continue is not offered")
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                raise h11.RemoteProtocolError("the body is too long")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _request(head, bytes(body))
        else:
            return None


def _request(head: h11.Request, body: bytes) -> LoopbackRequest:
    target = urlsplit(head.target.decode("ascii"))
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    method, path = head.method.decode("ascii"), unquote(target.path)
    return LoopbackRequest(method, path, form_values(target.query), headers, body)
