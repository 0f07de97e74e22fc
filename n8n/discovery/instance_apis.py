"""What the two APIs of an n8n instance tell of its workflows.

The public REST API gives every active workflow with its published nodes, a page at a time; pinned
data and single versions are asked for where the list leaves them out.

The MCP server, `POST {base}/mcp-server/http`, is stateless: a `tools/call` needs no handshake, so
one call is one request, which matters where only 100 are allowed in 5 minutes; hence plain JSON-RPC
here, where a session would spend three. The answer comes as JSON or as one server-sent event. Only
its two reading tools are ever called.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from itertools import chain
from typing import Any
from urllib.parse import quote

from n8n.core.addresses import MCP_PATH
from n8n.core.api_client import KEPT_FOR_LISTING, ApiClient
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings, parse_json
from n8n.core.workflow_tool import Workflow
from n8n.discovery.normalise import id_of

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
