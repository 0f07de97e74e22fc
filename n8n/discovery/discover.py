"""One look at an instance: list, read the details, normalise, name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from n8n.core.api_client import Api
from n8n.core.errors import N8nError
from n8n.core.workflow_tool import Discovery, Skipped, SkipReason, WorkflowTool
from n8n.discovery.cache import Drafts, Known, Seen, state_of, version_of
from n8n.discovery.mcp_server import ToolRefused, get_workflow, search_workflows
from n8n.discovery.node_inputs import may_read_all
from n8n.discovery.normalise import Draft, excluded, published_nodes, title_of
from n8n.discovery.public_api import list_active, read_pins, read_version
from n8n.discovery.tool_names import assign

T = TypeVar("T")

PARALLEL = 6
"""Requests for single workflows at a time: enough to hide n8n's latency (about 50 ms), few enough
to leave a small machine its breath."""
MAX_PINS = 40
"""Workflows whose pinned data is looked for in one discovery; the next one goes on with others."""
MAX_VERSIONS = 1000
"""Published versions that are kept in memory."""


async def discover_rest(api: Api, known: Known) -> Discovery:
    """By the public API. Raises N8nError."""
    workflows, notices = await list_active(api)
    workflows = await _side_by_side(workflows, lambda w: _published(api, w, known))
    found = await _normalised(workflows, known)
    silent = [w for w, made in found if isinstance(made, list) and _is_silent(w, made)]
    if silent:
        unseen = [w for w in silent if not _has_looked(w, known)]
        await _side_by_side(unseen[:MAX_PINS], lambda w: _look_for_pins(api, w, known))
        workflows = [_with_pins(w, known) for w in workflows]
        found = await _normalised(workflows, known)
    known.forget_all_but({str(w.get("id")) for w in workflows})
    known.workflows = workflows
    tools, skipped = _named(found, known)
    return Discovery(tools, skipped, "rest", api.requests, notices)


async def discover_mcp(api: Api, known: Known) -> Discovery:
    """By the MCP server of the instance. Raises N8nError."""
    previews, notices = await search_workflows(api)
    skipped = [out for p in previews if (out := excluded(p)) is not None]
    wanted = [p for p in previews if excluded(p) is None]
    known.look += 1
    workflows, missed, stale = await _details(api, wanted, known)
    known.forget_all_but({str(p.get("id")) for p in previews})
    known.workflows = workflows
    tools, unfit = _named(await _normalised(workflows, known), known)
    if stale:
        notices += (f"{stale} workflows are as they were last seen: n8n was too busy to be asked.",)
    if hidden := sum(s.reason == "rate_limited" for s in missed):
        notices += (
            f"{hidden} workflows were not read: n8n takes 100 requests in 5 minutes through MCP. "
            "Reload in 5 minutes for more, or set N8N_API_KEY to see all at once.",
        )
    return Discovery(tools, (*skipped, *missed, *unfit), "mcp", api.requests, notices)


async def _published(api: Api, workflow: Mapping[str, Any], known: Known) -> Mapping[str, Any]:
    """The workflow with its published nodes, asked for where the list has only the draft's."""
    if published_nodes(workflow) is not None:
        return workflow
    version_id = str(version_of(workflow))
    version = known.versions.get(version_id)
    if version is None:
        version = await read_version(api, str(workflow.get("id")), version_id) or {}
    if not isinstance(version.get("nodes"), list):
        return workflow
    if len(known.versions) >= MAX_VERSIONS:
        known.versions.clear()
    known.versions[version_id] = version
    return {**workflow, "activeVersion": version}


def _is_silent(workflow: Mapping[str, Any], made: list[Draft]) -> bool:
    """Whether nothing but pinned data could tell the inputs of one of its tools."""
    open_ended = (
        draft.tool.input_schema.get("additionalProperties")
        or "trigger" in draft.tool.origins.values()
        for draft in made
    )
    return any(open_ended) and may_read_all(published_nodes(workflow) or [])


async def _look_for_pins(api: Api, workflow: Mapping[str, Any], known: Known) -> None:
    workflow_id = str(workflow.get("id"))
    known.pins[workflow_id] = (state_of(workflow), await read_pins(api, workflow_id))


def _has_looked(workflow: Mapping[str, Any], known: Known) -> bool:
    """Whether this version's pinned data is known; early versions of n8n list it at once."""
    last, state = known.pins.get(str(workflow.get("id"))), state_of(workflow)
    return bool(workflow.get("pinData")) or (
        last is not None and state is not None and last[0] == state
    )


def _with_pins(workflow: Mapping[str, Any], known: Known) -> Mapping[str, Any]:
    state, pins = known.pins.get(str(workflow.get("id")), (None, {}))
    return {**workflow, "pinData": pins} if pins and state == state_of(workflow) else workflow


async def _side_by_side(
    workflows: list[Mapping[str, Any]], ask: Callable[[Mapping[str, Any]], Awaitable[T]]
) -> list[T]:
    """`ask` of each, a few at a time, in their order. Raises the first N8nError."""
    free = asyncio.Semaphore(PARALLEL)

    async def one(workflow: Mapping[str, Any]) -> T:
        async with free:
            return await ask(workflow)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(w)) for w in workflows]
    except* N8nError as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _details(
    api: Api, previews: list[Mapping[str, Any]], known: Known
) -> tuple[list[Mapping[str, Any]], list[Skipped], int]:
    """Workflows in the order of their previews, those that could not be read, and how many of the
    workflows are from an earlier time though they may have changed."""
    over: list[N8nError] = []  # why nothing more is asked, once something is there
    answers: dict[str, Mapping[str, Any] | Skipped | N8nError] = {}

    async def read(preview: Mapping[str, Any]) -> None:
        workflow_id = str(preview.get("id"))
        answers[workflow_id] = got = await _one(api, preview, known, over)
        if not isinstance(got, (Skipped, N8nError)):
            known.details[workflow_id] = Seen(got, _updated(preview), known.look)

    # What was never seen is asked first, then what changed, then what was seen longest ago: where
    # a limit cuts the asking short, another discovery goes on from there.
    await _side_by_side(sorted(previews, key=lambda p: _age(p, known)), read)
    workflows: list[Mapping[str, Any]] = []
    missed: list[Skipped] = []
    stale = 0
    for preview in previews:
        got = answers[str(preview.get("id"))]
        if isinstance(got, N8nError):
            got, was_stale = _stand_in(got, preview, known)
            stale += was_stale
        if isinstance(got, Skipped):
            missed.append(got)
        else:
            workflows.append(got)
    return workflows, missed, stale


async def _one(
    api: Api, preview: Mapping[str, Any], known: Known, over: list[N8nError]
) -> Mapping[str, Any] | Skipped | N8nError:
    workflow_id = str(preview.get("id"))
    last = known.details.get(workflow_id)
    told = version_of(preview)
    if last is not None and told is not None and told == version_of(last.workflow):
        return {**last.workflow, **preview}  # the same version has the same nodes
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


def _age(preview: Mapping[str, Any], known: Known) -> tuple[bool, bool, int]:
    last = known.details.get(str(preview.get("id")))
    if last is None:
        return False, False, 0
    return True, last.updated_at == _updated(preview), last.look


def _updated(preview: Mapping[str, Any]) -> str:
    return str(preview.get("updatedAt"))


def _stand_in(
    error: N8nError, preview: Mapping[str, Any], known: Known
) -> tuple[Mapping[str, Any] | Skipped, bool]:
    reasons: dict[str, SkipReason] = {"rate_limited": "rate_limited", "timeout": "timeout"}
    if error.kind not in reasons:
        raise error
    workflow_id = str(preview.get("id"))
    if (last := known.details.get(workflow_id)) is not None:
        return last.workflow, True
    return Skipped(workflow_id, title_of(preview), reasons[error.kind], str(error)), False


async def _normalised(
    workflows: list[Mapping[str, Any]], known: Known
) -> list[tuple[Mapping[str, Any], Drafts]]:
    # A large workflow takes milliseconds of regular expressions: not on the event loop.
    made = await asyncio.to_thread(lambda: list(map(known.normalised, workflows)))
    return list(zip(workflows, made, strict=True))


def _named(
    found: Iterable[tuple[Mapping[str, Any], Drafts]], known: Known
) -> tuple[tuple[WorkflowTool, ...], tuple[Skipped, ...]]:
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    for _, made in found:
        if isinstance(made, Skipped):
            skipped.append(made)
        else:
            drafts += made
    known.names = assign((d.candidate for d in drafts), known.names)
    tools = [replace(d.tool, name=known.names[d.candidate.key]) for d in drafts]
    return tuple(sorted(tools, key=lambda t: t.name)), tuple(skipped)
