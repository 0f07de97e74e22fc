"""Enters a client of the SDK by a server's configuration, and puts its errors into words."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NoReturn, cast
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx2
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    Implementation,
    JSONRPCMessage,
    RequestId,
    ToolListChangedNotification,
)

from mcp_bridge.core.bounded_http import bounded
from mcp_bridge.core.errors import ServerUnavailable, why_not_permitted
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig, ServerSecrets
from mcp_bridge.core.server_config import is_loopback as is_loopback
from mcp_bridge.protocol.inbound_filter import (
    Flooded,
    InboundFilter,
    find_request_id,
    repairing_transport,
)
from mcp_bridge.protocol.messages import (
    MAX_MESSAGE_BYTES,
    CappedLine,
    EventStream,
    Incoming,
    Streams,
    bounded_message,
    error_answer,
    read_lines,
    read_message,
    refusal,
)
from mcp_bridge.security.policy import objections, same_origin
from mcp_bridge.transports.process import spawn
from mcp_bridge.transports.websocket import websocket_transport

# Makes the HTTP client that remote servers are spoken to with.
#
# Answers are capped and, where they are large, cut in a worker thread before the SDK reads them
# (`messages.py`). A server on this machine is never reached through a proxy.

_MAX_OTHER_BYTES: Final = 1024 * 1024
"""The cap of a body that is neither JSON nor events: a page that says what is wrong."""
_MAX_REDIRECTS: Final = 3
"""So many are followed for one request: a slash that is missing, a path that has moved."""
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""An event stream may be silent for long; calls have deadlines of their own."""
_END_S: Final = 2.0
"""The time for telling the server that a session is over."""
_SESSION: Final = ("mcp-session-id", "mcp-protocol-version")
_EVENTS: Final = "text/event-stream"
_READ_TYPES: Final = (_EVENTS, "application/json")


class HttpMonitor:
    """Looks at every request and response of one connection.

    Args:
        endpoint: Whether the server says in an event where to post (the transport `sse`).
        flooded: Called with the reason when the server does not stop.
    """

    def __init__(
        self,
        max_chars: int,
        secrets: ServerSecrets,
        inbound: InboundFilter,
        flooded: Callable[[str], None] = lambda _: None,
        *,
        endpoint: bool = False,
    ) -> None:
        self._max_chars: Final = max_chars
        self._secrets: Final = secrets
        self._inbound: Final = inbound
        self._flooded: Final = flooded
        self._endpoint: Final = endpoint
        self.refused = ""
        """Why a response was not taken, and how to fix it."""
        self.status: int | None = None
        """The status of the last response."""
        self.session: Mapping[str, str] = {}
        """The headers that name the session to the server; empty while there is none."""

    async def request(self, request: httpx2.Request) -> None:
        self._secrets.note_headers(request.headers)

    async def response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        sent = response.request.headers
        self.session = {name: sent[name] for name in _SESSION if name in sent} or self.session
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # Some bytes may unpack to any number, past every cap.
            self._refuse("packs its answers though it was asked not to; turn that off")
        if isinstance(stream := response.stream, httpx2.AsyncByteStream):
            response.stream = self._bounded(response, stream)
        if response.has_redirect_location:
            self._check_redirect(response)

    def _bounded(
        self, response: httpx2.Response, stream: httpx2.AsyncByteStream
    ) -> httpx2.AsyncByteStream:
        kind = response.headers.get("content-type", "").lower()
        if response.has_redirect_location or not kind.startswith(_READ_TYPES):
            return _OtherBody(stream, self._inbound)
        if kind.startswith(_EVENTS):
            response.encoding = "utf-8"  # whatever its header says
            return EventStream(
                stream,
                self._inbound,
                self._max_chars,
                self._flooded,
                any_id=response.request.method == "POST",
                endpoint=self._endpoint,
            )
        return _JsonBody(stream, self._inbound, self._max_chars)

    def _check_redirect(self, response: httpx2.Response) -> None:
        """Refuses to send the token elsewhere than the configuration says.

        The SDK follows redirects within an origin, and no others; here the others get their words.
        """
        where = response.headers["location"]
        if not same_origin(str(response.url), where):
            parts = urlsplit(where)
            host = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "elsewhere"
            self._refuse(f"redirects to {host[:100]}, where its token does not go; fix the url")

    def _refuse(self, reason: str) -> NoReturn:
        self.refused = reason
        raise httpx2.RemoteProtocolError(reason)


async def http_client(
    config: ServerConfig, watch: HttpMonitor, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """Makes a client, which the caller enters. A thread does it, as it reads certificates."""
    return await anyio.to_thread.run_sync(_client, config, watch, auth)


def _client(
    config: ServerConfig, watch: HttpMonitor, auth: httpx2.Auth | None
) -> httpx2.AsyncClient:
    for finding in objections(config):
        raise ServerUnavailable(config.name, f"{finding.key}: {finding}")
    return bounded(
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **config.headers},
            timeout=_TIMEOUT,
            auth=auth,
            event_hooks={"request": [watch.request] if auth else [], "response": [watch.response]},
            max_redirects=_MAX_REDIRECTS,
            trust_env=not is_loopback(config.url),
        )
    )


async def end_session(client: httpx2.AsyncClient, url: str, monitor: HttpMonitor) -> None:
    """Tells the server that a session is over, as far as it listens."""
    if "mcp-session-id" in monitor.session:
        with anyio.move_on_after(_END_S), contextlib.suppress(httpx2.HTTPError):
            async with client.stream("DELETE", url, headers=dict(monitor.session)):
                pass


class _Body(httpx2.AsyncByteStream):
    """The body of a response, read within a cap."""

    def __init__(self, inner: httpx2.AsyncByteStream, inbound: InboundFilter) -> None:
        self._inner: Final = inner
        self._inbound: Final = inbound

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _parts(self, max_bytes: int) -> AsyncIterator[bytes]:
        """Raises: httpx2.StreamError, where it is longer."""
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > max_bytes:
                raise httpx2.StreamError(f"over {max_bytes // 1024**2} MiB")
            yield part
            await self._inbound.give_way(len(part))


class _JsonBody(_Body):
    """A JSON body, given as one piece."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, inbound: InboundFilter, max_chars: int
    ) -> None:
        super().__init__(inner, inbound)
        self._max_chars: Final = max_chars

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for part in self._parts(MAX_MESSAGE_BYTES):
            body += part
        text = bytes(body)
        if written := find_request_id(text, text):
            self._inbound.answered(json.loads(written))
        try:
            yield await bounded_message(text, self._max_chars)
        except ValueError:
            raise httpx2.StreamError("not JSON that can be read") from None


class _OtherBody(_Body):
    """What nobody reads, or only somebody who looks for what is wrong."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts(_MAX_OTHER_BYTES):
            yield part


def _version() -> str:
    try:
        return version("caal-node")
    except PackageNotFoundError:  # run from a source tree
        return "0"


_OURSELVES: Final = Implementation(name="mcp-bridge", version=_version())
"""Made at import, as finding the version reads the disk."""
_GONE: Final = ("Connection closed", "SSE stream ended")
"""The SDK's words for the end of a connection; a server may send the same code for other ends."""
_HTTP_ERROR: Final = "Server returned an error response"
"""The SDK's words for most HTTP errors; the status is lost in them."""
_UNREADABLE: Final = ("Failed to parse", "SSE stream failed")
"""The SDK's words for an answer that is not JSON, with an excerpt of it behind them."""
_JUNK_CHARS: Final = 80
"""Characters that are shown of a line that is no message."""
_SESSION_OVER: Final = "Session terminated"
"""The SDK's words for a 404 to a known session: the server has restarted, and took nothing in."""


async def _leave_unchecked(name: str, result: CallToolResult) -> None:
    """Takes the place of the SDK's own check of an answer."""


class ServerTransport:
    """The transport of one connection to one server, and what it tells beside its messages."""

    def __init__(
        self,
        config: ServerConfig,
        max_chars: int,
        on_close: Callable[[], None],
        auth: httpx2.Auth | None = None,
        secrets: ServerSecrets | None = None,
    ) -> None:
        self.config: Final = config
        self.closed: str | None = None
        """Why the process or the connection ended by itself, or did not stop and was left."""
        self._max_chars: Final = max_chars
        self._on_close: Final = on_close
        self._auth: Final = auth
        self.secrets: Final = secrets or ServerSecrets(config)
        self._inbound: Final = InboundFilter(config.name)
        self._monitor: Final = HttpMonitor(
            max_chars,
            self.secrets,
            self._inbound,
            self._close,
            endpoint=config.transport == "sse",
        )

    @property
    def session_id(self) -> str | None:
        """The id by which an HTTP server knows the session; None where it gave none."""
        return self._monitor.session.get(_SESSION[0])

    @asynccontextmanager
    async def client(
        self, on_message: MessageHandlerFnT, elicit: ElicitationFnT
    ) -> AsyncGenerator[Client]:
        """Enters the transport and does the handshake. The task that entered it must leave it.

        The version is the newest that both know, from 2024-11-05 to 2026-07-28. `on_message` gets
        the server's notifications, `elicit` its questions.
        """
        if self.config.fault:
            raise ServerUnavailable(self.config.name, self.config.fault)
        self._inbound.list_changed = partial(on_message, ToolListChangedNotification())
        try:
            async with Client(
                repairing_transport(self._transport(), self._inbound),
                client_info=_OURSELVES,
                cache=None,
                message_handler=on_message,
                elicitation_callback=elicit,
            ) as client:
                # The SDK would run a stranger's patterns on the loop; `ServerSession` checks
                # answers.
                client.session.validate_tool_result = _leave_unchecked
                yield client
        finally:
            self._inbound.close()

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        match self.config.transport:
            case "stdio":
                return stdio_transport(self.config, self._max_chars, self._inbound, self._close)
            case "http":
                return self._streamable_http()
            case "sse":
                return self._server_sent_events()
            case "websocket":
                return websocket_transport(self.config, self._max_chars, self._inbound, self._close)

    @asynccontextmanager
    async def _streamable_http(self) -> AsyncGenerator[Any]:
        async with await http_client(self.config, self._monitor, self._auth) as client:
            async with streamable_http_client(
                self.config.url,
                http_client=client,
                terminate_on_close=False,  # it waits for the server without a bound
                max_sse_event_size=MAX_MESSAGE_BYTES,
            ) as streams:
                yield streams
            await end_session(client, self.config.url, self._monitor)

    @asynccontextmanager
    async def _server_sent_events(self) -> AsyncGenerator[Any]:
        client = await http_client(self.config, self._monitor, self._auth)

        def given(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return client  # with its own headers and timeouts; the SDK enters and leaves it

        async with sse_client(self.config.url, httpx_client_factory=given) as streams:
            yield streams

    def _close(self, reason: str) -> None:
        self.closed = reason
        self._on_close()

    def is_over(self, error: MCPError) -> bool:
        """Tells whether `error` means that this connection has ended."""
        if error.message == _SESSION_OVER:
            return True
        if self.closed is not None or self.config.transport in ("stdio", "websocket"):
            return self.closed is not None
        return error.code == CONNECTION_CLOSED and error.message.startswith(_GONE)

    def may_heal(self, error: BaseException | None, ready: bool) -> bool:
        """Tells whether what ended this connection may pass by itself, so that we try again
        unasked.

        What never came up is for a person to fix, but for an address where nothing answers yet.
        """
        if ready or self._inbound.flooded:
            return not self._inbound.flooded
        errors = list(_single_errors(error)) if error else []
        unreachable = any(isinstance(single, httpx2.TransportError) for single in errors)
        broken = self._monitor.status is not None and self._monitor.status >= 500
        return self.config.transport != "stdio" and (unreachable or broken)

    def describe_error(self, error: MCPError) -> str:
        """Gives what the server said, on one line and without secrets."""
        if error.message == _HTTP_ERROR and self._monitor.status is not None:
            return f"HTTP {self._monitor.status}"
        if error.message.startswith(_UNREADABLE):
            long = f"over {MAX_MESSAGE_BYTES // 1024**2} MiB"  # what our own reading of it says
            told = f"{long}; ask for less" if long in error.message else "not JSON that can be read"
            return f"its answer is {told}"
        return one_line(self.secrets.redact_message(error.message))

    def explain_late(self, allowed_s: float) -> str:
        """Says on one line why the server may not have been ready in time, and how to fix it."""
        if junk := self._junk:
            return f"was not ready within {allowed_s:g} s, and {junk}"
        said = "see that it starts, or raise connect_timeout"
        return f"was not ready within {allowed_s:g} s; {said}"

    @property
    def _junk(self) -> str:
        """What a program wrote where only messages may be, as half a sentence; "" for nothing."""
        if self.config.transport != "stdio" or not self._inbound.junk:
            return ""
        text = self.secrets.redact_message(self._inbound.junk.decode(errors="replace"))
        line = one_line(text, _JUNK_CHARS)
        return f"writes to stdout what is no MCP message ({line!r}); its logs belong on stderr"

    def explain_end(self, error: BaseException | None, ready: bool) -> str:
        """Says on one line what ended this connection, `ready` or not yet, and how to fix it."""
        if self.closed is not None:
            far = self.config.transport != "stdio"
            if ready:
                fix = "the next call connects again" if far else "the next call starts it again"
            else:
                fix = "look into its bridge's log" if far else "fix its command, args or env"
            if not ready and (junk := self._junk):
                return f"{self.closed}, and it {junk}"
            return f"{self.closed}; {fix}"
        if self._monitor.refused:
            return self._monitor.refused
        errors = list(_single_errors(error)) if error else []
        for single in errors:
            if isinstance(single, ServerUnavailable):
                return single.reason
            if isinstance(single, OAuthFlowError):
                return f"signing in to it failed ({type(single).__name__}); sign in again"
        if self.config.transport != "stdio":
            for single in errors:
                if isinstance(single, httpx2.TransportError):
                    return self._no_connection(single)
                if isinstance(single, httpx2.HTTPStatusError):
                    return _explain_status(single.response.status_code)
            if self._monitor.status is not None and self._monitor.status >= 400:
                return _explain_status(self._monitor.status)
        for single in errors:
            if isinstance(single, MCPError):
                return f"refused to begin ({self.describe_error(single)})"
        return f"could not be used ({type(errors[0]).__name__ if errors else 'no reason'})"

    def _no_connection(self, error: httpx2.TransportError) -> str:
        parts = urlsplit(self.config.url)
        where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
        if "SSL" in str(error) or "certificate" in str(error):
            return f"has no certificate to be trusted at {where}; fix it, or the url"
        if said := why_not_permitted(error):
            return f"may not be connected to at {where} ({said}); allow it, or fix the url"
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return f"nothing answers at {where}; start it, or fix the url"
        return f"the connection to {where} broke ({type(error).__name__})"


def is_unsent(error: BaseException) -> bool:
    """Tells whether the server cannot have seen the request, so that it may be sent again."""
    return all(
        isinstance(single, httpx2.ConnectError | httpx2.ConnectTimeout)
        or (isinstance(single, MCPError) and single.message == _SESSION_OVER)
        for single in _single_errors(error)
    )


def _explain_status(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused us (HTTP {status}); set or fix its token"
        case 404 | 405:
            return f"has no MCP endpoint there (HTTP {status}); fix the path of the url"
        case _:
            return f"answered HTTP {status}; look into its log"


def _single_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _single_errors(inner)
    else:
        yield error


# Speaks JSON-RPC over a process's stdin and stdout, one message on each line.
#
# The SDK's own transport grows one line without a bound and parses it on the event loop. This one
# caps lines, cuts giant answers in a worker thread, tells at once when the process dies, and leaves
# nothing of the process behind.

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Longer lines are thrown away while they arrive; so much is held in memory for each server."""


@asynccontextmanager
async def stdio_transport(
    config: ServerConfig, max_chars: int, inbound: InboundFilter, on_close: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Starts the process, yields its read and write streams, and ends it and all that it started.

    `on_close` is called once, with the reason, when the process ends or its pipes break by
    themselves; not when the caller leaves.

    Raises:
        ServerUnavailable: it could not be started.
    """
    process = await spawn(config)
    to_session, from_server = anyio.create_memory_object_stream[Incoming](0)
    from_session, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    leaving = False

    async def read() -> None:
        with to_session:
            try:
                async for line in read_lines(process.stdout, MAX_LINE_BYTES):
                    if (message := await _message(line, inbound, max_chars)) is not None:
                        await to_session.send(SessionMessage(message))
                reason = ""
            except Flooded as flood:
                process.kill()
                reason = f"was ended, as it {flood}; its logs belong on stderr"
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                reason = ""
            if not leaving:
                on_close(config.redact(reason or await process.wait_for_end()))

    def refuse(request: RequestId) -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            from_session.send_nowait(SessionMessage(refusal(request)))

    inbound.refuse = refuse

    async def write() -> None:
        async with to_server:
            try:
                async for message in to_server:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
            except OSError:
                process.close_output()  # whoever cannot be asked will not answer

    async with anyio.create_task_group() as tasks:
        try:
            for work in (process.watch, read, write):
                tasks.start_soon(work)
            yield from_server, from_session
        finally:
            leaving = True
            # Bounded: every wait in `stop` has a deadline.
            with anyio.CancelScope(shield=True):
                from_server.close()
                from_session.close()
                await anyio.lowlevel.checkpoint()  # lets the writer pass on what it accepted
                await process.stop()
            tasks.cancel_scope.cancel()


async def _message(
    line: CappedLine, inbound: InboundFilter, max_chars: int
) -> JSONRPCMessage | None:
    if line.too_long:
        await inbound.drop("messages that are too long", line.size)
        said = f"the answer is over {MAX_LINE_BYTES // 1024**2} MiB; ask for less"
        return error_answer(*line.ends(), said)
    text = line.content()
    return await read_message(text, max_chars) if await inbound.admits(text) else None
