"""RecordedN8n: the recordings as a server."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from caal_node.demo.n8n_replay.executions import RECORDED
from caal_node.demo.n8n_replay.instance import Instance
from caal_node.demo.n8n_replay.loopback import LoopbackServer, Request, Response
from caal_node.demo.n8n_replay.mcp import MCP_TOKEN, McpEndpoint
from caal_node.demo.n8n_replay.mcp import PATH as MCP_PATH
from caal_node.demo.n8n_replay.public_api import API_KEY, PREFIX, PublicApi
from caal_node.demo.n8n_replay.recordings import Recorded, load_tape
from caal_node.demo.n8n_replay.webhooks import (
    HOOKS,
    RIGHT,
    Hook,
    answer,
    not_in_test,
    not_registered,
)

_EDITOR: Final = b'<!DOCTYPE html>\n<html lang="en"><head><title>n8n</title></head></html>'
"""In place of the editor, a page that n8n gives for every address that it does not know."""


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
    request, the workflow's own expression computes it (expressions.py), so `get_weather`
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
        self.public_api = PublicApi(self.instance)
        self.mcp = McpEndpoint(self.instance)
        self.base_url = ""
        self.mcp_token = MCP_TOKEN
        self.api_key = API_KEY
        self.webhook_headers: Mapping[str, tuple[str, str]] = RIGHT
        """Credentials that its webhooks take, by kind: `header auth`, `basic`, `jwt`."""
        self.seen: list[Seen] = []
        self._port = port
        self._pace = pace
        self._held: dict[str, HeldHook] = {}
        self._server = LoopbackServer(self._answer)

    async def __aenter__(self) -> Self:
        self.base_url = f"http://127.0.0.1:{await self._server.start(self._port)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every connection, whatever it is waiting for."""
        await self._server.aclose()

    def activate(self, *names: str) -> None:
        """Switch recorded workflows on. Raises KeyError for a name that was not recorded."""
        self.instance.switch(names, on=True)

    def deactivate(self, *names: str) -> None:
        self.instance.switch(names, on=False)

    @contextmanager
    def hold(self, path: str) -> Generator[HeldHook]:
        """Requests to this webhook wait until the end of the block. A path that begins with a
        slash is one of the server's own, such as `/api/v1/workflows`."""
        path = path if path.startswith("/") else f"/webhook/{path}"
        held = self._held[path] = HeldHook()
        try:
            yield held
        finally:
            del self._held[path]
            held.released.set()

    async def _answer(self, request: Request) -> Response:
        self.seen.append(Seen(request.method, request.path, dict(request.headers), request.body))
        await self._while_held(request.path)
        if request.path.startswith(PREFIX) and request.method == "GET":
            return self.public_api.answer(request)
        if request.path == MCP_PATH:
            return self.mcp.answer(request, self.base_url)
        _, _, path = request.path.partition("/webhook/")
        if request.path.startswith("/webhook/") and path:
            if request.method == "OPTIONS":
                return Response(204)
            return await self._webhook(request, path)
        if request.path.startswith("/webhook-test/"):
            return _response(not_in_test(load_tape(), request.path[len("/webhook-test/") :]))
        if request.method == "GET":
            return Response(200, _EDITOR, (("content-type", "text/html; charset=utf-8"),))
        said = f"Cannot {request.method} {request.path}"
        return Response(404, said.encode(), (("content-type", "text/html; charset=utf-8"),))

    async def _webhook(self, request: Request, path: str) -> Response:
        elsewhere = None
        for hook in HOOKS:
            params = hook.match(path)
            if params is None or not self.instance.is_active(hook.workflow):
                continue
            if hook.method == request.method:
                reply = answer(load_tape(), hook, request, params, self.base_url)
                await asyncio.sleep(self._pace * reply.ms / 1000)
                self._note(hook, request, reply)
                return _response(reply)
            elsewhere = hook
        if elsewhere is None and self.instance.has_unrecorded_hook(path):
            return Response(
                501, b"This webhook was not recorded.", (("content-type", "text/plain"),)
            )
        return _response(not_registered(load_tape(), request, path, elsewhere))

    def _note(self, hook: Hook, request: Request, reply: Recorded) -> None:
        workflow_id = self.instance.id_of(hook.workflow)
        if hook.path in RECORDED:
            self.public_api.runs.failed(workflow_id, request)
        elif reply.status == 200:
            self.public_api.runs.succeeded(workflow_id, self._pace * reply.ms)

    async def _while_held(self, path: str) -> None:
        if (held := self._held.get(path)) is not None:
            held.reached.set()
            await held.released.wait()


def _response(reply: Recorded) -> Response:
    headers = (("content-type", reply.content_type), ("www-authenticate", reply.www_authenticate))
    return Response(reply.status, reply.body, tuple((n, v) for n, v in headers if v is not None))
