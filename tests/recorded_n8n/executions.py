"""The records that n8n keeps of runs: `GET /api/v1/executions`.

executions.json has one record as n8n gives it (`envelope`, of a run that failed after its answer)
and what the run of `fails_respond_node` left (`resultData`). A replayed failure gets both, with its
own workflow, request and time in them; a success gets the envelope alone.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from n8n.core.json_values import mapping, mappings
from tests.recorded_n8n.loopback import LoopbackRequest

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
        result = _recorded()["resultData"]
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
            **_recorded()["envelope"],
            "id": str(self._last_id),
            "workflowId": workflow_id,
            "startedAt": _iso(stopped - timedelta(milliseconds=took_ms)),
            "stoppedAt": _iso(stopped),
            **fields,
        }
        self._runs.appendleft(run)


def _recorded() -> dict[str, Any]:
    return json.loads(_text())


@cache
def _text() -> str:
    return Path(__file__).with_name("executions.json").read_text("utf-8")


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
