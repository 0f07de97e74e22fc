"""The records that n8n keeps of runs: `GET /api/v1/executions`.

executions.json has one record as the public API gives it (`envelope`, of a run that failed after
its answer) and what the run of `fails_respond_node` left (`resultData`). A replayed failure gets
both, with its own workflow, request and time in them; a success gets the envelope alone.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Final

from caal_node.demo.n8n_replay.loopback import Request
from n8n.core.json_values import mapping, mappings

RECORDED: Final = frozenset(("fails_respond_node", "fails_last_node"))
"""Workflows that stop with the recorded error, by their webhooks' paths. Of the other failures no
record was kept, and none is made up."""
KEPT: Final = 50
_ONLY_WITH_DATA: Final = ("data", "storedAt", "jsonSizeBytes", "workflowVersionId", "customData")


class Runs:
    """Of this replay, the latest first."""

    def __init__(self) -> None:
        self._runs: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._last_id = 100

    def failed(self, workflow_id: str, request: Request) -> None:
        recorded = copy.deepcopy(_recorded())
        result = recorded["resultData"]
        (run,) = mappings(result["runData"]["Webhook"])
        ((item,),) = mapping(run["data"])["main"]
        item["json"] |= {
            "headers": dict(request.headers),
            "query": request.query,
            "body": json.loads(request.body) if request.body else {},
        }
        self._note(workflow_id, 0, {"data": {"version": 1, "resultData": result}})

    def succeeded(self, workflow_id: str, took_ms: float) -> None:
        self._note(workflow_id, took_ms, {"finished": True, "status": "success"})

    def listed(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The answer of the public API."""
        workflow_id, status = query.get("workflowId"), query.get("status")
        found = [
            run
            for run in self._runs
            if workflow_id in (None, run["workflowId"]) and status in (None, run["status"])
        ]
        if query.get("includeData") != "true":
            found = [{k: v for k, v in r.items() if k not in _ONLY_WITH_DATA} for r in found]
        return {"data": found[: int(query.get("limit", "100"))], "nextCursor": None}

    def _note(self, workflow_id: str, took_ms: float, more: Mapping[str, Any]) -> None:
        self._last_id += 1
        ended = datetime.now(UTC)
        began = ended - timedelta(milliseconds=took_ms)
        told = {"id": str(self._last_id), "workflowId": workflow_id}
        told |= {"startedAt": _written(began), "stoppedAt": _written(ended)}
        self._runs.appendleft({**_recorded()["envelope"], **told, **more})


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _recorded() -> dict[str, Any]:
    return json.loads(
        (resources.files(__package__) / "recordings" / "executions.json").read_text("utf-8")
    )
