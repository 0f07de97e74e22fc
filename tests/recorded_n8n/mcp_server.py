"""The MCP server of the replayed instance, `POST /mcp-server/http`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from n8n.core.json_values import mapping
from tests.recorded_n8n.instance import RecordedInstance
from tests.recorded_n8n.loopback import (
    LoopbackRequest,
    LoopbackResponse,
    compact_json,
    json_response,
)
from tests.recorded_n8n.recordings import load_recordings

MCP_TOKEN: Final = "recorded-mcp-token"  # noqa: S105 - it guards nothing but recordings
MCP_PATH: Final = "/mcp-server/http"
MAX_LISTED: Final = 200
"""The most that search_workflows gives."""
ORDERS: Final = tuple(
    f"{key}:{way}" for key in ("updatedAt", "createdAt", "name") for way in ("desc", "asc")
)
ENVELOPED: Final = "2026-07-28"
"""A revision that answers in JSON and says so; those before it answer in one event."""
REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07")
_CHALLENGE: Final = (
    'Bearer realm="n8n MCP Server", '
    'resource_metadata="{base}/.well-known/oauth-protected-resource/mcp-server/http"'
)
_NOT_ACCEPTABLE: Final = (
    "Not Acceptable: Client must accept both application/json and text/event-stream"
)


class RecordedMcpServer:
    """Answers the two tools that read, as 2.41.1 does."""

    def __init__(self, instance: RecordedInstance) -> None:
        self._instance = instance
        self.enabled = True
        """Whether `MCP access` is switched on in the instance."""
        self._left: int | None = None
        self._retry_after_s = 0

    def limit(self, requests: int, retry_after_s: int) -> None:
        """After so many more requests it answers 429, with this Retry-After.

        Where that is 0 s, the time is over at once, and no limit is left.
        """
        self._left, self._retry_after_s = requests, retry_after_s

    def answer(self, request: LoopbackRequest, base_url: str) -> LoopbackResponse:
        if (refusal := self._refusal(request, base_url)) is not None:
            return refusal
        try:
            message = mapping(json.loads(request.body))
        except ValueError:
            html = (("content-type", "text/html"),)
            return LoopbackResponse(500, b"Failed to parse request body", html)
        params = mapping(message.get("params"))
        envelope = {"jsonrpc": "2.0", "id": message.get("id")}
        if message.get("method") != "tools/call":
            return _event({**envelope, "error": {"code": -32601, "message": "Method not found"}})
        name, arguments = params.get("name"), mapping(params.get("arguments"))
        if name == "search_workflows":
            result = self._search(arguments)
        elif name == "get_workflow_details":
            result = self._details(arguments)
        else:
            error = {"code": -32602, "message": f"Tool {name} not found"}
            return _event({**envelope, "error": error})
        if request.headers.get("mcp-protocol-version") == ENVELOPED:
            meta = {"resultType": "complete", "_meta": load_recordings().mcp_meta}
            return json_response(200, {"result": {**result, **meta}, **envelope})
        return _event({"result": result, **envelope})

    def _search(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        limit = int(arguments.get("limit", MAX_LISTED))
        if limit > MAX_LISTED:
            return _tool_error(load_recordings().refusals["limit"])
        if limit < 1:
            return _invalid("search_workflows", "limit: Number must be greater than 0")
        order = str(arguments.get("sortBy", ORDERS[0]))
        if order not in ORDERS:
            wanted = " | ".join(f"'{one}'" for one in ORDERS)
            expected = f"Expected {wanted}, received '{order}'"
            return _invalid("search_workflows", f"sortBy: Invalid enum value. {expected}")
        key, _, direction = order.partition(":")
        by_key = sorted(
            self._instance.previews(), key=lambda w: str(w.get(key)), reverse=direction == "desc"
        )
        return _tool_result({"data": by_key[:limit], "count": len(by_key)})

    def _details(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if "workflowId" not in arguments:
            return _invalid("get_workflow_details", "workflowId: Required")
        try:
            details = self._instance.details(str(arguments["workflowId"]))
        except LookupError:
            return _tool_error(load_recordings().refusals["unknown_workflow"])
        if details is None:
            return _tool_error(load_recordings().refusals["not_available_in_mcp"])
        return _tool_result(details)

    def _refusal(self, request: LoopbackRequest, base_url: str) -> LoopbackResponse | None:
        if request.method != "POST":
            return _http_error(405, "Method not allowed.")
        sent = request.headers.get("authorization")
        if sent != f"Bearer {MCP_TOKEN}":
            message = "Unauthorized" if sent else "Unauthorized: Authorization header not sent"
            challenge = ("www-authenticate", _CHALLENGE.format(base=base_url))
            return json_response(401, {"message": message}, challenge)
        if not self.enabled:
            return LoopbackResponse(404)
        if self._is_limited():
            return LoopbackResponse(429, headers=(("retry-after", str(self._retry_after_s)),))
        accepted = request.headers.get("accept", "").split(",")
        kinds = {kind.partition(";")[0].strip() for kind in accepted}
        if not {"application/json", "text/event-stream"} <= kinds:
            return _http_error(406, _NOT_ACCEPTABLE)
        revision = request.headers.get("mcp-protocol-version") or REVISIONS[0]
        if revision not in (ENVELOPED, *REVISIONS):
            message = f"Bad Request: Unsupported protocol version: {revision}"
            supported = f"(supported versions: {', '.join(REVISIONS)})"
            return _http_error(400, f"{message} {supported}")
        return None

    def _is_limited(self) -> bool:
        if self._left is None:
            return False
        if self._left > 0:
            self._left -= 1
            return False
        if self._retry_after_s == 0:
            self._left = None
        return True


def _tool_result(structured: Mapping[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": compact_json(structured)}]
    return {"content": content, "structuredContent": structured}


def _tool_error(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _invalid(tool: str, message: str) -> dict[str, Any]:
    return _tool_error(f"Input validation error: Invalid arguments for tool {tool}: {message}")


def _http_error(status: int, message: str) -> LoopbackResponse:
    error = {"jsonrpc": "2.0", "error": {"code": -32000, "message": message}, "id": None}
    content_type = ("content-type", "application/json")
    return LoopbackResponse(status, compact_json(error).encode(), (content_type,))


def _event(message: Mapping[str, Any]) -> LoopbackResponse:
    body = f"event: message\ndata: {compact_json(message)}\n\n".encode()
    return LoopbackResponse(200, body, (("content-type", "text/event-stream"),))
