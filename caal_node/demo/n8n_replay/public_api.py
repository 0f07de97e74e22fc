"""The public API of the replayed instance, as far as it tells of workflows and of runs."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final

from caal_node.demo.n8n_replay.executions import Runs
from caal_node.demo.n8n_replay.instance import Instance
from caal_node.demo.n8n_replay.loopback import Request, Response, json_response
from n8n.core.json_values import mapping

API_KEY: Final = "recorded-api-key"
PREFIX: Final = "/api/v1/"
MAX_LIMIT: Final = 250
DEFAULT_LIMIT: Final = 100


class PublicApi:
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.runs = Runs()

    def answer(self, request: Request) -> Response:
        """To a GET below PREFIX."""
        place = request.path.removeprefix(PREFIX)
        if place not in ("workflows", "executions") and not place.startswith("workflows/"):
            return json_response(404, {"message": "not found"})
        if request.header("x-n8n-api-key") != API_KEY:
            return json_response(401, {"message": "Unauthorized"})
        if (wrong := _wrong(request)) is not None:
            return json_response(400, {"message": wrong})
        if place == "workflows":
            return self._listed(request)
        if place == "executions":
            return json_response(200, self.runs.listed(request.query))
        workflow_id, _, version = place.removeprefix("workflows/").partition("/")
        found = self._instance.workflow(workflow_id)
        if found is None or version:
            said = "Version not found" if found else "Not Found"
            return json_response(404, {"message": said})
        return json_response(200, found)

    def _listed(self, request: Request) -> Response:
        limit = min(int(request.query.get("limit", "0")) or DEFAULT_LIMIT, MAX_LIMIT)
        with_pins = request.query.get("excludePinnedData") != "true"
        offset = _offset(request.query.get("cursor")) or 0
        found = self._instance.listing(
            active_only=request.query.get("active") == "true", with_pins=with_pins
        )
        more = offset + limit < len(found)
        cursor = {"limit": limit, "offset": offset + limit}
        page = {
            "data": found[offset : offset + limit],
            "nextCursor": base64.b64encode(json.dumps(cursor).encode()).decode() if more else None,
        }
        return json_response(200, page)


def _wrong(request: Request) -> str | None:
    """What n8n says of a query that it does not take."""
    limit, active = request.query.get("limit", "0"), request.query.get("active", "true")
    if not limit.isdecimal():
        return "request/query/limit Param `limit` must be a valid integer"
    if active not in ("true", "false"):
        wanted = "Expected 'true' | 'false'"
        return f"request/query/active Invalid enum value. {wanted}, received '{active}'"
    if _offset(request.query.get("cursor")) is None:
        return "An invalid cursor was provided"
    return None


def _offset(cursor: str | None) -> int | None:
    if cursor is None:
        return 0
    try:
        return int(mapping(json.loads(base64.b64decode(cursor))).get("offset", 0))
    except (ValueError, binascii.Error):
        return None
