"""One call of one webhook: the request, sent once, until a deadline."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from mcp_bridge.core.errors import why_not_permitted
from n8n.calls.results import CallResult, StepCallback, StreamReader, read_reply
from n8n.core.errors import N8nError
from n8n.core.http import exchange
from n8n.core.json_values import SHORT_BYTES
from n8n.core.workflow_tool import BODILESS_METHODS, WorkflowTool, placeholders

MAX_REPLY_BYTES = 1024 * 1024
"""A voice says a few sentences. Reading a mebibyte takes half a second, in a thread."""
MAX_REQUEST_BYTES = 1024 * 1024
MAX_QUERY_CHARS = 6_000
"""Proxies refuse URLs beyond 8 KiB."""


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request with each argument where it travels."""

    path: str
    query: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """What is known of a call that was answered, as far as it helps to find its run."""

    body: bytes | None
    """The request's body."""
    answered_at: str | None
    """The reply's Date header, which is n8n's own clock."""
    took_s: float


def build_request(tool: WorkflowTool, arguments: Mapping[str, Any]) -> WebhookRequest:
    """Put each argument where it travels. Raises N8nError(invalid_arguments)."""
    rest = {name: value for name, value in arguments.items() if value is not None}
    in_path: dict[str, str] = {}
    for name in placeholders(tool.path):
        value = _as_text(rest.pop(name, ""))
        # A dot would lead out of its place in the path.
        if value in ("", ".", ".."):
            raise N8nError("invalid_arguments", f"{tool.name} needs the argument {name!r}.")
        in_path[f":{name}"] = value
    path = "/".join(quote(in_path.get(part, part), safe="") for part in tool.path.split("/"))
    is_bodiless = tool.method in BODILESS_METHODS
    query = {
        name: _as_text(rest.pop(name))
        for name in list(rest)
        if is_bodiless or tool.locations.get(name) == "query"
    }
    try:
        body = None if is_bodiless else json.dumps(rest, ensure_ascii=False, allow_nan=False)
        encoded = None if body is None else body.encode()
    except (TypeError, ValueError, RecursionError):
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are no JSON.") from None
    query_chars = sum(map(len, query.values()))
    if len(encoded or b"") > MAX_REQUEST_BYTES or query_chars > MAX_QUERY_CHARS:
        raise N8nError("invalid_arguments", f"The arguments of {tool.name} are too long.")
    return WebhookRequest(path, query, encoded)


async def call_webhook(
    client: httpx2.AsyncClient,
    base_url: str,
    tool: WorkflowTool,
    arguments: Mapping[str, Any],
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    on_answer: Callable[[AnsweredCall], None] = lambda _: None,
    on_step: StepCallback | None = None,
) -> CallResult:
    """Call a webhook and read its reply. Raises N8nError.

    Nothing is ever sent twice: a workflow that did not answer may have run. `on_answer` is called
    once there is a reply, whatever it is; `on_step` with the words of each step of a streamed
    answer.
    """
    request = build_request(tool, arguments)
    began = time.monotonic()
    if request.body is not None:
        headers = {**headers, "content-type": "application/json"}
    streams = tool.response_mode == "streaming"
    try:
        async with asyncio.timeout(timeout_s):
            response = await exchange(
                client,
                tool.method,
                f"{base_url}/webhook/{request.path}",
                max_bytes=MAX_REPLY_BYTES,
                on_chunk=StreamReader(on_step).feed if on_step and streams else None,
                params=request.query or None,
                content=request.body,
                headers=headers,
            )
            took_s, answered_at = time.monotonic() - began, response.headers.get("date")
            on_answer(AnsweredCall(request.body, answered_at, took_s))
            if len(response.body) > SHORT_BYTES:
                return await asyncio.to_thread(read_reply, tool, response)
            return read_reply(tool, response)
    except TimeoutError:
        raise N8nError(
            "timeout",
            f"{tool.name} did not answer within {timeout_s:g} s. It may still be running: "
            "do not call it again for the same thing.",
        ) from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        if said := why_not_permitted(error):
            raise N8nError("unreachable", f"{tool.name} may not be called: {said}.") from None
        raise N8nError(
            "unreachable", f"{tool.name} cannot be reached: n8n does not answer."
        ) from None
    except (httpx2.TransportError, httpx2.InvalidURL):
        raise N8nError(
            "unreachable",
            f"The connection broke while {tool.name} was running. It may have done its work: "
            "do not call it again for the same thing.",
        ) from None


def _as_text(value: object) -> str:
    """Write a value as a query or a path does: true, 3, plain text; JSON for what is nested."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8", errors="replace").decode()
