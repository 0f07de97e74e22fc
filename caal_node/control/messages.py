"""What is asked of an agent's tools, and what it says: the JSON inside the parcels.

The answers are also what the HTTP API gives, and describe themselves in its OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from caal_node.core.events import TierName

MAX_FOUND: Final = 100
FOUND: Final = 10
"""Tools that a search gives, at most and usually."""

FailureKind: TypeAlias = Literal[
    "unknown_tool", "invalid_arguments", "refused", "timeout", "unavailable", "tool_error", "error"
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ListTools(_Frozen):
    ask: Literal["list"] = "list"


class FindTools(_Frozen):
    ask: Literal["find"] = "find"
    patterns: tuple[str, ...]
    limit: int = FOUND


class CallTool(_Frozen):
    ask: Literal["call"] = "call"
    name: str
    arguments: dict[str, Any]


class ToolSummary(_Frozen):
    """One tool, whichever tier it is of."""

    name: str = Field(description="What POST /api/tools calls it by.")
    tier: TierName
    server: str = Field(description="The agent's class, `n8n`, or the MCP server's name.")
    tool: str = Field(description="Its name there.")
    description: str
    input_schema: dict[str, Any] = Field(description="JSON schema of its arguments.")
    read_only: bool | None = Field(
        default=None, description="What its server claims; null where it says nothing."
    )
    offered: bool = Field(
        description="Whether the model sees it now; it has to search for the others."
    )


class ToolsList(_Frozen):
    tools: list[ToolSummary]
    failed: dict[str, str] = Field(
        description="Sources that could not be listed, each with the reason."
    )


class FoundList(_Frozen):
    found: int = Field(description="How many match; `tools` has the best of them, best first.")
    tools: list[ToolSummary]


class CallResult(_Frozen):
    name: str
    tier: TierName
    server: str
    call_id: str = Field(description="By which the room's events tell of this call.")
    duration_ms: int
    result: Any = Field(description="A JSON value; redacted as the model's is, but not shortened.")
    truncated: bool = Field(description="Whether `result` is a text, cut, as there was too much.")
    spoken: str | None = Field(
        default=None,
        description="What the tool's author would have a person hear. Nothing was said aloud.",
    )


class ListAnswer(ToolsList):
    told: Literal["tools"] = "tools"


class FoundAnswer(FoundList):
    told: Literal["found"] = "found"


class CalledAnswer(CallResult):
    told: Literal["called"] = "called"


class NotDone(_Frozen):
    """The call ended otherwise, or never began."""

    told: Literal["not_done"] = "not_done"
    kind: FailureKind
    message: str
    valid_names: list[str] = []


ToolsRequest: TypeAlias = ListTools | FindTools | CallTool
ToolsAnswer: TypeAlias = ListAnswer | FoundAnswer | CalledAnswer | NotDone

_REQUEST: Final[TypeAdapter[ToolsRequest]] = TypeAdapter(
    Annotated[ToolsRequest, Field(discriminator="ask")]
)
_ANSWER: Final[TypeAdapter[ToolsAnswer]] = TypeAdapter(
    Annotated[ToolsAnswer, Field(discriminator="told")]
)


def read_request(text: str) -> ToolsRequest:
    """
    Raises:
        ValueError: it is no request, or one of another version.
    """
    return _REQUEST.validate_json(text)


def read_tools_answer(text: str) -> ToolsAnswer:
    """
    Raises:
        ValueError: it is no answer, or one of another version.
    """
    return _ANSWER.validate_json(text)
