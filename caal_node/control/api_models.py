"""These models are what the control API takes and gives, as its OpenAPI document has them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from caal_node.control.messages import (
    DEFAULT_FOUND,
    MAX_FOUND,
    CallResult,
    FailureKind,
    SearchResult,
    ToolList,
)
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
ROOM: Final = Field(default=None, description="May be left out where one room has an agent.")


def _integer(value: object) -> object:
    """Return 10.0 as 10, since JSON knows one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class RequestBody(BaseModel):
    """Every request refuses fields that are not known, and converts nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ReloadBody(RequestBody):
    """Everything is optional where exactly one room is live."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tool_name": "get_weather"}]})
    room_name: Name | None = ROOM
    tool_name: Name | None = Field(default=None, description="The tool that is new.")
    message: Sentence | None = Field(default=None, description="A sentence to say when it is done.")


class ModelBody(RequestBody):
    """The model that the room's agent is to ask from now on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "qwen3:8b"}]})
    model: Name
    room_name: Name | None = ROOM
    # Not `livekit`: whoever may call this API may not name code to be run.
    api: Literal["ollama", "openai", "completions"] | None = None
    base_url: Url | None = None


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


class HealthResponse(BaseModel):
    status: Literal["ok"]
    version: str


class ReloadResponse(BaseModel):
    """Tools by their names, in order; `failed` holds the sources that did not answer."""

    status: Literal["reloaded"]
    room_name: str
    tool_count: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    failed: list[str]


class ModelResponse(BaseModel):
    status: Literal["changed"]
    room_name: str
    model: str
    api: str


class ListResponse(ToolList):
    status: Literal["ok"]
    room_name: str


class SearchResponse(SearchResult):
    status: Literal["ok"]
    room_name: str


class CallResponse(CallResult):
    status: Literal["called"]
    room_name: str


class ErrorResponse(BaseModel):
    """What went wrong, and how to mend it."""

    status: Literal["error"]
    detail: str
    kind: FailureKind | None = Field(default=None, description="Of a call that was not done.")
    valid_names: list[str] | None = Field(
        default=None, description="The nearest names, best first."
    )
