"""One look at an instance: list, read the details, normalise, name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from n8n.api import Api
from n8n.errors import N8nError
from n8n.instance_mcp import ToolRefused, get_workflow, search_workflows
from n8n.names import assign
from n8n.normalise import Draft, excluded, normalise, title_of
from n8n.rest import list_active
from n8n.tool import Discovery, Skipped, SkipReason, WorkflowTool

PARALLEL_DETAILS = 6
"""Requests to the MCP server at a time: enough to hide its latency (about 50 ms), few enough to
leave a small machine its breath."""


@dataclass
class Known:
    """What one discovery leaves to the next."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Last seen details by workflow id. Only a stand-in while n8n takes no more requests:
    publishing a version changes nothing in a workflow's preview, not even updatedAt."""


async def discover_rest(api: Api, known: Known) -> Discovery:
    """By the public API. Raises N8nError."""
    workflows, notices = await list_active(api)
    tools, skipped = await _tools(workflows, known)
    return Discovery(tools, skipped, "rest", api.requests, notices)


async def discover_mcp(api: Api, known: Known) -> Discovery:
    """By the MCP server of the instance. Raises N8nError."""
    previews, notices = await search_workflows(api)
    skipped = [out for p in previews if (out := excluded(p)) is not None]
    wanted = [p for p in previews if excluded(p) is None]
    workflows, missed, stale = await _details(api, wanted, known)
    known.details = {str(w.get("id")): w for w in workflows}
    tools, unfit = await _tools(workflows, known)
    if stale:
        notices += (f"{stale} workflows are as they were last seen: n8n was too busy to be asked.",)
    return Discovery(tools, (*skipped, *missed, *unfit), "mcp", api.requests, notices)


async def _details(
    api: Api, previews: list[Mapping[str, Any]], known: Known
) -> tuple[list[Mapping[str, Any]], list[Skipped], int]:
    """Workflows in the order of their previews, those that could not be read, and how many of the
    workflows are from the last time."""
    free = asyncio.Semaphore(PARALLEL_DETAILS)
    over: list[N8nError] = []  # why nothing more is asked, once something is there

    async def read(preview: Mapping[str, Any]) -> Mapping[str, Any] | Skipped | N8nError:
        workflow_id = str(preview.get("id"))
        async with free:
            if over:
                return over[0]
            try:
                return {**preview, **await get_workflow(api, workflow_id)}
            except ToolRefused as e:
                return Skipped(workflow_id, title_of(preview), "unreadable", str(e))
            except N8nError as e:
                if e.kind == "protocol":  # this one workflow's details are strange
                    return Skipped(workflow_id, title_of(preview), "unreadable", str(e))
                over.append(e)
                return e

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(preview)) for preview in previews]
    workflows: list[Mapping[str, Any]] = []
    missed: list[Skipped] = []
    stale = 0
    for preview, task in zip(previews, tasks, strict=True):
        got = task.result()
        if isinstance(got, N8nError):
            got, was_stale = _stand_in(got, preview, known)
            stale += was_stale
        if isinstance(got, Skipped):
            missed.append(got)
        else:
            workflows.append(got)
    return workflows, missed, stale


def _stand_in(
    error: N8nError, preview: Mapping[str, Any], known: Known
) -> tuple[Mapping[str, Any] | Skipped, bool]:
    reasons: dict[str, SkipReason] = {"rate_limited": "rate_limited", "timeout": "timeout"}
    if error.kind not in reasons:
        raise error
    workflow_id = str(preview.get("id"))
    if (last := known.details.get(workflow_id)) is not None:
        return last, True
    return Skipped(workflow_id, title_of(preview), reasons[error.kind], str(error)), False


async def _tools(
    workflows: Iterable[Mapping[str, Any]], known: Known
) -> tuple[tuple[WorkflowTool, ...], tuple[Skipped, ...]]:
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    # A large workflow takes milliseconds of regular expressions: not on the event loop.
    for got in await asyncio.to_thread(lambda: list(map(normalise, workflows))):
        if isinstance(got, Skipped):
            skipped.append(got)
        else:
            drafts += got
    known.names = assign((d.candidate for d in drafts), known.names)
    tools = [replace(d.tool, name=known.names[d.candidate.key]) for d in drafts]
    return tuple(sorted(tools, key=lambda t: t.name)), tuple(skipped)
