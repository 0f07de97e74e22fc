"""The record that n8n keeps of a failed run: `GET /api/v1/executions`.

executions.json has one record as the public API gives it (`envelope`, of a run that failed after
its answer) and what the run of `fails_respond_node` left (`resultData`). A replayed failure gets
both, with its own workflow, request and time in them.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from n8n.replay.loopback import Request
from n8n.shapes import mapping, mappings

RECORDED: Final = frozenset(("fails_respond_node", "fails_last_node"))
"""Workflows that stop with the recorded error, by their webhooks' paths. Of the other failures no
record was kept, and none is made up."""
KEPT: Final = 50


class FailedRuns:
    """Failures of this replay, the latest first."""

    def __init__(self) -> None:
        self._runs: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._last_id = 100

    def note(self, workflow_id: str, request: Request) -> None:
        self._last_id += 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        recorded = copy.deepcopy(_recorded())
        result = recorded["resultData"]
        (run,) = mappings(result["runData"]["Webhook"])
        ((item,),) = mapping(run["data"])["main"]
        item["json"] |= {
            "headers": dict(request.headers),
            "query": request.query,
            "body": json.loads(request.body) if request.body else {},
        }
        envelope = recorded["envelope"]
        envelope |= {"id": str(self._last_id), "workflowId": workflow_id}
        envelope |= {"startedAt": now, "stoppedAt": now}
        self._runs.appendleft({**envelope, "data": {"version": 1, "resultData": result}})

    def listed(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The answer of the public API."""
        wanted = query.get("workflowId")
        found = [run for run in self._runs if wanted in (None, run["workflowId"])]
        found = found if query.get("status", "error") == "error" else []
        if query.get("includeData") != "true":
            found = [{k: v for k, v in run.items() if k != "data"} for run in found]
        return {"data": found[: int(query.get("limit", "100"))], "nextCursor": None}


@cache
def _recorded() -> dict[str, Any]:
    return json.loads(
        (resources.files("n8n") / "recordings" / "executions.json").read_text("utf-8")
    )
