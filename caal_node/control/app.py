"""The application serves /reload-tools, /model, /say, /announce, /events, /metrics, /health and
the Tools API.

Bodies are read by hand (with a cap and a deadline, and by whatever content type), so FastAPI does
not know of them by itself: each path says what it takes in the OpenAPI document.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from caal_node import __version__
from caal_node.config.settings import Settings
from caal_node.control.http_api import (
    MAX_NAME_CHARS,
    AnnounceBody,
    CallBody,
    Gate,
    ModelBody,
    ReloadBody,
    RequestRefused,
    RoomQuery,
    SayBody,
    SearchBody,
    field_error,
    read_body,
    token_check,
)
from caal_node.control.messages import (
    MAX_ANNOUNCEMENTS,
    AgentAnswer,
    AgentRequest,
    Announcement,
    AnnounceResponse,
    CallAnswer,
    CallFailure,
    CallResponse,
    CallTool,
    ErrorResponse,
    FailureKind,
    FindAnswer,
    FindTools,
    HealthResponse,
    ListAnswer,
    ListResponse,
    ListTools,
    ModelReport,
    ModelRequest,
    ModelResponse,
    ReloadFailure,
    ReloadReport,
    ReloadRequest,
    ReloadResponse,
    ReloadsResponse,
    SayReport,
    SayRequest,
    SayResponse,
    SearchResponse,
)
from caal_node.control.room_agents import (
    CHANGE_S,
    SAY_S,
    TOOLS_S,
    ControlError,
    LiveKitRooms,
    NoAnswer,
    RoomEvents,
    ask_agent,
    choose_room,
    choose_rooms,
)
from caal_node.control.rpc import BUSY
from caal_node.core.addresses import is_loopback
from caal_node.core.errors import ConfigError
from caal_node.telemetry.metrics import METRICS_TYPE, CountedRequests, RequestMetrics

# Work that is done once for all who wait for it, however many they are.

_Asked = TypeVar("_Asked")
Result = TypeVar("Result")


class TooManyRequests(Exception):
    """More different requests wait for the next run than it may have."""


class SharedRun(Generic[_Asked, Result]):
    """Runs `work` on all the requests that came while the run before it went on.

    Whoever comes during a run waits for the next: what they were sent for may have appeared after
    this one had looked. Equal requests are one, and a run has `most` of them. A run goes on when
    those who wait for it give up.
    """

    def __init__(self, work: Callable[[tuple[_Asked, ...]], Awaitable[Result]], most: int) -> None:
        self._work: Final = work
        self._most: Final = most
        self._one_at_a_time: Final = asyncio.Lock()
        self._requests: dict[_Asked, None] = {}
        self._next: asyncio.Task[Result] | None = None
        self._runs: Final[set[asyncio.Task[Result]]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._runs

    async def result(self, request: _Asked) -> Result:
        """Return what the next run gives.

        Raises:
            TooManyRequests: as many others wait for it.
            Exception: what the work raises.
        """
        if request not in self._requests and len(self._requests) >= self._most:
            raise TooManyRequests
        self._requests[request] = None
        if self._next is None:
            self._next = asyncio.create_task(self._run(), name="caal-shared-run")
            self._runs.add(self._next)
            self._next.add_done_callback(self._ended)
        return await asyncio.shield(self._next)

    async def aclose(self) -> None:
        """Cancel what runs and waits, and wait until it has ended."""
        for run in (runs := list(self._runs)):
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    async def _run(self) -> Result:
        async with self._one_at_a_time:
            requests, self._requests, self._next = tuple(self._requests), {}, None
            return await self._work(requests)

    def _ended(self, run: asyncio.Task[Result]) -> None:
        self._runs.discard(run)
        if not run.cancelled():
            run.exception()  # it may be that nobody waits for it any more


MAX_CALL_BYTES: Final = 1024 * 1024
"""The body of a call may hold what an MCP server may be sent at most."""
MAX_REQUESTS: Final = 256
"""This many requests with the token may be under way; they share what they can."""
ANSWERS_AT_ONCE: Final = 16
"""Two hundred who wait for one reload and are answered in one step hold the loop for 40 ms."""
MAX_EVENT_STREAMS: Final = 16
"""Streams of events that may be open. Each takes a connection to its room."""
HEARTBEAT_S: Final = 15.0
"""Seconds without an event after which a comment keeps the stream's connection open."""
_EVENT_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The events.", "content": {"text/event-stream": {}}}
}
_UNBUFFERED: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
MAX_CALLS: Final = 32
"""This many of them may be calls, whose bodies and answers are the largest: 1 MiB each. An agent
runs half as many at once."""
_CALL_STATUS: Final[dict[FailureKind, int]] = {
    "unknown_tool": 404,
    "invalid_arguments": 422,
    "refused": 403,
    "needs_confirmation": 409,
    "timeout": 504,
    "unavailable": 503,
    "tool_error": 502,
    "error": 502,
}
_DESCRIPTIONS: Final[Mapping[int, str]] = {
    400: "The body was broken off.",
    401: "The token is missing or wrong.",
    403: "The agent's policy or settings do not allow this.",
    404: "There is no such room or tool, or no room is live.",
    408: "The body did not come in time.",
    409: "Several rooms are live; name one. Or: the call needs a confirmation.",
    413: "The body is too large.",
    422: "The body, the query or the tool's arguments are not what they should be.",
    502: "The agent or the tool answered with an error, or LiveKit does not take the keys.",
    503: "LiveKit or the tool's server cannot be reached, or the agent has too much to do.",
    504: "There is no agent in the room, or agent or tool did not answer in time.",
}
_EVERY_PATH: Final = (401, 404, 409, 422, 502, 503, 504)

BACKLOG: Final = 100
"""This many connections wait to be accepted, and are accepted in one step: 10 ms."""
IDLE_S: Final = 5
"""A connection that is silent for this long after an answer is closed."""
STOP_S: Final = 5
"""Requests under way when the process is asked to stop have this long to end."""
WS_QUEUE: Final = 8
"""Messages of a WebSocket that are read before they are asked for."""
MAX_HEADER_BYTES: Final = 8 * 1024
"""A header that has not ended by then is refused."""
SPARE_S: Final = 3.0
"""Of several rooms each is given this much less time than its caller, who then reads the others'
results all the same."""
_JSON: Final = "application/json"
_Reloaded: TypeAlias = dict[Announcement, bytes]

logger = logging.getLogger(__name__)


def _errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return a path's error responses; `more` are the statuses that not every path has."""
    statuses = sorted((*_EVERY_PATH, *more))
    return {
        status: {"model": ErrorResponse, "description": _DESCRIPTIONS[status]}
        for status in statuses
    }


def _body(kind: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a path that reads a body of this kind."""
    content = {_JSON: {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}


def control_routes(rooms: LiveKitRooms, reloads: Reloads) -> APIRouter:
    """Return the paths that change an agent; the including application says who may use them."""
    router = APIRouter(tags=["control"])
    statuses = _errors(400, 408, 413)

    @router.post(
        "/reload-tools",
        response_model=ReloadResponse | ReloadsResponse,
        responses=statuses,
        openapi_extra=_body(ReloadBody, required=False),
    )
    async def reload_tools(request: Request) -> Response:
        """Have a room's agent list its tools anew; its conversation goes on.

        Without `room_name` all live rooms' agents do; of several, each result is listed.

        One reload serves all who ask while another one runs.
        """
        body = await read_body(request, ReloadBody)
        announcement = Announcement(tool_name=body.tool_name, message=body.message)
        return await reloads.ask(body.room_name, announcement)

    @router.post(
        "/model",
        response_model=ModelResponse,
        responses=_errors(400, 403, 408, 413),
        openapi_extra=_body(ModelBody),
    )
    async def model(request: Request) -> Response:
        """Have a room's agent ask another model from its next reply on."""
        body = await read_body(request, ModelBody)
        room = await choose_room(rooms, body.room_name)
        change = ModelRequest(model=body.model, api=body.api, base_url=body.base_url)
        report = await _ask(rooms, room, change, ModelReport, CHANGE_S)
        return await _json(ModelResponse(status="changed", room_name=room, **report))

    @router.post(
        "/say",
        response_model=SayResponse,
        responses=_errors(400, 403, 408, 413),
        openapi_extra=_body(SayBody),
    )
    async def say(request: Request) -> Response:
        """Have a room's agent say a sentence, as soon as nobody speaks.

        The answer comes when it has been said. The agent's model reads it as the agent's own words.
        """
        body = await read_body(request, SayBody)
        room = await choose_room(rooms, body.room_name)
        report = await _ask(rooms, room, SayRequest(text=body.text), SayReport, SAY_S)
        said = SayResponse(status=report["status"], room_name=room, reason=report["reason"])
        return await _json(said)

    @router.post(
        "/announce",
        response_model=AnnounceResponse,
        responses=_errors(400, 403, 408, 413),
        openapi_extra=_body(AnnounceBody),
    )
    async def announce(request: Request) -> Response:
        """Have a room's agent say a sentence when its priority allows it, or ask a question.

        The answer comes when it has been said, and the question answered, or not within 15 s. The
        agent's model reads it as the agent's own words.
        """
        body = await read_body(request, AnnounceBody)
        room = await choose_room(rooms, body.room_name)
        asked = SayRequest(text=body.text, priority=body.priority, answer=body.answer)
        report = await _ask(rooms, room, asked, SayReport, SAY_S)
        status, reason = report["status"], report["reason"]
        said = AnnounceResponse(
            status=status, room_name=room, reason=reason, answer=report["words"]
        )
        return await _json(said)

    streams = Gate(MAX_EVENT_STREAMS)

    @router.get("/events", responses=_EVENT_STREAM | _errors(), response_class=StreamingResponse)
    async def events(query: Annotated[RoomQuery, Query()]) -> Response:
        """The events of a room as they happen, as server-sent events: each `data` is one event of
        the topic `caal.tools`. The stream ends with the room."""
        room = await choose_room(rooms, query.room_name)
        lines = _event_stream(rooms.events(room), streams)
        await anext(lines)  # so that what goes wrong before the first event has a status
        return _EventResponse(lines)

    _ = reload_tools, model, say, announce, events  # registered by their decorators
    return router


class _EventResponse(StreamingResponse):
    """Leaves the room as soon as the response ends, whatever has ended it."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_UNBUFFERED)
        self._events: Final = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


async def _event_stream(events: RoomEvents, gate: Gate) -> AsyncGenerator[bytes]:
    """Yield a comment once the room is joined, then each event, and comments while there is none.

    Raises:
        RequestRefused: too many streams are open, or the room cannot be joined.
    """
    async with AsyncExitStack() as open_:
        await open_.enter_async_context(asynccontextmanager(gate.__call__)())
        try:
            await open_.enter_async_context(events)
        except (TimeoutError, OSError):
            raise RequestRefused(503, "LiveKit does not let anybody listen in that room.") from None
        yield b": open\n\n"
        async with aclosing(events.lines(HEARTBEAT_S)) as lines:
            async for line in lines:
                yield f"data: {line}\n\n".encode() if line else b": idle\n\n"


def tool_routes(rooms: LiveKitRooms) -> APIRouter:
    """Return the paths of the Tools API; the including application says who may use them."""
    router = APIRouter(prefix="/api", tags=["tools"])

    @router.get("/tools", response_model=ListResponse, responses=_errors())
    async def list_tools(query: Annotated[RoomQuery, Query()]) -> Response:
        """Every tool of the room's agent, tier by tier, also those its model has to search for."""
        room = await choose_room(rooms, query.room_name)
        answer = await _ask(rooms, room, ListTools(), ListAnswer, TOOLS_S)
        return await _json(ListResponse(status="ok", room_name=room, **answer))

    @router.post(
        "/tools",
        response_model=CallResponse,
        responses=_errors(400, 403, 408, 413),
        openapi_extra=_body(CallBody),
        dependencies=[Depends(Gate(MAX_CALLS))],
    )
    async def call_tool(request: Request) -> Response:
        """Call one tool as the agent's model would: same policy, checks, order and deadlines.

        People in the room are told of it as of any call, by an id that begins with `api_`; nothing
        sounds and nothing is said. A call is made once at most.
        """
        body = await read_body(request, CallBody, MAX_CALL_BYTES)
        room = await choose_room(rooms, body.room_name)
        call = CallTool(name=body.name, arguments=body.arguments, confirmation=body.confirmation)
        answer = await _ask(rooms, room, call, CallAnswer, TOOLS_S)
        return await _json(CallResponse(status="called", room_name=room, **answer))

    @router.post(
        "/tools/search",
        response_model=SearchResponse,
        responses=_errors(400, 408, 413),
        openapi_extra=_body(SearchBody),
    )
    async def search_tools(request: Request) -> Response:
        """Find tools by words or names, ranked as for the agent's own model, over all tiers."""
        body = await read_body(request, SearchBody)
        room = await choose_room(rooms, body.room_name)
        search = FindTools(patterns=tuple(body.patterns or [body.query]), limit=body.limit)
        answer = await _ask(rooms, room, search, FindAnswer, TOOLS_S)
        return await _json(SearchResponse(status="ok", room_name=room, **answer))

    _ = list_tools, call_tool, search_tools  # registered by their decorators
    return router


async def _json(answer: BaseModel) -> Response:
    """Write the answer beside the loop. FastAPI would check it once more, for 300 ms on the loop
    where a catalogue has 3,000 tools."""
    return Response(await asyncio.to_thread(_bytes_of, answer), media_type=_JSON)


def _bytes_of(answer: BaseModel) -> bytes:
    return answer.model_dump_json().encode()


class Reloads:
    """The reloads that run and wait, by the name that their callers gave the room."""

    def __init__(self, rooms: LiveKitRooms) -> None:
        self._rooms: Final = rooms
        self._runs: Final[dict[str | None, SharedRun[Announcement, _Reloaded]]] = {}
        self._answering: Final = asyncio.Semaphore(ANSWERS_AT_ONCE)

    async def ask(self, room_name: str | None, announcement: Announcement) -> Response:
        """Return what the next reload of the room gives.

        Raises:
            RequestRefused: too many different announcements wait.
            ControlError: as `ask_agent`.
        """
        if (run := self._runs.get(room_name)) is None:
            run = SharedRun(partial(self._reload, room_name), MAX_ANNOUNCEMENTS)
            self._runs[room_name] = run
        try:
            async with asyncio.timeout(CHANGE_S):
                answer = (await run.result(announcement))[announcement]
        except TooManyRequests:
            raise RequestRefused(503, BUSY) from None
        except TimeoutError:
            raise NoAnswer(f"The agent did not finish within {CHANGE_S:g} seconds.") from None
        finally:
            # Whoever gives up first leaves the run; those who come later clear it away.
            for name in [name for name, each in self._runs.items() if each.is_idle]:
                del self._runs[name]
        async with self._answering:
            await asyncio.sleep(0)
        return Response(answer, media_type=_JSON)

    async def aclose(self) -> None:
        """End the reloads that run and wait."""
        await asyncio.gather(*(run.aclose() for run in self._runs.values()))

    async def _reload(
        self, room_name: str | None, announcements: tuple[Announcement, ...]
    ) -> _Reloaded:
        """Reload each room once, and return what each announcement's callers are answered."""
        chosen = await choose_rooms(self._rooms, room_name)
        request = ReloadRequest(announcements=announcements)
        if len(chosen) == 1:
            reports = [await _ask(self._rooms, chosen[0], request, ReloadReport, CHANGE_S)]
        else:
            reports = await asyncio.gather(
                *(self._one_of_several(room, request) for room in chosen)
            )
        reloaded = dict(zip(chosen, reports, strict=True))
        return await asyncio.to_thread(
            lambda: {
                one: _bytes_of(_reload_answer(reloaded, one.tool_name)) for one in announcements
            }
        )

    async def _one_of_several(
        self, room: str, request: ReloadRequest
    ) -> dict[str, Any] | ControlError:
        try:
            return await _ask(self._rooms, room, request, ReloadReport, CHANGE_S - SPARE_S)
        except ControlError as error:
            return error


def _reload_answer(
    reloaded: Mapping[str, dict[str, Any] | ControlError], tool_name: str | None
) -> ReloadResponse | ReloadsResponse:
    """Return the rooms' reports as the caller who named this tool reads them."""
    results = [_room_result(room, report, tool_name) for room, report in reloaded.items()]
    if len(results) == 1 and isinstance(results[0], ReloadResponse):
        return results[0]
    all_well = all(result.status == "reloaded" for result in results)
    return ReloadsResponse(status="reloaded" if all_well else "partly", rooms=results)


def _room_result(
    room: str, report: dict[str, Any] | ControlError, tool_name: str | None
) -> ReloadResponse | ReloadFailure:
    if isinstance(report, ControlError):
        return ReloadFailure(status="error", room_name=room, detail=str(report))
    known = report["found"]
    found = None if tool_name is None else tool_name in known
    name = known.get(tool_name, tool_name)
    fields: dict[str, Any] = {**report, "tool_name": name, "found": found}
    return ReloadResponse(status="reloaded", room_name=room, **fields)


async def _ask(
    rooms: LiveKitRooms,
    room: str,
    request: AgentRequest,
    answer_type: type[AgentAnswer],
    deadline_s: float,
) -> dict[str, Any]:
    """Return the fields of the agent's answer.

    Raises:
        RequestRefused: a tool gave no result; the model would read the same words.
        ControlError: as `ask_agent`.
    """
    answer = await ask_agent(rooms, room, request, answer_type, deadline_s)
    if isinstance(answer, CallFailure):
        status = _CALL_STATUS[answer.kind]
        raise RequestRefused(
            status,
            answer.message,
            answer.kind,
            answer.valid_names,
            question=answer.question,
            confirmation=answer.confirmation,
        )
    return {name: value for name, value in answer if name != "answer"}


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8889) -> None:
    """Serve the API of `caal-node control` until the process is asked to stop.

    Raises:
        ConfigError: the token or LiveKit's address and keys are not set, or the address is taken.
    """
    if not is_loopback(host):
        logger.warning("%s is reachable from other machines, without TLS: put a proxy there.", host)
    app = make_app(settings, LiveKitRooms.of(settings))
    require_port(host, port)
    make_server(app, host, port).run()


def require_port(host: str, port: int, fix: str = "choose others with --host and --port") -> None:
    """Say in one line what uvicorn says by its log and a traceback.

    Raises:
        ConfigError: nobody can listen there.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except (OSError, OverflowError) as error:
        why = "a port is a number from 0 to 65535"
        if isinstance(error, OSError):  # Python puts the address behind it once more
            why = str(error.strerror).partition(" (while")[0].lower()
        raise ConfigError(f"cannot listen at {host}, port {port} ({why}); {fix}") from error


def make_server(
    app: FastAPI,
    host: str,
    port: int,
    *,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    ws: Literal["none", "auto"] = "none",
) -> uvicorn.Server:
    """Return the server of `app`; 0 lets the system choose a port. With a certificate it serves
    https; `ws` says whether it takes WebSockets."""
    logging.getLogger("uvicorn.error").addFilter(_WarnOnce())
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http="h11",  # the one whose headers have a limit
            ws=ws,
            ws_max_size=MAX_CALL_BYTES,
            ws_max_queue=WS_QUEUE,
            ws_per_message_deflate=False,
            ssl_certfile=certfile,
            ssl_keyfile=keyfile,
            lifespan="on",  # else one that fails is left out, and nothing that it opens is there
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_S,
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


def make_app(settings: Settings, rooms: LiveKitRooms) -> FastAPI:
    """Return the application; it opens and closes `rooms` with itself.

    Raises:
        ConfigError: CAAL_CONTROL_TOKEN is not set.
    """
    if settings.control_token is None:
        raise ConfigError(
            "CAAL_CONTROL_TOKEN: not set. Make one with: openssl rand -hex 32; callers send it."
        )
    token = settings.control_token.get_secret_value().encode()

    reloads = Reloads(rooms)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with rooms:
            app.openapi()  # It takes 30 ms once, and is kept.
            try:
                yield
            finally:
                await reloads.aclose()

    # No pages that describe the API without the token; /api/openapi.json does with it.
    app = FastAPI(
        title="caal-node control", version=__version__, lifespan=lifespan, openapi_url=None
    )

    counted = RequestMetrics()
    app.add_middleware(CountedRequests, metrics=counted)

    @app.get("/health", tags=["control"])
    async def health() -> HealthResponse:
        """Whether this process is up. It says nothing about LiveKit or a room."""
        return HealthResponse(status="ok", version=__version__)

    with_token = [Depends(token_check(token)), Depends(Gate(MAX_REQUESTS))]
    app.include_router(control_routes(rooms, reloads), dependencies=with_token)
    app.include_router(tool_routes(rooms), dependencies=with_token)

    @app.get("/api/openapi.json", dependencies=with_token, include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return app.openapi()

    @app.get("/metrics", dependencies=with_token, include_in_schema=False)
    async def metrics() -> Response:
        return Response(counted.text(), media_type=METRICS_TYPE)

    @app.exception_handler(RequestRefused)
    async def refused(_: Request, why: RequestRefused) -> JSONResponse:
        return why.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, why: RequestValidationError) -> JSONResponse:
        first = why.errors()[0]
        field = ".".join(map(str, first["loc"][1:]))[:MAX_NAME_CHARS]
        return RequestRefused(422, field_error(field, first["msg"])).response()

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, why: HTTPException) -> JSONResponse:
        response = RequestRefused(why.status_code, f"{why.detail}.").response()
        response.headers.update(why.headers or {})
        return response

    @app.exception_handler(Exception)
    async def broken(_: Request, why: Exception) -> JSONResponse:
        # What it says may quote anything; the log has it.
        detail = f"A fault of the control process ({type(why).__name__}): see its log, and report."
        return RequestRefused(500, detail).response()

    @app.exception_handler(ControlError)
    async def failed(request: Request, why: ControlError) -> JSONResponse:
        logger.warning("%s: %d %s", request.url.path, why.status, type(why).__name__)
        return RequestRefused(why.status, str(why)).response()

    _ = (
        health,
        openapi,
        metrics,
        refused,
        invalid,
        http_error,
        broken,
        failed,
    )  # registered by their decorators
    return app
