"""The Tools API: which tools a room's agent has, a search among them, and calls."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Query, Request

from caal_node.control.agent_client import ask_tools
from caal_node.control.api_models import (
    CallBody,
    CalledTold,
    FoundTold,
    RoomQuery,
    SearchBody,
    ToolsTold,
)
from caal_node.control.messages import (
    CalledAnswer,
    CallTool,
    FailureKind,
    FindTools,
    FoundAnswer,
    ListAnswer,
    ListTools,
    NotDone,
)
from caal_node.control.openapi import errors, takes
from caal_node.control.request_parsing import RequestRefused, read
from caal_node.control.rooms import RoomsPort, choose

MAX_CALL_BYTES: Final = 1024 * 1024
"""Of the body of a call: what an MCP server may be sent at most."""
_STATUS: Final[dict[FailureKind, int]] = {
    "unknown_tool": 404,
    "invalid_arguments": 422,
    "refused": 403,
    "timeout": 504,
    "unavailable": 503,
    "tool_error": 502,
    "error": 502,
}

T = TypeVar("T", ListAnswer, FoundAnswer, CalledAnswer)


def tool_paths(rooms: RoomsPort) -> APIRouter:
    """The three paths; who may use them is the including application's to say."""
    router = APIRouter(prefix="/api", tags=["tools"])

    @router.get("/tools", responses=errors())
    async def list_tools(query: Annotated[RoomQuery, Query()]) -> ToolsTold:
        """Every tool of the room's agent, tier by tier, also those its model has to search for."""
        room = await choose(rooms, query.room_name)
        told = _done(await ask_tools(rooms, room, ListTools(), ListAnswer))
        return ToolsTold(status="ok", room_name=room, tools=told.tools, failed=told.failed)

    @router.post("/tools", responses=errors(400, 403, 408, 413), openapi_extra=takes(CallBody))
    async def call_tool(request: Request) -> CalledTold:
        """Call one tool as the agent's model would: same policy, checks, order and deadlines.

        People in the room are told of it as of any call, by an id that begins with `api_`; nothing
        sounds and nothing is said. A call is made once at most.
        """
        body = await read(request, CallBody, MAX_CALL_BYTES)
        room = await choose(rooms, body.room_name)
        asked = CallTool(name=body.name, arguments=body.arguments)
        told = _done(await ask_tools(rooms, room, asked, CalledAnswer))
        return CalledTold(status="called", room_name=room, **told.model_dump(exclude={"told"}))

    @router.post("/tools/search", responses=errors(400, 408, 413), openapi_extra=takes(SearchBody))
    async def search_tools(request: Request) -> FoundTold:
        """Find tools by words or names, ranked as for the agent's own model, over all tiers."""
        body = await read(request, SearchBody)
        room = await choose(rooms, body.room_name)
        asked = FindTools(patterns=body.asked, limit=body.limit)
        told = _done(await ask_tools(rooms, room, asked, FoundAnswer))
        return FoundTold(status="ok", room_name=room, found=told.found, tools=told.tools)

    _ = list_tools, call_tool, search_tools  # registered by their decorators
    return router


def _done(told: T | NotDone) -> T:
    """
    Raises:
        Refused: a tool gave no result; the model would be told the same.
    """
    if isinstance(told, NotDone):
        raise RequestRefused(_STATUS[told.kind], told.message, told.kind, told.valid_names)
    return told
