"""How a request to the control API is let in and read, and how it is refused."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NoReturn, TypeAlias, TypeVar, cast

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.requests import ClientDisconnect

from caal_node.control.rpc import MAX_NAME_CHARS

MAX_BODY_BYTES: Final = 16 * 1024
BODY_S: Final = 10.0
_NUMBER_CHARS: Final = 40
"""Of a number that is refused, in the sentence that says so."""

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS, pattern=r"\S"
    ),
]
Names: TypeAlias = Sequence[str]
B = TypeVar("B", bound=BaseModel)


class RequestBody(BaseModel):
    """Of every request: what is not known is refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RequestRefused(Exception):
    """A request that is not done; `detail` has the mend."""

    def __init__(
        self,
        status: int,
        detail: str,
        kind: str | None = None,
        valid_names: Names | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.valid_names = valid_names


def error(
    status: int, detail: str, kind: str | None = None, valid_names: Names | None = None
) -> JSONResponse:
    """The one shape of all errors."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    told: dict[str, Any] = {"status": "error", "detail": detail}
    if kind is not None:
        told["kind"] = kind
    if valid_names:
        told["valid_names"] = list(valid_names)
    return JSONResponse(told, status, headers)


def gate(token: bytes) -> Callable[[Request], None]:
    """A dependency of every path but /health: the caller must have the token."""

    def check(request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # As the bytes that were sent, and in a time that does not depend on where they differ.
        sent = given.strip().encode("latin-1", "replace")
        if scheme.lower() != "bearer" or not hmac.compare_digest(sent, token):
            raise RequestRefused(401, "Send the header: Authorization: Bearer CAAL_CONTROL_TOKEN.")

    return check


async def read(request: Request, kind: type[B], max_bytes: int = MAX_BODY_BYTES) -> B:
    """The body, whole and checked.

    Raises:
        Refused: it is too large, too late, cut off, or not what it should be.
    """
    return parse(kind, await _bytes(request, max_bytes))


async def _bytes(request: Request, max_bytes: int) -> bytes:
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


def parse(kind: type[B], body: bytes) -> B:
    """
    Raises:
        Refused: it is no JSON object, or not of this kind.
    """
    try:
        fields: Any = _loaded(body) if body.strip() else {}
        # A lone surrogate parses, but cannot be sent anywhere.
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RequestRefused(422, "The body is no JSON; send an object, or nothing.") from None
    if not isinstance(fields, dict):
        raise RequestRefused(422, "The body must be a JSON object.")
    return checked(kind, cast("dict[str, Any]", fields))


def checked(kind: type[B], fields: object) -> B:
    """
    Raises:
        Refused: `fields` are not of this kind; the first fault is told.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:MAX_NAME_CHARS]
        if first["type"] == "extra_forbidden":
            known = ", ".join(kind.model_fields)
            raise RequestRefused(
                422, f"There is no field {where!r}; the fields are {known}."
            ) from None
        raise RequestRefused(422, fault(where, first["msg"])) from None


def fault(where: str, message: str) -> str:
    """One fault of a body or a query, in a sentence."""
    said = message.removeprefix("Value error, ").lower()
    return f"{where}: {said}." if where else f"{said}."


def _loaded(body: bytes) -> Any:
    """
    Raises:
        Refused: it holds a number that no tool could be sent as it is.
        ValueError: it is no JSON.
    """
    return json.loads(body, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(word: str) -> NoReturn:
    raise RequestRefused(422, f"{word} is no JSON; send a number, null or a text.")


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        # It would be written as null on its way to the agent.
        short = written if len(written) <= _NUMBER_CHARS else f"{written[:_NUMBER_CHARS]}..."
        raise RequestRefused(
            422, f"The number {short} is too large; send a smaller one, or a text."
        )
    return number
