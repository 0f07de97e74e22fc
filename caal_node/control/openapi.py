"""How the paths of the control API stand in its OpenAPI document.

Bodies are read by hand (with a cap and a deadline, and by whatever content type), so FastAPI does
not know of them by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi.security import HTTPBearer
from pydantic import BaseModel

from caal_node.control.api_models import ErrorBody

BEARER: Final = HTTPBearer(
    auto_error=False, description="CAAL_CONTROL_TOKEN, as the control process has it."
)
"""Says in the document that a token is needed; `reading.gate` is what checks it."""
_WHY: Final[Mapping[int, str]] = {
    400: "The body was broken off.",
    401: "The token is missing or wrong.",
    403: "The agent's policy does not allow this call.",
    404: "There is no such room or tool, or no room is live.",
    405: "This path has other methods; the header Allow names them.",
    408: "The body did not come in time.",
    409: "Several rooms are live; name one.",
    413: "The body is too large.",
    422: "The body, the query or the tool's arguments are not what they should be.",
    502: "The agent or the tool answered with an error, or LiveKit does not take the keys.",
    503: "LiveKit or the tool's server cannot be reached, or the agent has too much to do.",
    504: "There is no agent in the room, or agent or tool did not answer in time.",
}
_ALWAYS: Final = (401, 404, 409, 422, 502, 503, 504)


def errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a path; `more` are the statuses that not every path has."""
    statuses = sorted((*_ALWAYS, *more))
    return {status: {"model": ErrorBody, "description": _WHY[status]} for status in statuses}


def takes(kind: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """`openapi_extra` of a path that reads a body of this kind."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}
