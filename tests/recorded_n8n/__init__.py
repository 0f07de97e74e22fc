"""RecordedN8n: the replay, with all that tests ask of an n8n beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.recorded_n8n.executions import RECORDED_FAILURES, ReplayedExecutions
from tests.recorded_n8n.instance import ChangingInstance
from tests.recorded_n8n.mcp_server import MCP_PATH, MCP_TOKEN, RecordedMcpServer
from tests.recorded_n8n.replay import ReplayedN8n
from tests.recorded_n8n.replay.loopback import LoopbackRequest, LoopbackResponse
from tests.recorded_n8n.replay.recordings import RecordedReply
from tests.recorded_n8n.replay.replayed_n8n import http_response
from tests.recorded_n8n.replay.webhooks import RIGHT_CREDENTIALS, RecordedWebhook, changed_reply

WRONG_CREDENTIALS: Final[Mapping[str, str]] = {
    "header auth": "wrong",
    "basic": "Basic d3Jvbmc6d3Jvbmc=",
    "jwt": "Bearer no.real.token",
}
"""Credentials of the right form that open nothing. n8n takes other forms for none at all."""


@dataclass(slots=True)
class HeldWebhook:
    """A webhook that does not answer for now."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """It is set by the first request."""
    released: asyncio.Event = field(default_factory=asyncio.Event)


class RecordedN8n(ReplayedN8n):
    """Replays an n8n whose workflows change, with its MCP server and its records of runs.

    async with RecordedN8n(active=["get_weather"]) as r:
        async with N8nTools(r.base_url, mcp_token=r.mcp_token) as n: ...
        r.activate("list_events")

    Some workflows were recorded by the public API only, and only that tells of them.
    """

    instance: ChangingInstance

    def __init__(
        self, port: int = 0, *, active: Iterable[str] | None = None, pace: float = 0.0
    ) -> None:
        super().__init__(port, active=active, pace=pace)
        self.mcp = RecordedMcpServer(self.instance)
        self.mcp_token = MCP_TOKEN
        self.executions = ReplayedExecutions()
        self.public_api.list_executions = self.executions.page
        self.webhook_headers: Mapping[str, tuple[str, str]] = RIGHT_CREDENTIALS
        """Credentials that its webhooks take, by kind: `header auth`, `basic`, `jwt`."""
        self.requests: list[LoopbackRequest] = []
        """All that came in."""
        self._held: dict[str, HeldWebhook] = {}

    def make_instance(self, active: Iterable[str] | None) -> ChangingInstance:
        return ChangingInstance(active)

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

    async def answer(self, request: LoopbackRequest) -> LoopbackResponse:
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
            return http_response(changed_reply("test url", {"get_weather": path}))
        return await super().answer(request)

    def on_reply(
        self, webhook: RecordedWebhook, request: LoopbackRequest, reply: RecordedReply
    ) -> None:
        workflow_id = self.instance.id_of(webhook.workflow)
        if webhook.path in RECORDED_FAILURES:
            self.executions.add_failure(workflow_id, request)
        elif reply.status == 200:
            self.executions.add_success(workflow_id, self.pace * reply.ms)
