"""The application serves /reload-tools, /model, the Tools API under /api, and /health."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from caal_node.config.settings import Settings
from caal_node.control.api_models import MAX_NAME_CHARS, HealthResponse
from caal_node.control.livekit_rooms import LiveKitRooms
from caal_node.control.request_parsing import RequestRefused, field_error, token_check
from caal_node.control.rooms import ControlError, RoomServer
from caal_node.control.routes import control_routes, tool_routes
from caal_node.core.addresses import is_loopback
from caal_node.core.errors import ConfigError
from caal_node.version import __version__

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
"""A reload is asked for by a person or a workflow, never by a crowd."""
STOP_S: Final = 5


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8889) -> None:
    """Serve the API of `caal-node control` until the process is asked to stop.

    Raises:
        ConfigError: the token or LiveKit's address and keys are not set.
    """
    app = make_app(settings, LiveKitRooms.of(settings))
    if not is_loopback(host):
        logger.warning("%s is reachable from other machines, without TLS: put a proxy there.", host)
    uvicorn.run(
        app,
        host=host,
        port=port,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=STOP_S,
        server_header=False,
        log_config=None,
    )


def make_app(settings: Settings, rooms: RoomServer) -> FastAPI:
    """Return the application; it opens and closes `rooms` with itself.

    Raises:
        ConfigError: CAAL_CONTROL_TOKEN is not set.
    """
    if settings.control_token is None:
        raise ConfigError(
            "CAAL_CONTROL_TOKEN: not set. Choose a long random one and give it to the callers."
        )
    token = settings.control_token.get_secret_value().encode()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with rooms:
            yield

    # No pages that describe the API without the token; /api/openapi.json does with it.
    app = FastAPI(
        title="caal-node control", version=__version__, lifespan=lifespan, openapi_url=None
    )

    @app.get("/health", tags=["control"])
    async def health() -> HealthResponse:
        """Whether this process is up. It says nothing about LiveKit or a room."""
        return HealthResponse(status="ok", version=__version__)

    with_token = [Depends(token_check(token))]
    app.include_router(control_routes(rooms), dependencies=with_token)
    app.include_router(tool_routes(rooms), dependencies=with_token)

    @app.get("/api/openapi.json", dependencies=with_token, include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return app.openapi()

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

    @app.exception_handler(ControlError)
    async def failed(request: Request, why: ControlError) -> JSONResponse:
        logger.warning("%s: %d %s", request.url.path, why.status, type(why).__name__)
        return RequestRefused(why.status, str(why)).response()

    _ = health, openapi, refused, invalid, http_error, failed  # registered by their decorators
    return app
