"""The wire formats of Claude and Gemini, as LiveKit's plugins and the vendors' own clients read
them (docs.anthropic.com/en/api/messages-streaming, ai.google.dev/api/generate-content).

Each answers from a script, and refuses what its service refuses: a wrong key, a model that it does
not have, a tool's result without its call, and for Gemini 3 a call without its signature.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Final, Self

from aiohttp import web

from tests.stand_ins.stand_in_model import Call

KEY: Final = "a-key-of-the-owner"
MODEL: Final = "gemini-3-stand-in"
"""A name by which Google's plugin keeps the signatures of calls."""
Reply = str | Call


class CloudStandIn:
    """Both services on one port of the loopback, for as long as it is entered."""

    def __init__(self, *replies: Reply) -> None:
        self._script = list(replies)
        self.chats: list[dict[str, Any]] = []
        """The bodies of the requests for a reply that were accepted."""
        app = web.Application()
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_post("/{version}/models/{call}", self._google)
        self._runner = web.AppRunner(app)
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    # -- Claude ------------------------------------------------------------------------------

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if request.headers.get("x-api-key") != KEY:
            return _anthropic_error(401, "authentication_error", "invalid x-api-key")
        if body["model"] != MODEL:
            return _anthropic_error(404, "not_found_error", f"model: {body['model']}")
        if problem := _unpaired(body["messages"]):
            return _anthropic_error(400, "invalid_request_error", problem)
        self.chats.append(body)
        return await _stream(request, _anthropic_events(self._script.pop(0), len(self.chats)))

    # -- Gemini ------------------------------------------------------------------------------

    async def _google(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        model, _, method = request.match_info["call"].partition(":")
        assert method == "streamGenerateContent"
        if request.headers.get("x-goog-api-key") != KEY:
            return _google_error(400, "API key not valid. Please pass a valid API key.")
        if model != MODEL:
            said = f"models/{model} is not found for API version v1beta, or is not supported."
            return _google_error(404, said, "NOT_FOUND")
        for place, content in enumerate(body["contents"], 1):
            for part in content["parts"]:
                if "functionCall" in part and "thoughtSignature" not in part:
                    name = part["functionCall"]["name"]
                    said = f"Function call `{name}` in the {place}. content block is missing a"
                    return _google_error(400, f"{said} `thought_signature`.")
        self.chats.append(body)
        events = [(None, each) for each in _google_events(self._script.pop(0))]
        return await _stream(request, events)


async def _stream(
    request: web.Request, events: Iterable[tuple[str | None, Any]]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for kind, data in events:
        head = f"event: {kind}\n" if kind else ""
        await response.write(f"{head}data: {json.dumps(data)}\r\n\r\n".encode())
    await response.write_eof()
    return response


def _anthropic_error(status: int, kind: str, message: str) -> web.Response:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return web.json_response(error, status=status)


def _google_error(status: int, message: str, kind: str = "INVALID_ARGUMENT") -> web.Response:
    error = {"code": status, "message": message, "status": kind}
    return web.json_response({"error": error}, status=status)


def _unpaired(messages: list[dict[str, Any]]) -> str | None:
    """What Anthropic says of calls without their results right behind them."""
    for place, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        used = {block["id"] for block in blocks if block["type"] == "tool_use"}
        following = messages[place + 1]["content"] if place + 1 < len(messages) else []
        if used - {block.get("tool_use_id") for block in following}:
            return f"messages.{place}: `tool_use` ids were found without `tool_result` blocks"
    return None


def _anthropic_events(reply: Reply, number: int) -> Iterable[tuple[str, Any]]:
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL}
    usage = {"input_tokens": 25, "output_tokens": 1}
    whole = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": whole}
    if isinstance(reply, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": word} for word in reply.partition(" ") if word]
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": reply.name, "input": {}}
        text = json.dumps(reply.arguments)
        pieces = (text[:5], text[5:])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    begin = {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_start", begin
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    why = {"stop_reason": "end_turn" if isinstance(reply, str) else "tool_use"}
    end = {"delta": {**why, "stop_sequence": None}, "usage": {"output_tokens": 15}}
    yield "message_delta", {"type": "message_delta", **end}
    yield "message_stop", {"type": "message_stop"}


def _google_events(reply: Reply) -> Iterable[dict[str, Any]]:
    if isinstance(reply, str):
        parts: list[dict[str, Any]] = [{"text": word} for word in reply.partition(" ") if word]
    else:
        signature = base64.b64encode(f"signed {reply.name}".encode()).decode()
        call = {"name": reply.name, "args": reply.arguments}
        parts = [{"functionCall": call, "thoughtSignature": signature}]
    counts = {"promptTokenCount": 25, "candidatesTokenCount": 15, "totalTokenCount": 40}
    for place, part in enumerate(parts):
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if place == len(parts) - 1:
            candidate["finishReason"] = "STOP"
        yield {"candidates": [candidate], "usageMetadata": counts, "modelVersion": MODEL}
