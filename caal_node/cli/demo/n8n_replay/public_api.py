"""The public API of the replayed instance, as far as it tells of workflows and of runs.

executions.json has one record as n8n gives it (`envelope`, of a run that failed after its answer)
and what the run of `fails_respond_node` left (`resultData`). A replayed failure gets both, with its
own workflow, request and time in them; a success gets the envelope alone.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from caal_node.cli.demo.n8n_replay.instance import ReplayedInstance
from caal_node.cli.demo.n8n_replay.loopback import LoopbackRequest, LoopbackResponse, json_response
from caal_node.cli.demo.n8n_replay.recordings import read_recording
from n8n.core.json_values import mapping, mappings

API_KEY: Final = "recorded-api-key"
API_PREFIX: Final = "/api/v1/"
MAX_PAGE: Final = 250
DEFAULT_PAGE: Final = 100
RECORDED_FAILURES: Final = frozenset(("fails_respond_node", "fails_last_node"))
"""Workflows that stop with the recorded error, by their webhooks' paths. Of the other failures no
record was kept, and none is made up."""
MAX_RUNS: Final = 50
_ONLY_WITH_DATA: Final = ("data", "storedAt", "jsonSizeBytes", "workflowVersionId", "customData")


class ReplayedExecutions:
    """The runs of this replay, the latest first."""

    def __init__(self) -> None:
        self._runs: deque[dict[str, Any]] = deque(maxlen=MAX_RUNS)
        self._last_id = 100

    def add_failure(self, workflow_id: str, request: LoopbackRequest) -> None:
        result = read_recording("executions.json")["resultData"]
        (run,) = mappings(result["runData"]["Webhook"])
        ((item,),) = mapping(run["data"])["main"]
        body: Any = json.loads(request.body) if request.body else {}
        item["json"] |= {"headers": request.headers, "query": request.query, "body": body}
        self._add(workflow_id, 0, {"data": {"version": 1, "resultData": result}})

    def add_success(self, workflow_id: str, took_ms: float) -> None:
        self._add(workflow_id, took_ms, {"finished": True, "status": "success"})

    def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the answer of the public API."""
        workflow_id, status = query.get("workflowId"), query.get("status")
        found = [
            run
            for run in self._runs
            if workflow_id in (None, run["workflowId"]) and status in (None, run["status"])
        ]
        if query.get("includeData") != "true":
            found = [{k: v for k, v in r.items() if k not in _ONLY_WITH_DATA} for r in found]
        return {"data": found[: int(query.get("limit", "100"))], "nextCursor": None}

    def _add(self, workflow_id: str, took_ms: float, fields: Mapping[str, Any]) -> None:
        self._last_id += 1
        stopped = datetime.now(UTC)
        run = {
            **read_recording("executions.json")["envelope"],
            "id": str(self._last_id),
            "workflowId": workflow_id,
            "startedAt": _iso(stopped - timedelta(milliseconds=took_ms)),
            "stoppedAt": _iso(stopped),
            **fields,
        }
        self._runs.appendleft(run)


class ReplayedPublicApi:
    def __init__(self, instance: ReplayedInstance) -> None:
        self._instance = instance
        self.executions = ReplayedExecutions()

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
            return json_response(200, self.executions.page(request.query))
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


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
