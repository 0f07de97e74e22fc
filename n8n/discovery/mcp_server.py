"""The MCP server of an n8n instance, `POST {base}/mcp-server/http`.

It is stateless: a `tools/call` needs no handshake, so one call is one request, which matters where
only 100 are allowed in 5 minutes; hence plain JSON-RPC here, where a session would spend three. The
answer comes as JSON or as one server-sent event. Only its two reading tools are ever called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n8n.core.api_client import Api, read_json
from n8n.core.errors import N8nError
from n8n.core.json_values import mapping, mappings
from n8n.core.rate_limiter import FOR_LISTING

PATH = "/mcp-server/http"
LIMIT = 200
"""The most that search_workflows gives; it has no pages."""
OTHER_ORDERS = ("createdAt:asc", "name:asc", "name:desc")
"""Asked for when the newest LIMIT may not be all: each order shows other ends of the list."""
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}


class ToolRefused(Exception):
    """The server ran the tool and it said no; `str()` is its text."""


async def search_workflows(api: Api) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """Previews (id, name, active, availableInMCP, updatedAt, ...), and notices. Raises N8nError."""
    found: dict[str, Mapping[str, Any]] = {}

    async def look(arguments: Mapping[str, Any]) -> bool:
        answer = await _call(api, "search_workflows", {"limit": LIMIT, **arguments})
        if not isinstance(answer.get("data"), list):
            raise api.strange("no list of workflows")
        page = mappings(answer["data"])
        found.update((str(w.get("id")), w) for w in page)
        return len(page) < LIMIT

    try:
        complete = await look({})
    except ToolRefused as e:
        raise N8nError("protocol", f"n8n refused to list its workflows: {e}") from None
    for order in () if complete else OTHER_ORDERS:
        try:
            await look({"sortBy": order})
        except ToolRefused:
            break  # an older n8n that knows no orders
    notice = (
        f"n8n lists only {LIMIT} workflows at once through MCP; found {len(found)}. "
        "Set N8N_API_KEY to see all."
    )
    return list(found.values()), () if complete else (notice,)


async def get_workflow(api: Api, workflow_id: str) -> Mapping[str, Any]:
    """The `workflow` of get_workflow_details. Raises N8nError, or ToolRefused."""
    answer = await _call(
        api, "get_workflow_details", {"workflowId": workflow_id}, keep_back=FOR_LISTING
    )
    workflow = mapping(answer.get("workflow"))
    if not workflow:
        raise api.strange("no workflow in its details")
    return workflow


async def _call(
    api: Api, tool: str, arguments: Mapping[str, Any], *, keep_back: int = 0
) -> Mapping[str, Any]:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    reply = await api.ask("POST", PATH, keep_back=keep_back, json=request, headers=_HEADERS)
    message = mapping(
        _event(api, reply.body)
        if reply.media_type == "text/event-stream"
        else read_json(api, reply.body)
    )
    result = mapping(message.get("result"))
    if not result:
        raise api.strange(str(mapping(message.get("error")).get("message") or "no result")[:120])
    text = next((str(c.get("text")) for c in mappings(result.get("content")) if c.get("text")), "")
    if result.get("isError"):
        raise ToolRefused(text.splitlines()[0][:200] if text else "no reason given")
    structured = mapping(result.get("structuredContent"))
    return structured or mapping(read_json(api, text.encode()))


def _event(api: Api, body: bytes) -> Any:
    """The first message of an event stream that answers a request."""
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if lines:
            message = read_json(api, b"\n".join(lines))
            if "result" in mapping(message) or "error" in mapping(message):
                return message
    raise api.strange("an empty event stream")


__all__ = ["ToolRefused", "get_workflow", "search_workflows"]
