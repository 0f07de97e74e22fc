"""RecordedN8n: the recordings as a server."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from caal_node.cli.demo.n8n_replay.instance import ReplayedInstance
from caal_node.cli.demo.n8n_replay.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer
from caal_node.cli.demo.n8n_replay.mcp_server import MCP_PATH, MCP_TOKEN, ReplayedMcpServer
from caal_node.cli.demo.n8n_replay.public_api import (
    API_KEY,
    API_PREFIX,
    RECORDED_FAILURES,
    ReplayedPublicApi,
)
from caal_node.cli.demo.n8n_replay.recordings import RecordedReply
from caal_node.cli.demo.n8n_replay.webhooks import (
    RIGHT_CREDENTIALS,
    WEBHOOKS,
    RecordedWebhook,
    not_in_test,
    not_registered,
    reply_to,
)

_HTML: Final = (("content-type", "text/html; charset=utf-8"),)
_EDITOR: Final = b'<!DOCTYPE html>\n<html lang="en"><head><title>n8n</title></head></html>'
"""In place of the editor, a page that n8n gives for every address that it does not know."""


@dataclass(slots=True)
class HeldWebhook:
    """A webhook that does not answer for now."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """It is set by the first request."""
    released: asyncio.Event = field(default_factory=asyncio.Event)


class RecordedN8n:
    """Replays a real n8n 2.41.1 on 127.0.0.1: its public API, its MCP server, its webhooks.

    async with RecordedN8n(active=["get_weather"]) as r:
        async with N8nTools(r.base_url, api_key=r.api_key) as n: ...
        r.activate("list_events")

    A webhook answers with the recorded status, type and body. If the body depends on the request,
    the workflow's own expression computes it (expressions.py), so `get_weather` answers for any
    city, always sunny. A webhook that was not recorded answers 501. Refusals of the APIs (401, 404,
    429) have n8n's status and no recorded body. Some workflows were recorded by the public API
    only, and only that tells of them.

    The key and the token are the replay's own and guard nothing.
    """

    def __init__(
        self, port: int = 0, *, active: Iterable[str] | None = None, pace: float = 0.0
    ) -> None:
        """`active` are the names of the workflows to begin with, None for all.

        `pace` is 1.0 for replies as slow as they were recorded, 0.0 for replies at once.
        """
        self.instance = ReplayedInstance(active)
        self.public_api = ReplayedPublicApi(self.instance)
        self.mcp = ReplayedMcpServer(self.instance)
        self.base_url = ""
        self.mcp_token = MCP_TOKEN
        self.api_key = API_KEY
        self.webhook_headers: Mapping[str, tuple[str, str]] = RIGHT_CREDENTIALS
        """Credentials that its webhooks take, by kind: `header auth`, `basic`, `jwt`."""
        self.requests: list[LoopbackRequest] = []
        """All that came in."""
        self._port = port
        self._pace = pace
        self._held: dict[str, HeldWebhook] = {}
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
        """Switch recorded workflows off. Raises KeyError for a name that was not recorded."""
        self.instance.switch(names, on=False)

    @contextmanager
    def hold(self, path: str) -> Generator[HeldWebhook]:
        """Let requests to a webhook wait until the end of the block.

        A path that begins with a slash is one of the server's own, such as `/api/v1/workflows`.
        """
        path = path if path.startswith("/") else f"/webhook/{path}"
        held = self._held[path] = HeldWebhook()
        try:
            yield held
        finally:
            del self._held[path]
            held.released.set()

    async def _answer(self, request: LoopbackRequest) -> LoopbackResponse:
        self.requests.append(request)
        if (held := self._held.get(request.path)) is not None:
            held.reached.set()
            await held.released.wait()
        if request.path.startswith(API_PREFIX) and request.method == "GET":
            return self.public_api.answer(request)
        if request.path == MCP_PATH:
            return self.mcp.answer(request, self.base_url)
        _, _, path = request.path.partition("/webhook/")
        if request.path.startswith("/webhook/") and path:
            if request.method == "OPTIONS":
                return LoopbackResponse(204)
            return await self._answer_webhook(request, path)
        if request.path.startswith("/webhook-test/"):
            return _response(not_in_test(request.path.removeprefix("/webhook-test/")))
        if request.method == "GET":
            return LoopbackResponse(200, _EDITOR, _HTML)
        return LoopbackResponse(404, f"Cannot {request.method} {request.path}".encode(), _HTML)

    async def _answer_webhook(self, request: LoopbackRequest, path: str) -> LoopbackResponse:
        other_method = None
        for webhook in WEBHOOKS:
            params = webhook.match(path)
            if params is None or not self.instance.is_active(webhook.workflow):
                continue
            if webhook.method == request.method:
                reply = reply_to(webhook, request, params, self.base_url)
                await asyncio.sleep(self._pace * reply.ms / 1000)
                self._record_run(webhook, request, reply)
                return _response(reply)
            other_method = webhook
        if other_method is None and self.instance.has_unrecorded_webhook(path):
            plain = (("content-type", "text/plain"),)
            return LoopbackResponse(501, b"This webhook was not recorded.", plain)
        return _response(not_registered(request, path, other_method))

    def _record_run(
        self, webhook: RecordedWebhook, request: LoopbackRequest, reply: RecordedReply
    ) -> None:
        executions, workflow_id = self.public_api.executions, self.instance.id_of(webhook.workflow)
        if webhook.path in RECORDED_FAILURES:
            executions.add_failure(workflow_id, request)
        elif reply.status == 200:
            executions.add_success(workflow_id, self._pace * reply.ms)


def _response(reply: RecordedReply) -> LoopbackResponse:
    headers = (("content-type", reply.content_type), ("www-authenticate", reply.www_authenticate))
    return LoopbackResponse(
        reply.status, reply.body, tuple((n, v) for n, v in headers if v is not None)
    )
