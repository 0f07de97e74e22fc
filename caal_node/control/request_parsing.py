"""Requests to the control API are let in and read here, or refused."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NoReturn, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from caal_node.control.api_models import MAX_NAME_CHARS, ErrorResponse, RequestBody
from caal_node.control.messages import FailureKind

MAX_BODY_BYTES: Final = 16 * 1024
BODY_S: Final = 10.0
"""A body has to arrive within this time."""
_NUMBER_CHARS: Final = 40
"""The sentence that refuses a number quotes this much of it."""
_BEARER: Final = HTTPBearer(
    auto_error=False, description="CAAL_CONTROL_TOKEN, as the control process has it."
)

B = TypeVar("B", bound=RequestBody)


class RequestRefused(Exception):
    """A request is not done; `detail` says how to mend it."""

    def __init__(
        self,
        status: int,
        detail: str,
        kind: FailureKind | None = None,
        valid_names: Sequence[str] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.body = ErrorResponse(
            status="error", detail=detail, kind=kind, valid_names=list(valid_names) or None
        )

    def response(self) -> JSONResponse:
        """Return the refusal in the one shape that all errors have."""
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else None
        return JSONResponse(self.body.model_dump(exclude_none=True), self.status, headers)


def token_check(token: bytes) -> Callable[..., None]:
    """Return a dependency of every path but /health: the caller must have the token."""

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        # As the bytes that were sent, and in a time that does not depend on where they differ.
        sent = given.credentials.strip().encode("latin-1", "replace") if given else b""
        if given is None or not hmac.compare_digest(sent, token):
            raise RequestRefused(401, "Send the header: Authorization: Bearer CAAL_CONTROL_TOKEN.")

    return check


async def read_body(request: Request, kind: type[B], max_bytes: int = MAX_BODY_BYTES) -> B:
    """Return the whole body, checked; an empty one counts as an empty object.

    Raises:
        RequestRefused: it is too large, too late, cut off, no JSON object, or not of this kind.
    """
    body = await _read_bytes(request, max_bytes)
    try:
        fields: Any = _parse_json(body) if body.strip() else {}
        # A lone surrogate parses, but cannot be sent anywhere.
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RequestRefused(422, "The body is no JSON; send an object, or nothing.") from None
    if not isinstance(fields, dict):
        raise RequestRefused(422, "The body must be a JSON object.")
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))[:MAX_NAME_CHARS]
        if first["type"] == "extra_forbidden":
            known = ", ".join(kind.model_fields)
            raise RequestRefused(
                422, f"There is no field {field!r}; the fields are {known}."
            ) from None
        raise RequestRefused(422, field_error(field, first["msg"])) from None


def field_error(field: str, message: str) -> str:
    """Return a sentence about what is wrong with one field of a body or a query."""
    wrong = message.removeprefix("Value error, ").lower()
    return f"{field}: {wrong}." if field else f"{wrong}."


async def _read_bytes(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise RequestRefused(413, f"The body is larger than {max_bytes} bytes.")
    except TimeoutError:
        raise RequestRefused(408, f"The body did not come within {BODY_S:g} seconds.") from None
    except ClientDisconnect:
        raise RequestRefused(400, "The body was broken off.") from None
    return bytes(body)


def _parse_json(body: bytes) -> Any:
    """Return what the JSON holds.

    Raises:
        RequestRefused: it holds a number that no tool could be sent as it is.
        ValueError: it is no JSON.
    """
    return json.loads(body, parse_constant=_refuse_constant, parse_float=_finite_float)


def _refuse_constant(word: str) -> NoReturn:
    raise RequestRefused(422, f"{word} is no JSON; send a number, null or a text.")


def _finite_float(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        # It would be written as null on its way to the agent.
        short = written if len(written) <= _NUMBER_CHARS else f"{written[:_NUMBER_CHARS]}..."
        raise RequestRefused(
            422, f"The number {short} is too large; send a smaller one, or a text."
        )
    return number
