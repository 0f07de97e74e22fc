"""RecordedN8n: the recordings of a real n8n 2.41.1 as a server, with all that tests ask of one."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from tests.recorded_n8n.executions import RECORDED_FAILURES, ReplayedExecutions
from tests.recorded_n8n.instance import RecordedInstance
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer
from tests.recorded_n8n.mcp_server import MCP_PATH, MCP_TOKEN, RecordedMcpServer
from tests.recorded_n8n.public_api import API_KEY, API_PREFIX, ReplayedPublicApi
from tests.recorded_n8n.recordings import RecordedReply
from tests.recorded_n8n.webhooks import (
    RIGHT_CREDENTIALS,
    WEBHOOKS,
    RecordedWebhook,
    changed_reply,
    not_registered,
    reply_to,
)

WRONG_CREDENTIALS: Final[Mapping[str, str]] = {
    "header auth": "wrong",
    "basic": "Basic d3Jvbmc6d3Jvbmc=",
    "jwt": "Bearer no.real.token",
}
"""Credentials of the right form that open nothing. n8n takes other forms for none at all."""
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
    """Replays an n8n on 127.0.0.1: its public API, its MCP server, its webhooks, its records of
    runs; its workflows may change.

    async with RecordedN8n(active=["get_weather"]) as r:
        async with N8nTools(r.base_url, mcp_token=r.mcp_token) as n: ...
        r.activate("list_events")

    A webhook answers with the recorded status, type and body. If the body depends on the request,
    the workflow's own expression computes it (expressions.py), so `get_weather` answers for any
    city, always sunny. A webhook that was not recorded answers 501. Refusals of the API (401, 404)
    have n8n's status and no recorded body. Some workflows were recorded by the public API only, and
    only that tells of them. The keys are the replay's own and guard nothing.
    """

    def __init__(
        self, port: int = 0, *, active: Iterable[str] | None = None, pace: float = 0.0
    ) -> None:
        """`active` are the names of the workflows to begin with, None for all.

        `pace` is 1.0 for replies as slow as they were recorded, 0.0 for replies at once. Raises
        KeyError for a name that was not recorded.
        """
        self.instance = RecordedInstance(active)
        self.executions = ReplayedExecutions()
        self.public_api = ReplayedPublicApi(self.instance, self.executions)
        self.mcp = RecordedMcpServer(self.instance)
        self.base_url = ""
        self.api_key = API_KEY
        self.mcp_token = MCP_TOKEN
        self.pace = pace
        self.webhook_headers: Mapping[str, tuple[str, str]] = RIGHT_CREDENTIALS
        """Credentials that its webhooks take, by kind: `header auth`, `basic`, `jwt`."""
        self.requests: list[LoopbackRequest] = []
        """All that came in."""
        self._held: dict[str, HeldWebhook] = {}
        self._port = port
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
        if request.path == MCP_PATH:
            return self.mcp.answer(request, self.base_url)
        if request.path.startswith("/webhook/") and request.method == "OPTIONS":
            return LoopbackResponse(204)
        if request.path.startswith("/webhook-test/"):
            # Nobody is listening there.
            path = request.path.removeprefix("/webhook-test/")
            return _http_response(changed_reply("test url", {"get_weather": path}))
        if request.path.startswith(API_PREFIX) and request.method == "GET":
            return self.public_api.answer(request)
        _, _, path = request.path.partition("/webhook/")
        if request.path.startswith("/webhook/") and path:
            return await self._answer_webhook(request, path)
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
                await asyncio.sleep(self.pace * reply.ms / 1000)
                self._record_run(webhook, request, reply)
                return _http_response(reply)
            other_method = webhook
        if other_method is None and self.instance.has_unrecorded_webhook(path):
            plain = (("content-type", "text/plain"),)
            return LoopbackResponse(501, b"This webhook was not recorded.", plain)
        return _http_response(not_registered(request, path, other_method))

    def _record_run(
        self, webhook: RecordedWebhook, request: LoopbackRequest, reply: RecordedReply
    ) -> None:
        workflow_id = self.instance.id_of(webhook.workflow)
        if webhook.path in RECORDED_FAILURES:
            self.executions.add_failure(workflow_id, request)
        elif reply.status == 200:
            self.executions.add_success(workflow_id, self.pace * reply.ms)


def _http_response(reply: RecordedReply) -> LoopbackResponse:
    headers = (("content-type", reply.content_type), ("www-authenticate", reply.www_authenticate))
    return LoopbackResponse(
        reply.status, reply.body, tuple((n, v) for n, v in headers if v is not None)
    )
