"""Serves the page in which people talk to the agent, and lets it into a room.

The link to the page holds a key behind `#`, which browsers send to nobody. With every request the
page sends the key as a bearer token, and the header `X-Caal-Page` with an id that it has made for
itself. Another site in the same browser cannot send them, as nothing here allows it to (no CORS),
and it cannot lead a name of its own here either, since only this server's names are answered.

Each page has a room and an identity of its own. Its token for the room is short-lived (LiveKit
renews it while the page is connected) and allows a microphone and data, nothing else. It also marks
the person as one whose page may see arguments and results (`caal_node.room.front_end`).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from livekit import api
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketClose, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from caal_node.config.settings import Settings
from caal_node.control.http_api import Gate, RequestBody, RequestRefused, read_body, read_bytes
from caal_node.control.messages import (
    MAX_SWITCHED,
    AgentAnswer,
    AgentRequest,
    CallFailure,
    ListAnswer,
    ListTools,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SwitchReport,
    SwitchRequest,
)
from caal_node.control.room_agents import CHANGE_S, ControlError, LiveKitRooms, ask_agent
from caal_node.core.errors import ConfigError
from caal_node.page.findings import CannotLook, Findings, FindingsResponse
from caal_node.room.front_end import PAGE
from caal_node.telemetry.turn_times import read_spans, turns_of

STATIC: Final = Path(__file__).with_name("static")
"""The built page. `make page` builds it from `client/`; a wheel brings it along."""
PREFIX: Final = "/page"
PAGE_ID: Final = "X-Caal-Page"
PAGE_ID_CHARS: Final = 64
TOKEN_S: Final = 600.0
"""Seconds in which a page has to enter its room."""
MAX_PAGES: Final = 64
"""Pages whose room is remembered, so that a reloaded one comes back to its conversation."""
FIRST_ROOM_S: Final = 900
"""Seconds for which the first page's room is open before anybody joins it."""
MAX_REQUESTS: Final = 32
MODEL_CHARS: Final = 200
TRACE_BYTES: Final = 8 << 20
"""Bytes of a trace that are read at once; of a longer file the page sends the end."""
TRACE_TURNS: Final = 50
KEY_BYTES: Final = 24
_CSP: Final = (
    "default-src 'self'",
    "img-src 'self' data:",
    "media-src 'self' blob:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "object-src 'none'",
)
_CLOUD: Final = ".livekit.cloud"
_REFUSED: Final = 1008
"""WebSocket's code for what is not allowed."""
_HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "microphone=(self), speaker-selection=(self), camera=(), geolocation=()",
}
_KEPT: Final = "public, max-age=31536000, immutable"
"""Files under /assets have a digest of their content in their names."""


def require_page(static: Path = STATIC) -> None:
    """Raises: ConfigError: the page is not built."""
    if not (static / "index.html").is_file():
        raise ConfigError("the page is not built; in a clone, run: make page")


def new_key() -> str:
    """Return a key for the link of one run."""
    return secrets.token_urlsafe(KEY_BYTES)


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where one page's conversation is."""

    room: str
    identity: str


class Pages:
    """The places of the pages that were opened; the one that came longest ago is forgotten."""

    def __init__(self) -> None:
        self._places: Final[OrderedDict[str, PagePlace]] = OrderedDict()
        self._next = _new_place()

    @property
    def next(self) -> PagePlace:
        """The place of the next page that comes."""
        return self._next

    def enter(self, page: str) -> PagePlace:
        """Return the place of a page, a new one for a page that has none."""
        if page not in self._places:
            self._places[page], self._next = self._next, _new_place()
        self._places.move_to_end(page)
        while len(self._places) > MAX_PAGES:
            self._places.popitem(last=False)
        return self._places[page]

    def place(self, page: str) -> PagePlace:
        """Return the place of a page that has entered it.

        Raises:
            RequestRefused: it has not.
        """
        if (place := self._places.get(page)) is None:
            raise RequestRefused(409, "Start talking first: this page is in no room.")
        return place


def _new_place() -> PagePlace:
    name = secrets.token_hex(4)
    return PagePlace(f"caal-{name}", f"person-{name}")


class JoinResponse(BaseModel):
    """How the page enters its room."""

    url: str
    token: str
    room: str
    identity: str
    expires_s: float


class ModelChange(RequestBody):
    """The model that the page's agent is to ask from now on."""

    model: str = Field(min_length=1, max_length=MODEL_CHARS)


class SwitchChange(RequestBody):
    """What the page's agent is to switch in its conversation."""

    cues: bool | None = None
    checks: dict[str, bool] = Field(default={}, max_length=MAX_SWITCHED)


def make_page_app(
    settings: Settings,
    rooms: LiveKitRooms,
    *,
    key: str,
    hosts: Collection[str],
    findings: Findings | None = None,
    control: FastAPI | None = None,
    via_page: bool = False,
    static: Path = STATIC,
) -> FastAPI:
    """Return the application; it opens and closes `rooms` with itself.

    Args:
        settings: LiveKit's address and keys, and the model that the page shows at first.
        key: What the link to the page ends with.
        hosts: The names, without port, by which this server may be called; "*" is any.
        findings: What the checks of the installation find; without it, nothing is checked.
        control: The control API, if this server has it as well; it lets its own callers in.
        via_page: Whether pages reach LiveKit's signalling through this server.

    Raises:
        ConfigError: The page is not built, or LiveKit's address or keys are not set.
    """
    require_page(static)
    url, api_key, secret = (
        settings.livekit_url,
        settings.livekit_api_key,
        settings.livekit_api_secret,
    )
    if not url or not api_key or secret is None:
        raise ConfigError("set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET")
    pages = Pages()
    models: dict[str, ModelReport] = {}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as open_:
            await open_.enter_async_context(rooms)
            if control is not None:
                await open_.enter_async_context(control.router.lifespan_context(control))
            # An agent comes and its model reads its prompt while somebody opens the page.
            with suppress(ControlError):
                await rooms.open(pages.next.room, FIRST_ROOM_S)
            if findings is not None:
                open_.push_async_callback(findings.aclose)
            yield

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    with_key = [Depends(_key_check(key)), Depends(Gate(MAX_REQUESTS))]

    @app.post(f"{PREFIX}/join", dependencies=with_key)
    async def join(request: Request) -> JoinResponse:
        place = pages.enter(_page_of(request))
        grants = api.VideoGrants(
            room_join=True,
            room=place.room,
            can_publish_sources=["microphone"],
            can_update_own_metadata=False,
        )
        token = (
            api.AccessToken(api_key, secret.get_secret_value())
            .with_identity(place.identity)
            .with_attributes({PAGE: "1"})
            .with_ttl(timedelta(seconds=TOKEN_S))
            .with_grants(grants)
            .to_jwt()
        )
        return JoinResponse(
            url=_own_address(request) if via_page else url,
            token=token,
            room=place.room,
            identity=place.identity,
            expires_s=TOKEN_S,
        )

    async def ask(
        request: Request, asked: AgentRequest, answer_type: type[AgentAnswer]
    ) -> AgentAnswer:
        room = pages.place(_page_of(request)).room
        answer = await ask_agent(rooms, room, asked, answer_type, CHANGE_S)
        if isinstance(answer, CallFailure):
            raise RequestRefused(502, answer.message)
        return answer

    @app.get(f"{PREFIX}/tools", dependencies=with_key)
    async def tools(request: Request) -> AgentAnswer:
        return await ask(request, ListTools(), ListAnswer)

    @app.post(f"{PREFIX}/reload", dependencies=with_key)
    async def reload(request: Request) -> AgentAnswer:
        return await ask(request, ReloadRequest(announcements=()), ReloadReport)

    @app.get(f"{PREFIX}/model", dependencies=with_key)
    async def model(request: Request) -> ModelReport:
        known = models.get(pages.place(_page_of(request)).room)
        return known or ModelReport(model=settings.model, api=settings.api)

    @app.post(f"{PREFIX}/model", dependencies=with_key)
    async def change_model(request: Request) -> AgentAnswer:
        body = await read_body(request, ModelChange)
        answer = await ask(request, ModelRequest(model=body.model), ModelReport)
        if isinstance(answer, ModelReport):
            models[pages.place(_page_of(request)).room] = answer
            while len(models) > MAX_PAGES:
                del models[next(iter(models))]
        return answer

    @app.post(f"{PREFIX}/trace", dependencies=with_key)
    async def trace(request: Request) -> JSONResponse:
        body = await read_bytes(request, TRACE_BYTES)
        try:
            turns = await asyncio.to_thread(_turns_in, body)
        except ConfigError as error:
            raise RequestRefused(422, f"{error}.") from None
        return JSONResponse({"turns": turns})

    @app.get(f"{PREFIX}/switches", dependencies=with_key)
    async def switches(request: Request) -> AgentAnswer:
        return await ask(request, SwitchRequest(), SwitchReport)

    @app.post(f"{PREFIX}/switches", dependencies=with_key)
    async def switch(request: Request) -> AgentAnswer:
        body = await read_body(request, SwitchChange)
        return await ask(request, SwitchRequest(cues=body.cues, checks=body.checks), SwitchReport)

    @app.get(f"{PREFIX}/findings", dependencies=with_key)
    async def newest_findings() -> FindingsResponse:
        if findings is None:
            raise RequestRefused(404, "Nothing is checked here; run: caal-node doctor")
        try:
            return await findings.newest()
        except CannotLook as why:
            raise RequestRefused(503, str(why)) from None

    @app.exception_handler(RequestRefused)
    async def refused(_: Request, why: RequestRefused) -> JSONResponse:
        return why.response()

    @app.exception_handler(ControlError)
    async def failed(_: Request, why: ControlError) -> JSONResponse:
        return RequestRefused(why.status, str(why)).response()

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, why: HTTPException) -> Response:
        return RequestRefused(why.status_code, f"{why.detail}.").response()

    _ = (
        join,
        tools,
        reload,
        model,
        change_model,
        switches,
        switch,
        newest_findings,
        trace,
        refused,
        failed,
        http_error,
    )  # registered by their decorators
    if via_page:
        app.add_api_websocket_route(f"{SIGNALLING}/{{path:path}}", SignallingProxy(url).serve)
    app.mount("/", StaticFiles(directory=static, html=True))
    if control is not None:
        app.add_middleware(_WithControl, control=control)
    policy = "; ".join((*_CSP, "connect-src 'self'"))
    policy = policy if via_page else f"{policy} {' '.join(_origins(url))}"
    app.add_middleware(_Guarded, hosts=frozenset(hosts), policy=policy, via_page=via_page)
    return app


def _turns_in(trace: bytes) -> list[dict[str, Any]]:
    turns = turns_of(read_spans(BytesIO(trace), "the file"))
    return [turn.as_json() for turn in turns[-TRACE_TURNS:]]


def _own_address(request: Request) -> str:
    """Return LiveKit's address as a page reaches it through this server."""
    scheme = "wss" if request.url.scheme == "https" else "ws"
    return f"{scheme}://{request.url.netloc}{SIGNALLING}"


def _origins(livekit_url: str) -> tuple[str, ...]:
    """Return what a page may connect to: the LiveKit server, by WebSocket and by HTTP."""
    parts = urlsplit(livekit_url)
    secure = parts.scheme in ("wss", "https")
    hosts = [parts.netloc]
    if parts.netloc.endswith(_CLOUD):
        hosts.append(f"*{_CLOUD}")  # it may send a page on to a nearer server
    schemes = ("wss", "https") if secure else ("ws", "http")
    return tuple(f"{scheme}://{host}" for host in hosts for scheme in schemes)


def _page_of(request: Request) -> str:
    """Return the id that a page has made for itself.

    Raises:
        RequestRefused: It has none. A request from another site never has.
    """
    page = request.headers.get(PAGE_ID, "")
    if not page or len(page) > PAGE_ID_CHARS:
        raise RequestRefused(403, f"Send the header {PAGE_ID}, as the page does.")
    return page


def _key_check(key: str) -> Any:
    expected = f"Bearer {key}".encode()

    async def check(request: Request) -> None:
        _page_of(request)
        given = request.headers.get("authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, expected):
            raise RequestRefused(401, "Open the printed link again; it holds the key.")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            raise RequestRefused(403, "This request comes from another site.")

    return check


class _WithControl:
    """Gives the control API what is asked by its paths, and the page's application the rest."""

    def __init__(self, app: ASGIApp, control: FastAPI) -> None:
        self._app: Final = app
        self._control: Final = control

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and any(
            route.matches(scope)[0] is not Match.NONE for route in self._control.routes
        ):
            app = self._control
        await app(scope, receive, send)


class _Guarded:
    """Answers to this server's own names alone, and says what a browser may do with the page."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], policy: str, *, via_page: bool) -> None:
        self._app: Final = app
        self._hosts: Final = hosts
        self._via_page: Final = via_page
        self._headers: Final = {**_HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        is_ours = "*" in self._hosts or _host_of(scope) in self._hosts
        if scope["type"] == "websocket":
            if is_ours and self._is_signalling(scope):
                await self._app(scope, receive, send)
            else:
                await WebSocketClose(_REFUSED)(scope, receive, send)
            return
        if not is_ours:
            refused = RequestRefused(421, "This server is not called that.").response()
            await refused(scope, receive, send)
            return
        kept = _KEPT if scope["path"].startswith("/assets/") else "no-cache"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("cache-control", kept)  # a stream of events has its own
            await send(message)

        await self._app(scope, receive, with_headers)

    def _is_signalling(self, scope: Scope) -> bool:
        """Say whether a WebSocket is a page's of this server; another site may open one, too."""
        headers = Headers(scope=scope)
        own = headers.get("origin", "").partition("://")[2] == headers.get("host")
        return self._via_page and own and scope["path"].startswith(f"{SIGNALLING}/")


def _host_of(scope: Scope) -> str:
    """Return the host that a request names, without its port: `localhost`, `[::1]`."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = named.decode("latin-1").lower()
    head, colon, port = host.rpartition(":")
    return head if colon and port.isdigit() else host


# Passes LiveKit's signalling on, so that a page needs no connection but to its own server.
#
# Browsers refuse `ws://` to a page that came over https, and a LiveKit server on loopback is out of
# reach of other devices. Only signalling goes this way: sound goes straight to the LiveKit server.
# LiveKit checks the token of each connection, as it does without this.

SIGNALLING: Final = "/page/livekit"
"""What a page is given as LiveKit's address. LiveKit's clients add PATHS to it."""
PATHS: Final = frozenset({"rtc", "rtc/v1"})
OPEN_S: Final = 10.0
CLOSE_S: Final = 2.0
MAX_MESSAGE_BYTES: Final = 1 << 20
"""A message of a room with a hundred participants has 100 kB."""
MAX_CONNECTIONS: Final = 128
"""Two for each page that the server remembers, as a page that reconnects has two for a moment."""
_TRY_LATER: Final = 1013
_NORMAL: Final = 1000
_BROKEN: Final = 1011
"""With any code but the normal one LiveKit's clients connect again."""

logger = logging.getLogger(__name__)


class SignallingProxy:
    """Connects pages to one LiveKit server, `ws://HOST:PORT`."""

    def __init__(self, livekit_url: str) -> None:
        self._url: Final = livekit_url.rstrip("/")
        self._open = 0

    async def serve(self, page: WebSocket, path: str) -> None:
        """Pass on what the page and LiveKit send each other, until one of them closes."""
        code = _REFUSED if path not in PATHS else _TRY_LATER
        if path in PATHS and self._open < MAX_CONNECTIONS:
            self._open += 1
            try:
                code = await self._connected(page, path)
            finally:
                self._open -= 1
        with suppress(WebSocketDisconnect, RuntimeError):  # it has left already
            await page.close(code)

    async def _connected(self, page: WebSocket, path: str) -> int:
        """Return with which code the page's connection ends."""
        try:
            async with connect(
                f"{self._url}/{path}?{page.url.query}",
                open_timeout=OPEN_S,
                close_timeout=CLOSE_S,
                max_size=MAX_MESSAGE_BYTES,
                compression=None,
                proxy=None,
            ) as livekit:
                await page.accept()
                await _pass_on(page, livekit)
            return _NORMAL if livekit.close_code == _NORMAL else _BROKEN
        except (OSError, TimeoutError, WebSocketException) as error:
            # Its text may hold the address, and with it the token.
            logger.warning("LiveKit did not take a page's connection: %s", type(error).__name__)
            return _TRY_LATER


async def _pass_on(page: WebSocket, livekit: ClientConnection) -> None:
    ways = [
        asyncio.create_task(_from_page(page, livekit), name="caal-signalling-up"),
        asyncio.create_task(_from_livekit(page, livekit), name="caal-signalling-down"),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _from_page(page: WebSocket, livekit: ClientConnection) -> None:
    while (message := await page.receive())["type"] == "websocket.receive":
        data = message.get("bytes")
        await livekit.send(message["text"] if data is None else data)


async def _from_livekit(page: WebSocket, livekit: ClientConnection) -> None:
    async for message in livekit:
        if isinstance(message, str):
            await page.send_text(message)
        else:
            await page.send_bytes(message)
