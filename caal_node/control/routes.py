"""The paths of the control API, each with what it stands for in the OpenAPI document.

Bodies are read by hand (with a cap and a deadline, and by whatever content type), so FastAPI does
not know of them by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from caal_node.control.agent_client import CHANGE_S, TOOLS_S, ask_agent
from caal_node.control.api_models import (
    CallBody,
    CallResponse,
    ErrorResponse,
    ListResponse,
    ModelBody,
    ModelResponse,
    ReloadBody,
    ReloadResponse,
    RoomQuery,
    SearchBody,
    SearchResponse,
)
from caal_node.control.messages import (
    AgentAnswer,
    AgentRequest,
    CallAnswer,
    CallFailure,
    CallTool,
    FailureKind,
    FindAnswer,
    FindTools,
    ListAnswer,
    ListTools,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
)
from caal_node.control.request_parsing import RequestRefused, read_body
from caal_node.control.rooms import RoomServer, choose_room

MAX_CALL_BYTES: Final = 1024 * 1024
"""The body of a call may hold what an MCP server may be sent at most."""
_CALL_STATUS: Final[dict[FailureKind, int]] = {
    "unknown_tool": 404,
    "invalid_arguments": 422,
    "refused": 403,
    "timeout": 504,
    "unavailable": 503,
    "tool_error": 502,
    "error": 502,
}
_DESCRIPTIONS: Final[Mapping[int, str]] = {
    400: "The body was broken off.",
    401: "The token is missing or wrong.",
    403: "The agent's policy does not allow this call.",
    404: "There is no such room or tool, or no room is live.",
    408: "The body did not come in time.",
    409: "Several rooms are live; name one.",
    413: "The body is too large.",
    422: "The body, the query or the tool's arguments are not what they should be.",
    502: "The agent or the tool answered with an error, or LiveKit does not take the keys.",
    503: "LiveKit or the tool's server cannot be reached, or the agent has too much to do.",
    504: "There is no agent in the room, or agent or tool did not answer in time.",
}
_EVERY_PATH: Final = (401, 404, 409, 422, 502, 503, 504)


def _errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return a path's error responses; `more` are the statuses that not every path has."""
    statuses = sorted((*_EVERY_PATH, *more))
    return {
        status: {"model": ErrorResponse, "description": _DESCRIPTIONS[status]}
        for status in statuses
    }


def _body(kind: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a path that reads a body of this kind."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}


def control_routes(rooms: RoomServer) -> APIRouter:
    """Return the paths that change an agent; the including application says who may use them."""
    router = APIRouter(tags=["control"])
    statuses = _errors(400, 408, 413)

    @router.post(
        "/reload-tools", responses=statuses, openapi_extra=_body(ReloadBody, required=False)
    )
    async def reload_tools(request: Request) -> ReloadResponse:
        """Have a room's agent list its tools anew; its conversation goes on."""
        body = await read_body(request, ReloadBody)
        room = await choose_room(rooms, body.room_name)
        reload = ReloadRequest(tool_name=body.tool_name, message=body.message)
        report = await _ask(rooms, room, reload, ReloadReport, CHANGE_S)
        return ReloadResponse(status="reloaded", room_name=room, **report)

    @router.post("/model", responses=statuses, openapi_extra=_body(ModelBody))
    async def model(request: Request) -> ModelResponse:
        """Have a room's agent ask another model from its next reply on."""
        body = await read_body(request, ModelBody)
        room = await choose_room(rooms, body.room_name)
        change = ModelRequest(model=body.model, api=body.api, base_url=body.base_url)
        report = await _ask(rooms, room, change, ModelReport, CHANGE_S)
        return ModelResponse(status="changed", room_name=room, **report)

    _ = reload_tools, model  # registered by their decorators
    return router


def tool_routes(rooms: RoomServer) -> APIRouter:
    """Return the paths of the Tools API; the including application says who may use them."""
    router = APIRouter(prefix="/api", tags=["tools"])

    @router.get("/tools", responses=_errors())
    async def list_tools(query: Annotated[RoomQuery, Query()]) -> ListResponse:
        """Every tool of the room's agent, tier by tier, also those its model has to search for."""
        room = await choose_room(rooms, query.room_name)
        answer = await _ask(rooms, room, ListTools(), ListAnswer, TOOLS_S)
        return ListResponse(status="ok", room_name=room, **answer)

    @router.post("/tools", responses=_errors(400, 403, 408, 413), openapi_extra=_body(CallBody))
    async def call_tool(request: Request) -> CallResponse:
        """Call one tool as the agent's model would: same policy, checks, order and deadlines.

        People in the room are told of it as of any call, by an id that begins with `api_`; nothing
        sounds and nothing is said. A call is made once at most.
        """
        body = await read_body(request, CallBody, MAX_CALL_BYTES)
        room = await choose_room(rooms, body.room_name)
        call = CallTool(name=body.name, arguments=body.arguments)
        answer = await _ask(rooms, room, call, CallAnswer, TOOLS_S)
        return CallResponse(status="called", room_name=room, **answer)

    @router.post("/tools/search", responses=_errors(400, 408, 413), openapi_extra=_body(SearchBody))
    async def search_tools(request: Request) -> SearchResponse:
        """Find tools by words or names, ranked as for the agent's own model, over all tiers."""
        body = await read_body(request, SearchBody)
        room = await choose_room(rooms, body.room_name)
        search = FindTools(patterns=tuple(body.patterns or [body.query]), limit=body.limit)
        answer = await _ask(rooms, room, search, FindAnswer, TOOLS_S)
        return SearchResponse(status="ok", room_name=room, **answer)

    _ = list_tools, call_tool, search_tools  # registered by their decorators
    return router


async def _ask(
    rooms: RoomServer,
    room: str,
    request: AgentRequest,
    answer_type: type[AgentAnswer],
    deadline_s: float,
) -> dict[str, Any]:
    """Return the fields of the agent's answer.

    Raises:
        RequestRefused: a tool gave no result; the model would read the same words.
        ControlError: as `ask_agent`.
    """
    answer = await ask_agent(rooms, room, request, answer_type, deadline_s)
    if isinstance(answer, CallFailure):
        status = _CALL_STATUS[answer.kind]
        raise RequestRefused(status, answer.message, answer.kind, answer.valid_names)
    return {name: value for name, value in answer if name != "answer"}
