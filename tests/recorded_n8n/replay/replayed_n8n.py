"""ReplayedN8n: the recordings as a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, Self

from tests.recorded_n8n.replay.instance import ReplayedInstance
from tests.recorded_n8n.replay.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer
from tests.recorded_n8n.replay.public_api import API_KEY, API_PREFIX, ReplayedPublicApi
from tests.recorded_n8n.replay.recordings import RecordedReply
from tests.recorded_n8n.replay.webhooks import (
    WEBHOOKS,
    RecordedWebhook,
    not_registered,
    reply_to,
)

_HTML: Final = (("content-type", "text/html; charset=utf-8"),)
_EDITOR: Final = b'<!DOCTYPE html>\n<html lang="en"><head><title>n8n</title></head></html>'
"""In place of the editor, a page that n8n gives for every address that it does not know."""


class ReplayedN8n:
    """Replays a real n8n 2.41.1 on 127.0.0.1: its public API and its webhooks.

    async with ReplayedN8n(active=["get_weather"]) as r:
        async with N8nTools(r.base_url, api_key=r.api_key) as n: ...

    A webhook answers with the recorded status, type and body. If the body depends on the request,
    the workflow's own expression computes it (expressions.py), so `get_weather` answers for any
    city, always sunny. A webhook that was not recorded answers 501. Refusals of the API (401, 404)
    have n8n's status and no recorded body. The key is the replay's own and guards nothing.
    """

    def __init__(
        self, port: int = 0, *, active: Iterable[str] | None = None, pace: float = 0.0
    ) -> None:
        """`active` are the names of the workflows to begin with, None for all.

        `pace` is 1.0 for replies as slow as they were recorded, 0.0 for replies at once. Raises
        KeyError for a name that was not recorded.
        """
        self.instance = self.make_instance(active)
        self.public_api = ReplayedPublicApi(self.instance)
        self.base_url = ""
        self.api_key = API_KEY
        self.pace = pace
        self._port = port
        self._server = LoopbackServer(self.answer)

    def make_instance(self, active: Iterable[str] | None) -> ReplayedInstance:
        return ReplayedInstance(active)

    async def __aenter__(self) -> Self:
        self.base_url = f"http://127.0.0.1:{await self._server.start(self._port)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every connection, whatever it is waiting for."""
        await self._server.aclose()

    async def answer(self, request: LoopbackRequest) -> LoopbackResponse:
        """Answer any request."""
        if request.path.startswith(API_PREFIX) and request.method == "GET":
            return self.public_api.answer(request)
        _, _, path = request.path.partition("/webhook/")
        if request.path.startswith("/webhook/") and path:
            return await self._answer_webhook(request, path)
        if request.method == "GET":
            return LoopbackResponse(200, _EDITOR, _HTML)
        return LoopbackResponse(404, f"Cannot {request.method} {request.path}".encode(), _HTML)

    def on_reply(
        self, webhook: RecordedWebhook, request: LoopbackRequest, reply: RecordedReply
    ) -> None:
        """This is called with each reply of a webhook; the replay keeps no record of it."""

    async def _answer_webhook(self, request: LoopbackRequest, path: str) -> LoopbackResponse:
        other_method = None
        for webhook in WEBHOOKS:
            params = webhook.match(path)
            if params is None or not self.instance.is_active(webhook.workflow):
                continue
            if webhook.method == request.method:
                reply = reply_to(webhook, request, params, self.base_url)
                await asyncio.sleep(self.pace * reply.ms / 1000)
                self.on_reply(webhook, request, reply)
                return http_response(reply)
            other_method = webhook
        if other_method is None and self.instance.has_unrecorded_webhook(path):
            plain = (("content-type", "text/plain"),)
            return LoopbackResponse(501, b"This webhook was not recorded.", plain)
        return http_response(not_registered(request, path, other_method))


def http_response(reply: RecordedReply) -> LoopbackResponse:
    headers = (("content-type", reply.content_type), ("www-authenticate", reply.www_authenticate))
    return LoopbackResponse(
        reply.status, reply.body, tuple((n, v) for n, v in headers if v is not None)
    )
