"""One look at an instance: list its workflows, read their details, make tools, name them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from mcp_bridge.core.computing import computed
from n8n.core.errors import N8nError
from n8n.core.http import KEPT_FOR_LISTING, MCP_PATH, ApiClient
from n8n.core.json_values import mapping, mappings, parse_json
from n8n.core.workflow_tool import Discovery, Skipped, SkipReason, Workflow, WorkflowTool
from n8n.discovery.nodes import may_read_all
from n8n.discovery.normalise import (
    UnnamedTool,
    assign_names,
    id_of,
    normalise,
    published_nodes,
    reason_to_skip,
    skipped_for,
    version_of,
)

# What the two APIs of an n8n instance tell of its workflows.
#
# The public REST API gives every active workflow with its published nodes, a page at a time; pinned
# data and single versions are asked for where the list leaves them out.
#
# The MCP server, `POST {base}/mcp-server/http`, is stateless: a `tools/call` needs no handshake, so
# one call is one request, which matters where only 100 are allowed in 5 minutes; hence plain
# JSON-RPC here, where a session would spend three. The answer comes as JSON or as one server-sent
# event. Only its two reading tools are ever called.

PAGE_SIZE = 50
"""Workflows in one answer. n8n allows 250; so many large workflows could pass MAX_BODY_BYTES."""
MAX_PAGES = 40
MAX_PINNED_BYTES = 256 * 1024
"""The most that a workflow with its pinned data may have: a request as a person makes it has a few
hundred bytes."""
MAX_LISTED = 200
"""The most that search_workflows gives; it has no pages."""
OTHER_ORDERS = ("createdAt:asc", "name:asc", "name:desc")
"""Orders to ask for when the newest may not be all: each shows other ends of the list."""
_MCP_HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}


async def list_active(api: ApiClient) -> tuple[list[Workflow], tuple[str, ...]]:
    """Return the workflows as the API describes them, and notices. Raises N8nError."""
    found: dict[str, Workflow] = {}
    query = {"active": "true", "limit": str(PAGE_SIZE), "excludePinnedData": "true"}
    for _ in range(MAX_PAGES):
        page = mapping(await api.ask_json("GET", "/api/v1/workflows", params=query))
        if not isinstance(page.get("data"), list):
            raise api.unexpected("no list of workflows")
        # A workflow that changes between two pages can come twice.
        found.update((id_of(w), w) for w in mappings(page["data"][:PAGE_SIZE]))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return list(found.values()), ()
        query["cursor"] = cursor
    return list(found.values()), (f"Only the first {MAX_PAGES * PAGE_SIZE} workflows are read.",)


async def read_version(
    api: ApiClient, workflow_id: str, version_id: str
) -> Mapping[str, Any] | None:
    """Return the nodes of one published version; None if that version cannot be had.

    Only the list of an early 2.x lacks them.
    """
    return await _optional(api, f"{_path_of(workflow_id)}/{quote(version_id, safe='')}")


async def read_pinned_data(api: ApiClient, workflow_id: str) -> Mapping[str, Any]:
    """Return a workflow's pinned data; it is empty if it cannot be had or is too large."""
    found = await _optional(api, _path_of(workflow_id), max_bytes=MAX_PINNED_BYTES)
    return mapping((found or {}).get("pinData"))


def _path_of(workflow_id: str) -> str:
    return f"/api/v1/workflows/{quote(workflow_id, safe='')}"


async def _optional(api: ApiClient, path: str, **limits: int) -> Mapping[str, Any] | None:
    """Ask for what is not worth a failed discovery. Raises N8nError for a dead connection."""
    try:
        return mapping(await api.ask_json("GET", path, **limits))
    except N8nError as e:
        if e.kind in ("unreachable", "timeout", "rate_limited"):
            raise
        return None


async def search_workflows(api: ApiClient) -> tuple[list[Workflow], tuple[str, ...]]:
    """Return previews (id, name, active, updatedAt, ...), and notices. Raises N8nError."""
    found: dict[str, Workflow] = {}

    async def search(arguments: Mapping[str, Any]) -> bool:
        """Add what is found, and return whether that is all."""
        answer = await _call_tool(api, "search_workflows", {"limit": MAX_LISTED, **arguments})
        if not isinstance(answer.get("data"), list):
            raise api.unexpected("no list of workflows")
        page = mappings(answer["data"][:MAX_LISTED])
        found.update((id_of(w), w) for w in page)
        return len(page) < MAX_LISTED

    if await search({}):
        return list(found.values()), ()
    for order in OTHER_ORDERS:
        try:
            await search({"sortBy": order})
        except N8nError as e:
            if e.kind != "protocol":
                raise
            break  # an older n8n that knows no orders
    notice = (
        f"n8n lists only {MAX_LISTED} workflows at once through MCP; found {len(found)}. "
        "Set N8N_API_KEY to see all."
    )
    return list(found.values()), (notice,)


async def get_workflow(api: ApiClient, workflow_id: str) -> Workflow:
    """Return the `workflow` of get_workflow_details. Raises N8nError; `protocol` is about this
    workflow alone."""
    answer = await _call_tool(
        api, "get_workflow_details", {"workflowId": workflow_id}, keep_back=KEPT_FOR_LISTING
    )
    workflow = mapping(answer.get("workflow"))
    if not workflow:
        raise api.unexpected("no workflow in its details")
    return workflow


async def _call_tool(
    api: ApiClient, tool: str, arguments: Mapping[str, Any], *, keep_back: int = 0
) -> Mapping[str, Any]:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    response = await api.ask(
        "POST", MCP_PATH, keep_back=keep_back, json=request, headers=_MCP_HEADERS
    )
    if response.media_type == "text/event-stream":
        message = mapping(await api.parse(response.body, _first_answer))
    else:
        message = mapping(await api.parse(response.body))
    result = mapping(message.get("result"))
    if not result:
        error = mapping(message.get("error")).get("message") or "no result"
        raise api.unexpected(str(error)[:120])
    text = next((str(c.get("text")) for c in mappings(result.get("content")) if c.get("text")), "")
    if result.get("isError"):
        reason = text.splitlines()[0][:200] if text else "no reason given"
        raise N8nError("protocol", f"The MCP server of n8n refused {tool}: {reason}")
    return mapping(result.get("structuredContent")) or mapping(await api.parse(text.encode()))


def _first_answer(body: bytes) -> Mapping[str, Any]:
    """Return the first message of an event stream that answers a request.

    Raises ValueError or RecursionError: there is none, or one that is no JSON before it.
    """
    data: list[bytes] = []
    for line in chain(BytesIO(body), [b""]):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line.strip() and data:
            message, data = mapping(parse_json(b"\n".join(data))), []
            if "result" in message or "error" in message:
                return message
    raise ValueError("an empty event stream")


T = TypeVar("T")
_State: TypeAlias = tuple[str | None, object]
"""What changes whenever a workflow or its pinned data may have changed."""

MAX_PARALLEL = 6
"""Requests for single workflows at a time: enough to hide n8n's latency (about 50 ms), few enough
to leave a small machine its breath."""
MAX_PINNED_LOOKUPS = 40
"""Workflows whose pinned data is asked for in one discovery; the next one goes on with others."""
_UNREAD_REASONS: dict[str, SkipReason] = {"rate_limited": "rate_limited", "timeout": "timeout"}


@dataclass
class DiscoveryCache:
    """What one discovery leaves to the next, so that less has to be asked again.

    Workflows are found by their ids.
    """

    names: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the tools, by the keys of their candidates."""
    details: dict[str, Workflow] = field(default_factory=dict[str, Workflow])
    """Workflows as MCP last told them; those that were read longest ago come first."""
    additions: dict[str, tuple[_State, Workflow]] = field(
        default_factory=dict[str, tuple[_State, Workflow]]
    )
    """What was asked for besides the list: the published version, the pinned data. Each belongs to
    a state of the workflow."""
    workflows: list[Workflow] = field(default_factory=list[Workflow])
    """All that the last discovery read."""

    def forget_all_but(self, workflow_ids: set[str]) -> None:
        """Drop what is known of workflows that are gone."""
        for known in (self.details, self.additions):
            for gone in known.keys() - workflow_ids:
                del known[gone]

    def add(self, workflow: Workflow, addition: Workflow) -> None:
        """Keep an addition to a workflow until the workflow changes."""
        self.additions[id_of(workflow)] = (_state(workflow), {**self.known(workflow), **addition})

    def completed(self, workflow: Workflow) -> Workflow:
        """Return a workflow with its additions."""
        return {**workflow, **self.known(workflow)}

    def known(self, workflow: Workflow) -> Workflow:
        """Return the additions to a workflow in its present state."""
        kept = self.additions.get(id_of(workflow))
        return kept[1] if kept is not None and kept[0] == _state(workflow) else {}


def _state(workflow: Workflow) -> _State:
    return version_of(workflow), workflow.get("updatedAt")


async def discover_rest(api: ApiClient, cache: DiscoveryCache) -> Discovery:
    """Discover by the public API. Raises N8nError."""
    listed, notices = await list_active(api)
    workflows = await _side_by_side(listed, lambda w: _with_published_nodes(api, w, cache))
    made = await _normalise_all(workflows)
    unread = [
        workflow
        for workflow, tools in zip(workflows, made, strict=True)
        if "pinData" not in cache.known(workflow) and _lacks_pinned_data(workflow, tools)
    ]
    if unread:
        await _side_by_side(unread[:MAX_PINNED_LOOKUPS], lambda w: _look_up_pinned(api, w, cache))
        workflows = [cache.completed(w) for w in workflows]
        made = await _normalise_all(workflows)
    cache.forget_all_but({id_of(w) for w in workflows})
    cache.workflows = workflows
    tools, skipped = await _named(made, cache)
    return Discovery(tools, skipped, "rest", api.requests, notices)


async def discover_mcp(api: ApiClient, cache: DiscoveryCache) -> Discovery:
    """Discover by the MCP server of the instance. Raises N8nError."""
    previews, notices = await search_workflows(api)
    skipped = [reason for p in previews if (reason := reason_to_skip(p)) is not None]
    wanted = [p for p in previews if reason_to_skip(p) is None]
    workflows, unread, stale = await _read_details(api, wanted, cache)
    cache.forget_all_but({id_of(p) for p in previews})
    cache.workflows = workflows
    tools, unfit = await _named(await _normalise_all(workflows), cache)
    if stale:
        notices += (f"Workflows that are as last seen, as n8n was too busy to be asked: {stale}.",)
    if hidden := sum(s.reason == "rate_limited" for s in unread):
        notices += (
            f"Workflows that were not read: {hidden}. n8n takes 100 requests in 5 minutes by MCP. "
            "Reload in 5 minutes for more, or set N8N_API_KEY to see all at once.",
        )
    return Discovery(tools, (*skipped, *unread, *unfit), "mcp", api.requests, notices)


async def _with_published_nodes(
    api: ApiClient, workflow: Workflow, cache: DiscoveryCache
) -> Workflow:
    """Add what is known; the published nodes are asked for if the list has only the draft's."""
    if published_nodes(cache.completed(workflow)) is None:
        version = await read_version(api, id_of(workflow), str(version_of(workflow)))
        if version is not None and isinstance(version.get("nodes"), list):
            cache.add(workflow, {"activeVersion": version})
    return cache.completed(workflow)


def _lacks_pinned_data(workflow: Workflow, tools: list[UnnamedTool] | Skipped) -> bool:
    """Whether only pinned data, which the list leaves out, could tell the inputs of a tool."""
    if isinstance(tools, Skipped) or workflow.get("pinData"):
        return False
    are_unknown = (
        tool.input_schema.get("additionalProperties") or "trigger" in tool.origins.values()
        for _, tool in tools
    )
    return any(are_unknown) and may_read_all(published_nodes(workflow) or [])


async def _look_up_pinned(api: ApiClient, workflow: Workflow, cache: DiscoveryCache) -> None:
    cache.add(workflow, {"pinData": await read_pinned_data(api, id_of(workflow))})


async def _read_details(
    api: ApiClient, previews: list[Workflow], cache: DiscoveryCache
) -> tuple[list[Workflow], list[Skipped], int]:
    """Return the workflows in the order of their previews, those that could not be read, and how
    many of the workflows are from an earlier time though they may have changed."""
    stopped_by: list[N8nError] = []
    found: dict[str, Workflow | Skipped] = {}

    async def read(preview: Workflow) -> None:
        workflow_id = id_of(preview)
        last = cache.details.get(workflow_id)
        version = version_of(preview)
        if last is not None and version is not None and version == version_of(last):
            workflow = {**last, **preview}  # the same version has the same nodes
        elif stopped_by:
            return
        else:
            try:
                workflow = {**preview, **await get_workflow(api, workflow_id)}
            except N8nError as e:
                if e.kind == "protocol":
                    found[workflow_id] = skipped_for(preview, "unreadable", str(e))
                else:
                    stopped_by.append(e)
                return
        found[workflow_id] = workflow
        cache.details.pop(workflow_id, None)
        cache.details[workflow_id] = {**workflow, "updatedAt": preview.get("updatedAt")}

    # Where a limit cuts the asking short, another discovery goes on from there.
    await _side_by_side(_by_urgency(previews, cache), read)
    for error in stopped_by:
        if error.kind not in _UNREAD_REASONS:
            raise error
    stale = 0
    for preview in previews:
        if id_of(preview) in found:
            continue
        if (last := cache.details.get(id_of(preview))) is not None:
            found[id_of(preview)] = last
            stale += 1
        else:
            reason = _UNREAD_REASONS[stopped_by[0].kind]
            found[id_of(preview)] = skipped_for(preview, reason, str(stopped_by[0]))
    results = [found[id_of(preview)] for preview in previews]
    return (
        [result for result in results if not isinstance(result, Skipped)],
        [result for result in results if isinstance(result, Skipped)],
        stale,
    )


def _by_urgency(previews: list[Workflow], cache: DiscoveryCache) -> list[Workflow]:
    """Sort what was never read first, then what changed, then what was read longest ago."""
    order = {workflow_id: place for place, workflow_id in enumerate(cache.details)}

    def urgency(preview: Workflow) -> tuple[int, int]:
        last = cache.details.get(id_of(preview))
        if last is None:
            return 0, 0
        is_unchanged = last.get("updatedAt") == preview.get("updatedAt")
        return 2 if is_unchanged else 1, order[id_of(preview)]

    return sorted(previews, key=urgency)


async def _side_by_side(
    workflows: list[Workflow], ask: Callable[[Workflow], Awaitable[T]]
) -> list[T]:
    """Do something for each, a few at a time; the results are in order. Raises the first N8nError
    that occurs."""
    waiting = iter(enumerate(workflows))
    done: dict[int, T] = {}

    async def work() -> None:
        for place, workflow in waiting:
            done[place] = await ask(workflow)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_PARALLEL, len(workflows))):
                group.create_task(work())
    except* N8nError as failed:
        raise failed.exceptions[0] from None
    return [done[place] for place in range(len(workflows))]


async def _normalise_all(workflows: list[Workflow]) -> list[list[UnnamedTool] | Skipped]:
    # A large workflow takes milliseconds of regular expressions: not on the event loop. Where the
    # deadline passes meanwhile, no further one is read.
    return [await computed(_normalised, workflow) for workflow in workflows]


def _normalised(workflow: Workflow) -> list[UnnamedTool] | Skipped:
    try:
        return normalise(workflow)
    except RecursionError:
        return skipped_for(workflow, "unreadable", "it is nested too deeply")


async def _named(
    made: list[list[UnnamedTool] | Skipped], cache: DiscoveryCache
) -> tuple[tuple[WorkflowTool, ...], tuple[Skipped, ...]]:
    skipped = tuple(one for one in made if isinstance(one, Skipped))
    unnamed = [tool for one in made if not isinstance(one, Skipped) for tool in one]
    # Five hundred take 25 ms.
    tools, cache.names = await computed(_with_names, unnamed, cache.names)
    return tools, skipped


def _with_names(
    unnamed: list[UnnamedTool], before: Mapping[str, str]
) -> tuple[tuple[WorkflowTool, ...], dict[str, str]]:
    names = assign_names((candidate for candidate, _ in unnamed), before)
    tools = [replace(tool, name=names[candidate.key]) for candidate, tool in unnamed]
    return tuple(sorted(tools, key=lambda t: t.name)), names
