"""RecordedN8n: the recordings as a server."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from n8n.replay.hooks import HOOKS, RIGHT, answer, not_in_test, not_registered
from n8n.replay.instance import Instance
from n8n.replay.loopback import LoopbackServer, Request, Response
from n8n.replay.tape import Recorded, load_tape
from n8n.shapes import mapping

JSON_TYPE: Final = ("content-type", "application/json; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class HeldHook:
    """A webhook that does not answer for now."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first request."""
    released: asyncio.Event = field(default_factory=asyncio.Event)


class RecordedN8n:
    """Replays a real n8n 2.41.1 on 127.0.0.1: its public API, its MCP endpoint, its webhooks.

    async with RecordedN8n(active=["get_weather"]) as r:
        async with N8nTools(r.base_url, api_key=r.api_key) as n: ...
        r.activate("list_events")

    A webhook answers with the recorded status, type and body. Where the body depends on the
    request, the workflow's own expression computes it (replay/expressions.py), so `get_weather`
    answers for any city, always sunny. A webhook that was not recorded answers 501. Refusals of the
    APIs (401, 404, 429) have n8n's status and no recorded body. Some workflows were recorded by the
    public API only, and only that tells of them.

    The key and the token are the replay's own and guard nothing.
    """

    def __init__(
        self, port: int = 0, *, active: Iterable[str] | None = None, pace: float = 0.0
    ) -> None:
        """`active`: names of the workflows to begin with, None for all. `pace`: 1.0 for replies as
        slow as they were recorded, 0.0 for replies at once."""
        self.instance = Instance(load_tape(), active)
        self.base_url = ""
        self.mcp_token = "recorded-mcp-token"  # noqa: S105 - guards recordings
        self.api_key = "recorded-api-key"
        self.webhook_headers: Mapping[str, tuple[str, str]] = RIGHT
        """Credentials that its webhooks take, by kind: `header auth`, `basic`, `jwt`."""
        self.mcp_enabled = True
        self.seen: list[Seen] = []
        self._port = port
        self._pace = pace
        self._held: dict[str, HeldHook] = {}
        self._mcp_left: int | None = None
        self._retry_after_s = 0
        self._server = LoopbackServer(self._answer)

    async def __aenter__(self) -> Self:
        self.base_url = f"http://127.0.0.1:{await self._server.start(self._port)}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.aclose()

    def activate(self, *names: str) -> None:
        """Switch recorded workflows on. Raises KeyError for a name that was not recorded."""
        self.instance.switch(names, on=True)

    def deactivate(self, *names: str) -> None:
        self.instance.switch(names, on=False)

    def limit_mcp(self, requests: int, retry_after_s: int) -> None:
        """After so many more requests the MCP endpoint answers 429, `requests` times again after
        each such answer (as it would once the time is over)."""
        self._mcp_left, self._retry_after_s = requests, retry_after_s

    @contextmanager
    def hold(self, path: str) -> Iterator[HeldHook]:
        """Requests to this webhook wait until the end of the block."""
        held = self._held[path] = HeldHook()
        try:
            yield held
        finally:
            del self._held[path]
            held.released.set()

    async def _answer(self, request: Request) -> Response:
        self.seen.append(Seen(request.method, request.path, dict(request.headers), request.body))
        if request.path == "/api/v1/workflows" and request.method == "GET":
            return self._rest(request)
        if request.path == "/mcp-server/http" and request.method == "POST":
            return self._mcp(request)
        _, _, path = request.path.partition("/webhook/")
        if request.path.startswith("/webhook/"):
            return await self._webhook(request, path)
        if request.path.startswith("/webhook-test/"):
            return _response(not_in_test(load_tape(), request.path[len("/webhook-test/") :]))
        return Response(404)

    async def _webhook(self, request: Request, path: str) -> Response:
        if (held := self._held.get(path)) is not None:
            held.reached.set()
            await held.released.wait()
        elsewhere = None
        for hook in HOOKS:
            params = hook.match(path)
            if params is None or not self.instance.is_active(hook.workflow):
                continue
            if hook.method == request.method:
                reply = answer(load_tape(), hook, request, params, self.base_url)
                await asyncio.sleep(self._pace * reply.ms / 1000)
                return _response(reply)
            elsewhere = hook
        if elsewhere is None and self.instance.has_unrecorded_hook(path):
            return Response(
                501, b"This webhook was not recorded.", (("content-type", "text/plain"),)
            )
        return _response(not_registered(load_tape(), request, path, elsewhere))

    def _rest(self, request: Request) -> Response:
        key = request.header("x-n8n-api-key")
        if key != self.api_key:
            said = "unauthorized" if key else "'X-N8N-API-KEY' header required"
            return _json(401, {"message": said})
        limit = min(int(request.query.get("limit", "100")), 250)
        offset = _offset(request.query.get("cursor"))
        found = self.instance.listing(active_only=request.query.get("active") == "true")
        more = offset + limit < len(found)
        cursor = {"limit": limit, "offset": offset + limit}
        page = {
            "data": found[offset : offset + limit],
            "nextCursor": base64.b64encode(json.dumps(cursor).encode()).decode() if more else None,
        }
        return _json(200, page)

    def _mcp(self, request: Request) -> Response:
        if request.header("authorization") != f"Bearer {self.mcp_token}":
            return Response(401)
        if not self.mcp_enabled:
            return Response(404)
        if self._mcp_left is not None:
            if self._mcp_left <= 0:
                self._mcp_left = None
                return Response(429, headers=(("retry-after", str(self._retry_after_s)),))
            self._mcp_left -= 1
        message = mapping(json.loads(request.body))
        params = mapping(message.get("params"))
        if message.get("method") != "tools/call":
            error = {"code": -32601, "message": "Method not found"}
            return _json(200, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        result = self.instance.call_tool(str(params.get("name")), mapping(params.get("arguments")))
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


def _response(reply: Recorded) -> Response:
    headers = (("content-type", reply.content_type), ("www-authenticate", reply.www_authenticate))
    return Response(reply.status, reply.body, tuple((n, v) for n, v in headers if v is not None))


def _json(status: int, value: Mapping[str, Any]) -> Response:
    return Response(status, _compact(value).encode(), (JSON_TYPE,))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _offset(cursor: str | None) -> int:
    try:
        return int(mapping(json.loads(base64.b64decode(cursor or ""))).get("offset", 0))
    except (ValueError, binascii.Error):
        return 0
