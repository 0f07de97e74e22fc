"""What the control API takes, and how its requests are let in and read, or refused.

The models are as the API's OpenAPI document has them.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from starlette.requests import ClientDisconnect

from caal_node.control.messages import (
    DEFAULT_FOUND,
    MAX_FOUND,
    ErrorResponse,
    FailureKind,
)
from caal_node.control.rpc import BUSY, run_beside_loop
from caal_node.core.events import AnswerTo, Priority
from caal_node.tools.table import NAME_MAX
from mcp_bridge.discovery.tool_search import MAX_PATTERN_CHARS, MAX_PATTERNS

MAX_NAME_CHARS: Final = 128
MAX_MESSAGE_CHARS: Final = 500
"""This is about 40 seconds of speech."""

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS, pattern=r"\S"
    ),
]
Sentence = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_MESSAGE_CHARS, pattern=r"\S"
    ),
]
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=MAX_NAME_CHARS * 4)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
Pattern = Annotated[str, StringConstraints(pattern=r"\S", max_length=MAX_PATTERN_CHARS)]
Confirmation = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS)]
ROOM: Final = Field(default=None, description="May be left out where one room has an agent.")

MAX_BODY_BYTES: Final = 16 * 1024
BODY_S: Final = 10.0
"""A body has to arrive within this time."""
MAX_VALUES: Final = 10_000
"""This many values take 20 ms to parse and send on. A text counts as one, however long."""
_VALUE: Final = re.compile(rb'[,\[{]|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NUMBER_CHARS: Final = 40
"""The sentence that refuses a number quotes this much of it."""
_BEARER: Final = HTTPBearer(
    auto_error=False, description="CAAL_CONTROL_TOKEN, as the control process has it."
)


def _integer(value: object) -> object:
    """Return 10.0 as 10, since JSON knows one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class RequestBody(BaseModel):
    """Every request refuses fields that are not known, and converts nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ReloadBody(RequestBody):
    """Everything is optional. Without `room_name` the agents of all live rooms reload."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tool_name": "get_weather"}]})
    room_name: Name | None = ROOM
    tool_name: Name | None = Field(
        default=None, description="The tool that is new; where it is there, that is said aloud."
    )
    message: Sentence | None = Field(
        default=None,
        description="A sentence to say when it is done, but not where `tool_name` is not there.",
    )


class ModelBody(RequestBody):
    """The model that the room's agent is to ask from now on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "qwen3:8b"}]})
    model: Name
    room_name: Name | None = ROOM
    # Not `livekit`: whoever may call this API may not name code to be run.
    api: Literal["ollama", "openai", "completions"] | None = None
    base_url: Url | None = Field(
        default=None,
        description="One that the agent's settings name for models; null is their usual one.",
    )


class SayBody(RequestBody):
    """What the room's agent is to say."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Dinner is ready."}]})
    text: Sentence
    room_name: Name | None = ROOM


class AnnounceBody(SayBody):
    """What the room's agent is to say, when, and who gets the answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Shall I start the dryer?", "priority": "low", "answer": "caller"}
            ]
        }
    )
    priority: Priority = Field(
        default="normal",
        description="`normal`: at the next pause, or after 30 s. `low`: after 5 s of silence, or "
        "not at all. `urgent`: before others, and over the agent's own words.",
    )
    answer: AnswerTo = Field(
        default="model",
        description="`caller`: it is a question, and the person's next words are in the response. "
        "`model`: what they say next is a turn of the conversation.",
    )


class RoomQuery(RequestBody):
    """Which room is meant."""

    room_name: Name | None = ROOM


class CallBody(RequestBody):
    """One call. Which program or server runs it, and how, is the agent's configuration alone."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "files__read_text_file", "arguments": {"path": "notes.txt"}}]
        }
    )
    room_name: Name | None = ROOM
    name: ToolName = Field(description=f"As GET /api/tools gives it; at most {NAME_MAX} long.")
    arguments: dict[str, Any] = Field(default={}, description="As the tool's input_schema says.")
    confirmation: Confirmation = Field(
        default="", description="What a 409 of this same call gave: it says yes to exactly that."
    )


class SearchBody(RequestBody):
    """Words for what is needed, or names with `*`: one as `query`, or several as `patterns`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["query"]}, {"required": ["patterns"]}],
            "examples": [{"query": "weather forecast"}, {"patterns": ["*file*", "send a mail"]}],
        }
    )
    room_name: Name | None = ROOM
    query: Pattern = ""
    patterns: list[Pattern] = Field(
        default_factory=list[Pattern], min_length=1, max_length=MAX_PATTERNS
    )
    limit: Annotated[int, BeforeValidator(_integer)] = Field(
        default=DEFAULT_FOUND, ge=1, le=MAX_FOUND
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> SearchBody:
        if bool(self.query) == bool(self.patterns):
            raise ValueError("send either query or patterns")
        return self


B = TypeVar("B", bound=RequestBody)


class RequestRefused(Exception):
    """A request is not done; `detail` says how to fix it."""

    def __init__(
        self,
        status: int,
        detail: str,
        kind: FailureKind | None = None,
        valid_names: Sequence[str] = (),
        *,
        question: str = "",
        confirmation: str = "",
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.body = ErrorResponse(
            status="error",
            detail=detail,
            kind=kind,
            valid_names=list(valid_names) or None,
            question=question or None,
            confirmation=confirmation or None,
        )

    def response(self) -> JSONResponse:
        """Return the refusal in the one shape that all errors have."""
        # The body may not have ended, and the server would read the rest of it, without end.
        headers = {"Connection": "close"}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.body.model_dump(exclude_none=True), self.status, headers)


def token_check(token: bytes) -> Callable[..., Awaitable[None]]:
    """Return a dependency of every path but /health: the caller must have the token."""

    async def check(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    ) -> None:
        # As the bytes that were sent, and in a time that does not depend on where they differ.
        sent = given.credentials.strip().encode("latin-1", "replace") if given else b""
        if given is None or not hmac.compare_digest(sent, token):
            raise RequestRefused(401, "Send the header: Authorization: Bearer CAAL_CONTROL_TOKEN.")

    return check


class Gate:
    """A dependency that lets only so many requests be under way at once."""

    def __init__(self, most: int) -> None:
        self._free = most

    async def __call__(self) -> AsyncGenerator[None]:
        if not self._free:
            raise RequestRefused(503, BUSY)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


async def read_body(request: Request, kind: type[B], max_bytes: int = MAX_BODY_BYTES) -> B:
    """Return the whole body, checked; an empty one counts as an empty object.

    Raises:
        RequestRefused: it is too large, too late, cut off, no JSON object, or not of this kind.
    """
    body = await read_bytes(request, max_bytes)
    try:
        fields = await run_beside_loop(lambda: _parse_json(body), chars=len(body))
    except (ValueError, RecursionError):
        raise RequestRefused(422, "The body is not JSON; send an object, or nothing.") from None
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


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """Return the whole body.

    Raises:
        RequestRefused: it is too large, too late or cut off.
    """
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
    """Return what the JSON holds; an empty body counts as an empty object.

    Raises:
        RequestRefused: it holds too many values, a key twice, or a number that no tool could be
            sent as it is.
        ValueError: it is not JSON.
    """
    if not body.strip():
        return {}
    if has_too_many_values(body):
        raise RequestRefused(
            422, f"The body holds more than {MAX_VALUES:,} values; send fewer, or one long text."
        )
    fields = json.loads(
        body,
        parse_constant=_refuse_constant,
        parse_float=_finite_float,
        object_pairs_hook=_object_of,
    )
    # A lone surrogate parses, but cannot be sent anywhere.
    json.dumps(fields, ensure_ascii=False).encode()
    return fields


def has_too_many_values(body: bytes) -> bool:
    """Count what costs time to parse, however long: keys, texts, and what may begin a value."""
    if sum(map(body.count, (b",", b"[", b"{", b'"'))) <= MAX_VALUES:
        return False
    return next(itertools.islice(_VALUE.finditer(body), MAX_VALUES, None), None) is not None


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        [(key, _), *_] = Counter(key for key, _ in pairs).most_common(1)
        raise RequestRefused(422, f"The key {key[:MAX_NAME_CHARS]!r} stands twice; send it once.")
    return fields


def _refuse_constant(word: str) -> NoReturn:
    raise RequestRefused(422, f"{word} is not JSON; send a number, null or a text.")


def _finite_float(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        # It would be written as null on its way to the agent.
        short = written if len(written) <= _NUMBER_CHARS else f"{written[:_NUMBER_CHARS]}..."
        raise RequestRefused(
            422, f"The number {short} is too large; send a smaller one, or a text."
        )
    return number
