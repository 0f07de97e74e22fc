"""The control API: POST /reload-tools, POST /model and GET /health."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.requests import ClientDisconnect

from caal_node.control.messages import MAX_MESSAGE_CHARS, MAX_NAME_CHARS
from caal_node.control.report import ModelRequest, ReloadRequest, to_dict
from caal_node.control.rooms import ControlError, RoomsPort, change_model, choose, reload
from caal_node.errors import ConfigError
from caal_node.settings import Settings
from caal_node.version import __version__

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 16 * 1024
BODY_S: Final = 10.0

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS)
]
Sentence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_MESSAGE_CHARS)
]

Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=MAX_NAME_CHARS * 4)]


class ReloadBody(BaseModel):
    """Everything is optional where exactly one room is live."""

    model_config = ConfigDict(extra="forbid", strict=True)
    room_name: Name | None = None
    tool_name: Name | None = None
    message: Sentence | None = None


class ModelBody(BaseModel):
    """The model that the room's agent is to ask from now on."""

    model_config = ConfigDict(extra="forbid", strict=True)
    model: Name
    room_name: Name | None = None
    # Not `livekit`: whoever may call this API may not name code to be run.
    api: Literal["ollama", "openai", "completions"] | None = None
    base_url: Url | None = None


Body = TypeVar("Body", ReloadBody, ModelBody)


class _Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


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

    # No pages that describe the API: they would answer without the token.
    app = FastAPI(title="caal-node control", lifespan=lifespan, openapi_url=None)

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether this process is up. It says nothing about LiveKit or a room."""
        return {"status": "ok", "version": __version__}

    @app.post("/reload-tools")
    async def reload_tools(request: Request) -> JSONResponse:
        _check(request, token)
        body = _parse(ReloadBody, await _read(request))
        room = await choose(rooms, body.room_name)
        asked = ReloadRequest(uuid.uuid4().hex, body.tool_name, body.message)
        report = await reload(rooms, room, asked)
        return JSONResponse({"status": "reloaded", "room_name": room, **to_dict(report)})

    @app.post("/model")
    async def model(request: Request) -> JSONResponse:
        _check(request, token)
        body = _parse(ModelBody, await _read(request))
        room = await choose(rooms, body.room_name)
        asked = ModelRequest(uuid.uuid4().hex, body.model, body.api, body.base_url)
        report = await change_model(rooms, room, asked)
        answer = {"status": "changed", "room_name": room, "model": report.model, "api": report.api}
        return JSONResponse(answer)

    @app.exception_handler(_Refused)
    async def refused(_: Request, no: _Refused) -> JSONResponse:
        return _error(no.status, no.detail)

    @app.exception_handler(ControlError)
    async def failed(request: Request, error: ControlError) -> JSONResponse:
        logger.warning("%s: %d %s", request.url.path, error.status, type(error).__name__)
        return _error(error.status, str(error))

    _ = health, reload_tools, model, refused, failed  # registered by their decorators
    return app


def _error(status: int, detail: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"status": "error", "detail": detail}, status, headers)


def _check(request: Request, token: bytes) -> None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # As the bytes that were sent, and in a time that does not depend on where they differ.
    sent = given.strip().encode("latin-1", "replace")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent, token):
        raise _Refused(401, "Send the header: Authorization: Bearer CAAL_CONTROL_TOKEN.")


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _Refused(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")
    except TimeoutError:
        raise _Refused(408, f"The body did not come within {BODY_S:g} seconds.") from None
    except ClientDisconnect:
        raise _Refused(400, "The body was broken off.") from None
    return bytes(body)


def _parse(kind: type[Body], body: bytes) -> Body:
    try:
        fields: Any = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise _Refused(422, "The body is no JSON; send an object, or nothing.") from None
    if not isinstance(fields, dict):
        raise _Refused(422, "The body must be a JSON object.")
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:MAX_NAME_CHARS]
        if first["type"] == "extra_forbidden":
            known = ", ".join(kind.model_fields)
            raise _Refused(422, f"There is no field {where!r}; the fields are {known}.") from None
        raise _Refused(422, f"{where}: {first['msg'].lower()}.") from None
