"""The control API: /reload-tools, /model, the Tools API under /api, and /health."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from caal_node.config.settings import Settings
from caal_node.control.api_models import Changed, Health, ModelBody, ReloadBody, Reloaded
from caal_node.control.openapi import BEARER, errors, takes
from caal_node.control.reports import ModelRequest, ReloadRequest, to_dict
from caal_node.control.request_parsing import RequestRefused, error, fault, gate, read
from caal_node.control.rooms import ControlError, RoomsPort, change_model, choose, reload
from caal_node.control.routes import tool_paths
from caal_node.control.rpc import MAX_NAME_CHARS
from caal_node.core.errors import ConfigError
from caal_node.version import __version__

logger = logging.getLogger(__name__)


def make_app(settings: Settings, rooms: RoomsPort) -> FastAPI:
    """The application; it opens and closes `rooms` with itself.

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
    async def health() -> Health:
        """Whether this process is up. It says nothing about LiveKit or a room."""
        return Health(status="ok", version=__version__)

    allowed = [Depends(gate(token)), Depends(BEARER)]
    app.include_router(_control_paths(rooms), dependencies=allowed)
    app.include_router(tool_paths(rooms), dependencies=allowed)

    @app.get("/api/openapi.json", dependencies=allowed, include_in_schema=False)
    async def described() -> dict[str, Any]:
        return app.openapi()

    @app.exception_handler(RequestRefused)
    async def refused(_: Request, no: RequestRefused) -> JSONResponse:
        return error(no.status, no.detail, no.kind, no.valid_names)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, no: RequestValidationError) -> JSONResponse:
        first = no.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))[:MAX_NAME_CHARS]
        return error(422, fault(where, first["msg"]))

    @app.exception_handler(HTTPException)
    async def http(_: Request, no: HTTPException) -> JSONResponse:
        said = error(no.status_code, f"{no.detail}.")
        said.headers.update(no.headers or {})
        return said

    @app.exception_handler(ControlError)
    async def failed(request: Request, why: ControlError) -> JSONResponse:
        logger.warning("%s: %d %s", request.url.path, why.status, type(why).__name__)
        return error(why.status, str(why))

    _ = health, described, refused, invalid, http, failed  # registered by their decorators
    return app


def _control_paths(rooms: RoomsPort) -> APIRouter:
    router = APIRouter(tags=["control"])
    statuses = errors(400, 408, 413)

    @router.post(
        "/reload-tools",
        responses=statuses,
        openapi_extra=takes(ReloadBody, required=False),
        response_model_exclude_unset=True,
    )
    async def reload_tools(request: Request) -> Reloaded:
        """Have a room's agent list its tools anew; its conversation goes on."""
        body = await read(request, ReloadBody)
        room = await choose(rooms, body.room_name)
        asked = ReloadRequest(uuid.uuid4().hex, body.tool_name, body.message)
        report = await reload(rooms, room, asked)
        return Reloaded(status="reloaded", room_name=room, **to_dict(report))

    @router.post("/model", responses=statuses, openapi_extra=takes(ModelBody))
    async def model(request: Request) -> Changed:
        """Have a room's agent ask another model from its next reply on."""
        body = await read(request, ModelBody)
        room = await choose(rooms, body.room_name)
        asked = ModelRequest(uuid.uuid4().hex, body.model, body.api, body.base_url)
        report = await change_model(rooms, room, asked)
        return Changed(status="changed", room_name=room, model=report.model, api=report.api)

    _ = reload_tools, model  # registered by their decorators
    return router
