"""The MCP endpoint of the replayed instance, `POST /mcp-server/http`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from caal_node.demo.n8n_replay.instance import Instance, UnknownTool
from caal_node.demo.n8n_replay.loopback import Request, Response, compact, json_response
from caal_node.demo.n8n_replay.recordings import load_tape
from n8n.core.json_values import mapping

MCP_TOKEN: Final = "recorded-mcp-token"  # noqa: S105 - it guards nothing but recordings
PATH: Final = "/mcp-server/http"
ENVELOPED: Final = "2026-07-28"
"""A revision that answers in JSON and says so; those before it answer in one event."""
REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07")
_UNAUTHORIZED: Final = (
    "www-authenticate",
    'Bearer realm="n8n MCP Server", '
    'resource_metadata="{base}/.well-known/oauth-protected-resource/mcp-server/http"',
)
_NOT_ACCEPTABLE: Final = (
    "Not Acceptable: Client must accept both application/json and text/event-stream"
)


class McpEndpoint:
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.enabled = True
        """Whether `MCP access` is switched on in the instance."""
        self._left: int | None = None
        self._retry_after_s = 0

    def limit(self, requests: int, retry_after_s: int) -> None:
        """After so many more requests it answers 429, with this Retry-After. Where that is 0 s the
        time is over at once, and no limit is left."""
        self._left, self._retry_after_s = requests, retry_after_s

    def answer(self, request: Request, base_url: str) -> Response:
        if (refusal := self._refusal(request, base_url)) is not None:
            return refusal
        try:
            message = mapping(json.loads(request.body))
        except ValueError:
            return Response(500, b"Failed to parse request body", (("content-type", "text/html"),))
        params = mapping(message.get("params"))
        envelope = {"jsonrpc": "2.0", "id": message.get("id")}
        if message.get("method") != "tools/call":
            return _event({**envelope, "error": {"code": -32601, "message": "Method not found"}})
        try:
            result = self._instance.call_tool(
                str(params.get("name")), mapping(params.get("arguments"))
            )
        except UnknownTool as e:
            return _event({**envelope, "error": {"code": -32602, "message": str(e)}})
        if request.header("mcp-protocol-version") == ENVELOPED:
            meta = {"resultType": "complete", "_meta": load_tape().mcp_meta}
            return json_response(200, {"result": {**result, **meta}, **envelope})
        return _event({"result": result, **envelope})

    def _refusal(self, request: Request, base_url: str) -> Response | None:
        if request.method != "POST":
            return _error(405, -32000, "Method not allowed.")
        sent = request.header("authorization")
        if sent != f"Bearer {MCP_TOKEN}":
            said = "Unauthorized" if sent else "Unauthorized: Authorization header not sent"
            name, value = _UNAUTHORIZED
            challenge = (name, value.format(base=base_url))
            return json_response(401, {"message": said}, challenge)
        if not self.enabled:
            return Response(404)
        if self._is_limited():
            return Response(429, headers=(("retry-after", str(self._retry_after_s)),))
        accepted = request.header("accept") or ""
        if not {"application/json", "text/event-stream"} <= {
            kind.partition(";")[0].strip() for kind in accepted.split(",")
        }:
            return _error(406, -32000, _NOT_ACCEPTABLE)
        revision = request.header("mcp-protocol-version") or REVISIONS[0]
        if revision not in (ENVELOPED, *REVISIONS):
            said = f"Bad Request: Unsupported protocol version: {revision}"
            return _error(400, -32000, f"{said} (supported versions: {', '.join(REVISIONS)})")
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


def _error(status: int, code: int, message: str) -> Response:
    error = {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}
    return Response(status, compact(error).encode(), (("content-type", "application/json"),))


def _event(message: Mapping[str, Any]) -> Response:
    body = f"event: message\ndata: {compact(message)}\n\n".encode()
    return Response(200, body, (("content-type", "text/event-stream"),))
