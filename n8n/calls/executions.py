"""Why a run failed: n8n's webhook says `Error in workflow`, its record of the run says the rest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from n8n.calls.call import AnsweredCall
from n8n.core.api_client import ApiClient
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings, parse_json, sequence
from n8n.core.text import clip
from n8n.core.workflow_tool import WorkflowTool

LOOKED_AT: Final = 3
"""Latest failed runs of the workflow: another person's may have come in between."""
MAX_RECORDS_BYTES: Final = 1024 * 1024
"""The most that is read of records, which hold all data of the runs. Of larger ones nothing is
told."""
LATEST_RUNS: Final = 100
"""Latest runs of the instance that are looked at for slow ones."""
TRIES: Final = 6
BETWEEN_TRIES_S: Final = 0.25
"""n8n may answer the webhook before it has written the record, above all if it streams."""
LOOKUP_S: Final = 2.0
"""The time for all tries. A person waits; the cause is worth no more."""
CLOCK_SLACK: Final = timedelta(seconds=3)
"""The Date header has whole seconds, and counts when the reply was made."""
MAX_CAUSE_CHARS: Final = 200
MAX_TEXT_CHARS: Final = 2_000
"""How much of an error's own texts is looked at."""
_URL: Final = re.compile(r"(https?://)(?:[^\s/@]{1,200}@)?([^\s/?#]{1,200})[^\s\"']{0,500}")


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Why a run failed."""

    message: str
    """One line without a stack trace, and of addresses only the host."""
    node: str | None
    """The name of the node that failed."""


async def cause_of(
    api: ApiClient, tool: WorkflowTool, call: AnsweredCall, *, tries: int = TRIES
) -> FailureCause | None:
    """Return the cause of the failed run that a call began; None if n8n does not tell it."""
    for attempt in range(tries):
        if attempt:
            await asyncio.sleep(BETWEEN_TRIES_S)
        records = await _records(
            api, workflowId=tool.workflow_id, status="error", limit=LOOKED_AT, includeData="true"
        )
        if records is None:
            return None
        for record in records[:LOOKED_AT]:
            # A record may hold a mebibyte of other runs' data.
            if await asyncio.to_thread(_belongs_to, record, tool, call):
                return _read_cause(record)
    return None


async def slowest_runs(api: ApiClient) -> dict[str, float]:
    """Return the seconds of each workflow's slowest run among the latest, by its id."""
    records = await _records(api, status="success", limit=LATEST_RUNS, includeData="false")
    took: dict[str, float] = {}
    for record in (records or ())[:LATEST_RUNS]:
        began, ended = _iso_time(record.get("startedAt")), _iso_time(record.get("stoppedAt"))
        if began is not None and ended is not None and record.get("mode") == "webhook":
            key = str(record.get("workflowId"))
            took[key] = max(took.get(key, 0.0), (ended - began).total_seconds())
    return took


async def _records(api: ApiClient, **query: str | int) -> list[Mapping[str, Any]] | None:
    """Return records of runs; None for a key that may not read them, or an n8n that is down."""
    params = {name: str(value) for name, value in query.items()}
    try:
        answer = await api.ask_json(
            "GET", "/api/v1/executions", params=params, max_bytes=MAX_RECORDS_BYTES
        )
    except N8nError:
        return None
    return mappings(mapping(answer).get("data"))


def _belongs_to(record: Mapping[str, Any], tool: WorkflowTool, call: AnsweredCall) -> bool:
    if str(record.get("workflowId")) != tool.workflow_id:
        return False
    stopped, answered = _iso_time(record.get("stoppedAt")), _http_time(call.answered_at)
    if stopped is not None and answered is not None:
        began = answered - timedelta(seconds=call.took_s) - CLOCK_SLACK
        if not began <= stopped <= answered + CLOCK_SLACK:
            return False
    bodies = _request_bodies(record)
    # Without saved data, time alone has to tell.
    return not bodies or any(body == _body(call) for body in bodies)


def _request_bodies(record: Mapping[str, Any]) -> list[Any]:
    """Return the bodies of the requests that webhook nodes took in."""
    bodies: list[Any] = []
    for node_runs in mapping(_result_data(record).get("runData")).values():
        for run in mappings(node_runs)[:1]:
            outputs = sequence(mapping(run.get("data")).get("main"))
            for item in mappings(next(iter(outputs), None))[:1]:
                request = mapping(item.get("json"))
                if "body" in request and "headers" in request:
                    bodies.append(mapping(request).get("body"))
    return bodies


def _body(call: AnsweredCall) -> Any:
    try:
        return parse_json(call.body) if call.body else {}
    except (ValueError, RecursionError):
        return None


def _read_cause(record: Mapping[str, Any]) -> FailureCause | None:
    result = _result_data(record)
    error = mapping(result.get("error"))
    message = str(error.get("message") or "")[:MAX_TEXT_CHARS].strip()
    if not message:
        return None
    description = str(error.get("description") or "")[:MAX_TEXT_CHARS].strip()
    if description and description != message and len(message) < MAX_CAUSE_CHARS // 2:
        message = f"{message.rstrip('.')}: {description}"
    line = _URL.sub(r"\1\2", message.splitlines()[0]).strip()
    node = mapping(error.get("node")).get("name") or result.get("lastNodeExecuted")
    return FailureCause(clip(line, MAX_CAUSE_CHARS), str(node) if node else None)


def _result_data(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(record.get("data")).get("resultData"))


def _iso_time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _http_time(value: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(value or "")
    except (ValueError, TypeError):
        return None
