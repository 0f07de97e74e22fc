"""What the control API answers, as its OpenAPI document has it: for the API and for its clients.

They are beside `http_api`, as a client needs no FastAPI.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, Field

from caal_node.control.messages import CallResult, FailureKind, SearchResult, ToolList
from caal_node.core.events import AnnouncementStatus, NotSaid


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
