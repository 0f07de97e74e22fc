"""What the control process asks of an agent, what the agent answers, and what the HTTP API gives.

Each request names itself by `ask`, each answer by `answer`. The answers' fields are also the
HTTP API's, and they describe themselves in its OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from caal_node.core.events import AnnouncementStatus, AnswerTo, NotSaid, Priority, TierName
from caal_node.core.tool_spec import Effect
from caal_node.policy.rule import Action

MAX_FOUND: Final = 100
"""A search gives at most this many tools."""
MAX_ANNOUNCEMENTS: Final = 8
"""One reload serves all who wait for it, but makes this many different announcements at most."""
MAX_SWITCHED: Final = 16
"""Checks that one request switches; there are fewer."""
DEFAULT_FOUND: Final = 10
"""A search gives this many tools where it does not say how many."""

FailureKind: TypeAlias = Literal[
    "unknown_tool",
    "invalid_arguments",
    "refused",
    "needs_confirmation",
    "timeout",
    "unavailable",
    "tool_error",
    "error",
]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Announcement(_Message):
    """What one caller of a reload wants said when it is done; nothing where both are None."""

    tool_name: str | None = None
    """This is the tool that is new, when the caller says so."""
    message: str | None = None
    """This sentence is said aloud when it is done, unless `tool_name` is not there."""


class ReloadRequest(_Message):
    """The agent is to list its tools anew, once for all whose announcements it brings."""

    ask: Literal["reload"] = "reload"
    announcements: tuple[Announcement, ...] = Field(default=(), max_length=MAX_ANNOUNCEMENTS)


class ModelRequest(_Message):
    """The agent is to ask another model from now on.

    No key travels, and of the addresses only those are taken that the agent's settings name.
    """

    ask: Literal["model"] = "model"
    model: str
    api: str | None = None
    """None keeps the wire format in use."""
    base_url: str | None = None
    """None is the settings' usual address of that wire format."""


class SayRequest(_Message):
    """The agent is to say these words aloud, when their priority allows it."""

    ask: Literal["say"] = "say"
    text: str
    priority: Priority = "normal"
    answer: AnswerTo = "model"


class SwitchRequest(_Message):
    """The agent is to switch these cues and checks in its conversation, and say how all are."""

    ask: Literal["switch"] = "switch"
    cues: bool | None = None
    checks: dict[str, bool] = Field(default={}, max_length=MAX_SWITCHED)


class ListTools(_Message):
    """The agent is to list all its tools."""

    ask: Literal["list"] = "list"


class FindTools(_Message):
    """The agent is to search its tools by words, or by names with `*`."""

    ask: Literal["find"] = "find"
    patterns: tuple[str, ...]
    limit: int = DEFAULT_FOUND


class CallTool(_Message):
    """The agent is to call one of its tools."""

    ask: Literal["call"] = "call"
    name: str
    arguments: dict[str, Any]
    confirmation: str = ""
    """The hash by which the agent has named this call; it says yes to it."""


class ToolSummary(_Message):
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
    effect: Effect = Field(
        default="write", description="What a call may do at worst, as the owner's policy sees it."
    )
    verdict: Action = Field(
        default="allow", description="What the policy says to a call of this API in this room."
    )


class ToolList(_Message):
    tools: list[ToolSummary]
    failed: dict[str, str] = Field(
        description="Sources that could not be listed, each with the reason."
    )


class SearchResult(_Message):
    found: int = Field(description="How many match; `tools` has the best of them, best first.")
    tools: list[ToolSummary]


class CallResult(_Message):
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


class ReloadReport(_Message):
    """The agent has listed its tools anew.

    The names are the tools' exposed names, in order; `failed` names the sources that did not
    answer, and tools that are held back; `new` what known MCP servers have added, whenever that
    was, until a person has accepted it; `faults` what cannot be read of the owner's rules, each
    with file, line and fix; `found` the exposed name of each tool that an announcement named, by
    the name it gave, where there is such a tool.
    """

    answer: Literal["reload"] = "reload"
    tool_count: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    found: dict[str, str] = {}


class ModelReport(_Message):
    """The agent asks this model now, in this wire format."""

    answer: Literal["model"] = "model"
    model: str
    api: str


class SayReport(_Message):
    """What became of the words."""

    answer: Literal["say"] = "say"
    status: AnnouncementStatus
    reason: NotSaid | None = None
    """Why they were not said."""
    words: str | None = None
    """The person's, where they have answered."""


class SwitchReport(_Message):
    """What is on now in this conversation."""

    answer: Literal["switch"] = "switch"
    cues: bool
    checks: dict[str, bool]


class ListAnswer(ToolList):
    answer: Literal["list"] = "list"


class FindAnswer(SearchResult):
    answer: Literal["find"] = "find"


class CallAnswer(CallResult):
    answer: Literal["call"] = "call"


class CallFailure(_Message):
    """The call failed, or never began."""

    answer: Literal["call_failure"] = "call_failure"
    kind: FailureKind
    message: str
    valid_names: list[str] = []
    question: str = ""
    """What a person would be asked, where the call needs a yes."""
    confirmation: str = ""
    """The hash that stands for the call that needs a yes."""


ToolsRequest: TypeAlias = ListTools | FindTools | CallTool
ToolsAnswer: TypeAlias = ListAnswer | FindAnswer | CallAnswer | CallFailure
AgentRequest: TypeAlias = ReloadRequest | ModelRequest | SayRequest | SwitchRequest | ToolsRequest
AgentAnswer: TypeAlias = ReloadReport | ModelReport | SayReport | SwitchReport | ToolsAnswer

AGENT_REQUEST: Final[TypeAdapter[AgentRequest]] = TypeAdapter(
    Annotated[AgentRequest, Field(discriminator="ask")]
)
"""`validate_json` reads a request, and raises ValueError for what another version has written."""
_AGENT_ANSWER: Final[TypeAdapter[AgentAnswer]] = TypeAdapter(
    Annotated[AgentAnswer, Field(discriminator="answer")]
)


def write_answer(answer: AgentAnswer) -> str:
    """Write an answer as one line, and one for each of its tools.

    So a catalogue is read tool by tool: read at once, 4 MB would hold every thread for 45 ms.
    """
    tools = answer.tools if isinstance(answer, ToolList | SearchResult) else []
    head = answer.model_copy(update={"tools": []}) if tools else answer
    return "\n".join([head.model_dump_json(), *(tool.model_dump_json() for tool in tools)])


def read_answer(text: str) -> AgentAnswer:
    """Read what `write_answer` has written.

    Raises:
        ValueError: another version has written it.
    """
    head, *lines = text.split("\n")
    answer = _AGENT_ANSWER.validate_json(head)
    tools = [ToolSummary.model_validate_json(line) for line in lines]
    return answer.model_copy(update={"tools": tools}) if tools else answer


def compare_tables(
    old: Mapping[str, str], new: Mapping[str, str], failed: Iterable[str] = ()
) -> ReloadReport:
    """Compare two tables of tools.

    Args:
        old: maps each exposed name to a fingerprint of what the model reads of that tool.
        new: the same, after the reload.
        failed: names the sources that could not be listed.
    """
    return ReloadReport(
        tool_count=len(new),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        failed=tuple(sorted(set(failed))),
    )


# What the HTTP API answers, as its OpenAPI document has it: for the API and for its clients.
#
# It is not in `http_api`, as a client needs no FastAPI.


class HealthResponse(BaseModel):
    status: Literal["ok"]
    version: str


class ReloadResponse(BaseModel):
    """Tools by their names, in order; `failed` holds the sources that did not answer, and tools
    that are held back, `new` what known MCP servers have added and nobody has accepted yet,
    `faults` what cannot be read of the owner's rules, each with file, line and fix; `policy` is
    then in `failed`.
    """

    status: Literal["reloaded"]
    room_name: str
    tool_count: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    failed: list[str]
    new: list[str]
    faults: list[str]
    tool_name: str | None = Field(
        description="The tool that was named, by its exact name where it is there."
    )
    found: bool | None = Field(
        description="Whether that tool is there now; null where none was named."
    )


class ReloadFailure(BaseModel):
    """A room whose agent did not reload."""

    status: Literal["error"]
    room_name: str
    detail: str


class ReloadsResponse(BaseModel):
    """Several rooms' results, in the order of the rooms, where none was named. `status` is `partly`
    where one of them failed.
    """

    status: Literal["reloaded", "partly"]
    rooms: list[ReloadResponse | ReloadFailure]


class ModelResponse(BaseModel):
    status: Literal["changed"]
    room_name: str
    model: str
    api: str


_REASON: Final = Field(default=None, description="Why it was not said; null where it was.")


class SayResponse(BaseModel):
    status: Literal["said", "not_said"]
    room_name: str
    reason: NotSaid | None = _REASON


class AnnounceResponse(BaseModel):
    """`answered` and `silence` are of a question, whose answer the caller gets."""

    status: AnnouncementStatus
    room_name: str
    reason: NotSaid | None = _REASON
    answer: str | None = Field(
        default=None, description="The person's words as they were heard, where they have answered."
    )


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
    """What went wrong, and how to fix it."""

    status: Literal["error"]
    detail: str
    kind: FailureKind | None = Field(default=None, description="Of a call that was not done.")
    valid_names: list[str] | None = Field(
        default=None, description="The nearest names, best first."
    )
    question: str | None = Field(
        default=None, description="What a person would be asked: the call needs a yes."
    )
    confirmation: str | None = Field(
        default=None, description="Sent with the same call, it says yes to exactly that."
    )
