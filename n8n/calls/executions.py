"""Why a run failed: n8n's webhook says `Error in workflow`, its record of the run says the rest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from n8n.core.api_client import Api, read_json
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings, parse_json, parse_long_json, sequence
from n8n.core.workflow_tool import WorkflowTool

LOOKED_AT: Final = 3
"""Latest failed runs of the workflow: another person's may have come in between."""
MAX_RECORD_BYTES: Final = 1024 * 1024
"""Of their records, which hold all data of the runs. Where they are larger, nothing is told."""
RUNS: Final = 100
"""Latest runs of the instance that are looked at for slow ones."""
TRIES: Final = 6
BETWEEN_TRIES_S: Final = 0.25
"""n8n may answer the webhook before it has written the record, above all where it streams."""
LOOK_S: Final = 2.0
"""For all tries. A person waits; the cause is worth no more."""
CLOCK_SLACK: Final = timedelta(seconds=3)
"""The Date header has whole seconds, and counts when the reply was made."""
MAX_CAUSE_CHARS: Final = 200
_URL: Final = re.compile(r"(https?://)(?:[^\s/@]{1,200}@)?([^\s/?#]{1,200})[^\s\"']{0,500}")


@dataclass(frozen=True, slots=True)
class Sent:
    """One call, as far as it helps to find its run."""

    body: bytes | None
    answered_at: str | None
    """The reply's Date header: n8n's own clock."""
    took_s: float


@dataclass(frozen=True, slots=True)
class Cause:
    message: str
    """One line, without a stack trace; of addresses only the host."""
    node: str | None
    """The name of the node that failed."""


async def cause_of(api: Api, tool: WorkflowTool, sent: Sent, *, tries: int = TRIES) -> Cause | None:
    """The cause of the failed run that `sent` began; None where n8n does not tell it."""
    for attempt in range(tries):
        if attempt:
            await asyncio.sleep(BETWEEN_TRIES_S)
        try:
            records = await _failed_runs(api, tool.workflow_id)
        except N8nError:
            return None  # a key that may not read executions, an n8n that is down by now
        for record in records:
            if _is_of(record, sent):
                return _cause(record)
    return None


async def slowest_runs(api: Api) -> dict[str, float]:
    """Workflow id -> seconds of its slowest run among the latest; {} where none can be read."""
    query = {"status": "success", "limit": str(RUNS), "includeData": "false"}
    try:
        reply = await api.ask("GET", "/api/v1/executions", params=query, max_bytes=MAX_RECORD_BYTES)
        records = mappings(mapping(read_json(api, reply.body)).get("data"))
    except N8nError:
        return {}
    took: dict[str, float] = {}
    for record in records:
        began, ended = _time(record.get("startedAt")), _time(record.get("stoppedAt"))
        if began is not None and ended is not None and record.get("mode") == "webhook":
            key = str(record.get("workflowId"))
            took[key] = max(took.get(key, 0.0), (ended - began).total_seconds())
    return took


async def _failed_runs(api: Api, workflow_id: str) -> list[Mapping[str, Any]]:
    query = {
        "workflowId": workflow_id,
        "status": "error",
        "limit": str(LOOKED_AT),
        "includeData": "true",
    }
    reply = await api.ask("GET", "/api/v1/executions", params=query, max_bytes=MAX_RECORD_BYTES)
    try:
        text = reply.body.decode("utf-8", errors="replace")
        found = mapping(await asyncio.to_thread(parse_long_json, text))
    except (ValueError, RecursionError):
        raise api.strange("no JSON") from None
    return [r for r in mappings(found.get("data")) if str(r.get("workflowId")) == workflow_id]


def _is_of(record: Mapping[str, Any], sent: Sent) -> bool:
    stopped, answered = _time(record.get("stoppedAt")), _date(sent.answered_at)
    if stopped is not None and answered is not None:
        began = answered - timedelta(seconds=sent.took_s) - CLOCK_SLACK
        if not began <= stopped <= answered + CLOCK_SLACK:
            return False
    runs = mapping(mapping(mapping(record.get("data")).get("resultData")).get("runData"))
    bodies = [mapping(request).get("body") for request in _requests(runs)]
    # Without saved data, time alone has to tell.
    return not bodies or any(body == _body(sent) for body in bodies)


def _requests(runs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The requests that webhook nodes took in: items with a body and an address."""
    found: list[Mapping[str, Any]] = []
    for node_runs in runs.values():
        for run in mappings(node_runs)[:1]:
            outputs = sequence(mapping(run.get("data")).get("main"))
            for item in mappings(next(iter(outputs), None))[:1]:
                request = mapping(item.get("json"))
                if "body" in request and "headers" in request:
                    found.append(request)
    return found


def _body(sent: Sent) -> Any:
    try:
        return parse_json(sent.body) if sent.body else {}
    except (ValueError, RecursionError):
        return None


def _cause(record: Mapping[str, Any]) -> Cause | None:
    result = mapping(mapping(record.get("data")).get("resultData"))
    error = mapping(result.get("error"))
    told = str(error.get("message") or "").strip()
    if not told:
        return None
    described = str(error.get("description") or "").strip()
    if described and described != told and len(told) < MAX_CAUSE_CHARS // 2:
        told = f"{told.rstrip('.')}: {described}"
    line = _URL.sub(r"\1\2", told.splitlines()[0]).strip()
    node = mapping(error.get("node")).get("name") or result.get("lastNodeExecuted")
    line = line if len(line) <= MAX_CAUSE_CHARS else line[: MAX_CAUSE_CHARS - 1] + "…"
    return Cause(line, str(node) if node else None)


def _time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _date(value: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(value or "")
    except (ValueError, TypeError):
        return None
