"""The public API of the replayed instance, as far as it tells of workflows and of runs."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from n8n.core.json_values import mapping
from tests.recorded_n8n.executions import ReplayedExecutions
from tests.recorded_n8n.instance import RecordedInstance
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse, json_response

API_KEY: Final = "recorded-api-key"
API_PREFIX: Final = "/api/v1/"
MAX_PAGE: Final = 250
DEFAULT_PAGE: Final = 100


class ReplayedPublicApi:
    def __init__(self, instance: RecordedInstance, executions: ReplayedExecutions) -> None:
        self._instance = instance
        self._executions = executions

    def answer(self, request: LoopbackRequest) -> LoopbackResponse:
        """Answer a GET below API_PREFIX."""
        resource, _, rest = request.path.removeprefix(API_PREFIX).partition("/")
        if resource not in ("workflows", "executions") or (resource == "executions" and rest):
            return json_response(404, {"message": "not found"})
        if request.headers.get("x-n8n-api-key") != API_KEY:
            return json_response(401, {"message": "Unauthorized"})
        if (problem := _problem(request.query)) is not None:
            return json_response(400, {"message": problem})
        if resource == "executions":
            return json_response(200, self._executions.page(request.query))
        if not rest:
            return json_response(200, self._page(request.query))
        workflow_id, _, version = rest.partition("/")
        found = next((w for w in self._instance.workflows() if w["id"] == workflow_id), None)
        if found is None or version:
            message = "Version not found" if found else "Not Found"
            return json_response(404, {"message": message})
        return json_response(200, found)

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        found = self._instance.workflows()
        if query.get("active") == "true":
            found = [w for w in found if w["active"]]
        if query.get("excludePinnedData") == "true":
            found = [{**w, "pinData": None} if w.get("pinData") else w for w in found]
        limit = min(int(query.get("limit", "0")) or DEFAULT_PAGE, MAX_PAGE)
        offset = _offset(query.get("cursor")) or 0
        cursor = None
        if (end := offset + limit) < len(found):
            cursor = base64.b64encode(json.dumps({"limit": limit, "offset": end}).encode()).decode()
        return {"data": found[offset:end], "nextCursor": cursor}


def _problem(query: Mapping[str, str]) -> str | None:
    """Return what n8n says of a query that it does not take."""
    limit, active = query.get("limit", "0"), query.get("active", "true")
    if not limit.isdecimal():
        return "request/query/limit Param `limit` must be a valid integer"
    if active not in ("true", "false"):
        wanted = "Expected 'true' | 'false'"
        return f"request/query/active Invalid enum value. {wanted}, received '{active}'"
    if _offset(query.get("cursor")) is None:
        return "An invalid cursor was provided"
    return None


def _offset(cursor: str | None) -> int | None:
    """Return where a page begins; None for a cursor that is none."""
    if cursor is None:
        return 0
    try:
        return int(mapping(json.loads(base64.b64decode(cursor))).get("offset", 0))
    except (ValueError, binascii.Error):
        return None
