"""One call of one webhook: the request, sent once, until a deadline."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from n8n.calls.executions import Sent
from n8n.calls.results import LONG_BYTES, CallResult, read_reply
from n8n.calls.streamed import Steps, Tell
from n8n.core.errors import N8nError
from n8n.core.http import exchange
from n8n.core.workflow_tool import WorkflowTool
from n8n.discovery.webhook_node import fill, placeholders

MAX_REPLY_BYTES = 1024 * 1024
"""A voice says a few sentences. Reading a mebibyte takes a few tenths of a second, in a thread."""
MAX_REQUEST_BYTES = 1024 * 1024
MAX_QUERY_CHARS = 6_000
"""Proxies refuse URLs beyond 8 KiB."""


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    query: Mapping[str, str]
    body: bytes | None


def build_request(tool: WorkflowTool, arguments: Mapping[str, Any]) -> Request:
    """Put each argument in its place. Raises N8nError(invalid_arguments)."""
    rest = {name: value for name, value in arguments.items() if value is not None}
    in_path: dict[str, str] = {}
    for name in placeholders(tool.path):
        value = _text(rest.pop(name, ""))
        if value in ("", ".", ".."):
            raise N8nError("invalid_arguments", f"{tool.name} needs the argument {name!r}.")
        in_path[name] = value
    bodiless = tool.method in ("GET", "HEAD", "DELETE")
    query = {
        name: _text(rest.pop(name))
        for name in list(rest)
        if bodiless or tool.places.get(name) == "query"
    }
    try:
        body = None if bodiless else json.dumps(rest, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are no JSON.") from None
    if (body and len(body) > MAX_REQUEST_BYTES) or sum(map(len, query.values())) > MAX_QUERY_CHARS:
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are too long.")
    return Request(fill(tool.path, in_path), query, body)


async def call_webhook(
    client: httpx2.AsyncClient,
    base_url: str,
    tool: WorkflowTool,
    arguments: Mapping[str, Any],
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    on_sent: Callable[[Sent], None] = lambda _: None,
    on_step: Tell | None = None,
) -> CallResult:
    """Raises N8nError. Nothing is ever sent twice: a workflow that did not answer may have run.

    `on_sent` is told of the exchange once there is a reply, whatever it is; `on_step` of the words
    of each step of a streamed answer.
    """
    request = build_request(tool, arguments)
    began = time.monotonic()
    streams = tool.response_mode == "streaming"
    if request.body is not None:
        headers = {**headers, "content-type": "application/json"}
    try:
        async with asyncio.timeout(timeout_s):
            reply = await exchange(
                client,
                tool.method,
                f"{base_url}/webhook/{request.path}",
                max_bytes=MAX_REPLY_BYTES,
                on_chunk=Steps(on_step).feed if on_step and streams else None,
                params=request.query or None,
                content=request.body,
                headers=headers,
            )
    except TimeoutError:
        raise N8nError(
            "timeout",
            f"{tool.name} did not answer within {timeout_s:g} s. It may still be running: "
            "do not call it again for the same thing.",
        ) from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        raise N8nError(
            "unreachable", f"{tool.name} cannot be reached: n8n does not answer."
        ) from None
    except (httpx2.TransportError, httpx2.InvalidURL):
        raise N8nError(
            "unreachable",
            f"The connection broke while {tool.name} was running. It may have done its work: "
            "do not call it again for the same thing.",
        ) from None
    on_sent(Sent(request.body, reply.headers.get("date"), time.monotonic() - began))
    if len(reply.body) > LONG_BYTES:
        return await asyncio.to_thread(read_reply, tool, reply)
    return read_reply(tool, reply)


def _text(value: object) -> str:
    """As a query or a path says it: true, 3, plain text; JSON for what is nested."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", errors="replace").decode()
