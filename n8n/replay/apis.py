"""The two APIs of the replayed instance: the public one, and its MCP endpoint."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from n8n.replay.failed_runs import FailedRuns
from n8n.replay.instance import Instance
from n8n.replay.loopback import Request, Response
from n8n.replay.tape import load_tape
from n8n.shapes import mapping

API_KEY: Final = "recorded-api-key"
MCP_TOKEN: Final = "recorded-mcp-token"  # noqa: S105 - it guards nothing but recordings
JSON_TYPE: Final = ("content-type", "application/json; charset=utf-8")


class Apis:
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.mcp_enabled = True
        """Whether `MCP access` is switched on in the instance."""
        self.failed_runs = FailedRuns()
        self._mcp_left: int | None = None
        self._retry_after_s = 0

    def limit_mcp(self, requests: int, retry_after_s: int) -> None:
        """After so many more requests the MCP endpoint answers 429, with this Retry-After. Where
        that is 0 s the time is over at once, and no limit is left."""
        self._mcp_left, self._retry_after_s = requests, retry_after_s

    def rest(self, request: Request) -> Response:
        key = request.header("x-n8n-api-key")
        if key != API_KEY:
            said = "unauthorized" if key else "'X-N8N-API-KEY' header required"
            return _json(401, {"message": said})
        place = request.path.removeprefix("/api/v1/")
        if place == "workflows":
            return self._listed(request)
        if place == "executions":
            return _json(200, self.failed_runs.listed(request.query))
        found = self._instance.workflow(place.removeprefix("workflows/"))
        return _json(404, {"message": "not found"}) if found is None else _json(200, found)

    def _listed(self, request: Request) -> Response:
        limit = min(int(request.query.get("limit", "100")), 250)
        with_pins = request.query.get("excludePinnedData") != "true"
        offset = _offset(request.query.get("cursor"))
        found = self._instance.listing(
            active_only=request.query.get("active") == "true", with_pins=with_pins
        )
        more = offset + limit < len(found)
        cursor = {"limit": limit, "offset": offset + limit}
        page = {
            "data": found[offset : offset + limit],
            "nextCursor": base64.b64encode(json.dumps(cursor).encode()).decode() if more else None,
        }
        return _json(200, page)

    def mcp(self, request: Request) -> Response:
        if request.header("authorization") != f"Bearer {MCP_TOKEN}":
            return Response(401)
        if not self.mcp_enabled:
            return Response(404)
        if self._is_limited():
            return Response(429, headers=(("retry-after", str(self._retry_after_s)),))
        message = mapping(json.loads(request.body))
        params = mapping(message.get("params"))
        if message.get("method") != "tools/call":
            error = {"code": -32601, "message": "Method not found"}
            return _json(200, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        result = self._instance.call_tool(str(params.get("name")), mapping(params.get("arguments")))
        # The protocol of 2026 answers in JSON and says so; the ones before in one event.
        modern = (request.header("mcp-protocol-version") or "").startswith("2026")
        if modern:
            meta = {"resultType": "complete", "_meta": load_tape().mcp_meta}
            return _json(
                200, {"result": {**result, **meta}, "jsonrpc": "2.0", "id": message.get("id")}
            )
        event = {"result": result, "jsonrpc": "2.0", "id": message.get("id")}
        body = f"event: message\ndata: {_compact(event)}\n\n".encode()
        return Response(200, body, (("content-type", "text/event-stream"),))

    def _is_limited(self) -> bool:
        if self._mcp_left is None:
            return False
        if self._mcp_left > 0:
            self._mcp_left -= 1
            return False
        if self._retry_after_s == 0:
            self._mcp_left = None
        return True


def _json(status: int, value: Mapping[str, Any]) -> Response:
    return Response(status, _compact(value).encode(), (JSON_TYPE,))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _offset(cursor: str | None) -> int:
    try:
        return int(mapping(json.loads(base64.b64decode(cursor or ""))).get("offset", 0))
    except (ValueError, binascii.Error):
        return 0
