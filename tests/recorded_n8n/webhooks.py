"""The webhooks that were recorded, and how each request finds its reply."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.recorded_n8n.expressions import EXPRESSIONS, WebhookItem, stringify
from tests.recorded_n8n.loopback import LoopbackRequest, form_values
from tests.recorded_n8n.recordings import RecordedReply, load_recordings

RIGHT_CREDENTIALS: Final[Mapping[str, tuple[str, str]]] = {
    "header auth": ("x-recorded-key", "recorded-header-value"),
    "basic": ("authorization", "Basic cmVjb3JkZWQ6cmVjb3JkZWQ="),
    "jwt": ("authorization", "Bearer recorded.token.signature"),
}
"""What the replay takes for the right credential; the real ones were not kept."""


@dataclass(frozen=True, slots=True)
class RecordedWebhook:
    """A webhook of a recorded workflow."""

    workflow: str
    path: str
    """Its key in EXPRESSIONS, which computes the body if it has the path."""
    label: str
    """The exchange that is replayed: its status, its type, and its body if none is computed."""
    method: str = "POST"
    prefix: str = ""
    """The webhookId that a path with placeholders is registered under."""
    auth: str | None = None
    """A key of RIGHT_CREDENTIALS."""

    def match(self, path: str) -> dict[str, str] | None:
        """Return the placeholders' values; None if the path is another one."""
        wanted, got = f"{self.prefix}{self.path}".split("/"), path.removesuffix("/").split("/")
        if len(wanted) != len(got):
            return None
        pairs = list(zip(wanted, got, strict=True))
        if any(w != g for w, g in pairs if not w.startswith(":")):
            return None
        return {w[1:]: g for w, g in pairs if w.startswith(":")}


WEBHOOKS: Final = (
    RecordedWebhook("get_weather", "get_weather", "ok first"),
    RecordedWebhook("list_events", "list_events", "lastNode allEntries"),
    RecordedWebhook(
        "get_order",
        "orders/:orderId",
        "dynamic path",
        "GET",
        prefix="2261997c-dafe-5e37-9d9f-e97428b77a44/",
    ),
    RecordedWebhook("Convert Units", "units/convert", "real path lastNode"),
    RecordedWebhook("echo", "echo", "echo json"),
    RecordedWebhook("slow_report", "slow_report", "slow 8s"),
    RecordedWebhook("all_items", "all_items", "respond allItems"),
    RecordedWebhook("text_answer", "text_answer", "text"),
    RecordedWebhook("stream_steps", "stream_steps", "streamed"),
    RecordedWebhook("no_data", "no_data", "noData"),
    RecordedWebhook("binary_out", "binary_out", "binary"),
    RecordedWebhook("fire_and_forget", "fire_and_forget", "immediate"),
    RecordedWebhook("never_responds", "never_responds", "respond never reached"),
    RecordedWebhook("zero_items", "zero_items", "zero items lastNode"),
    RecordedWebhook("fails_respond_node", "fails_respond_node", "fail respond node"),
    RecordedWebhook("fails_last_node", "fails_last_node", "fail last node"),
    RecordedWebhook("fails_handled", "fails_handled", "handled 422"),
    RecordedWebhook("timeout_2s", "timeout_2s", "timeout_2s"),
    RecordedWebhook("secure_lookup", "secure_lookup", "header auth ok", auth="header auth"),
    RecordedWebhook("basic_lookup", "basic_lookup", "basic ok", auth="basic"),
    RecordedWebhook("jwt_lookup", "jwt_lookup", "jwt ok", auth="jwt"),
    RecordedWebhook("multi_trigger", "multi_a", "multi a"),
    RecordedWebhook("multi_trigger", "multi_b", "multi b"),
    RecordedWebhook("hidden_one", "hidden_one", "hidden (mcp off)"),
)


def reply_to(
    webhook: RecordedWebhook, request: LoopbackRequest, params: Mapping[str, str], base_url: str
) -> RecordedReply:
    """Return the recorded reply, or what the workflow's expression gives for this request."""
    if (refusal := _refusal(webhook, request)) is not None:
        return refusal
    try:
        body = _body(request)
    except ValueError:
        # The hint in it is about the recorded request's mistake, whatever this one's is.
        return _recorded("echo invalid json")
    recorded = _recorded(webhook.label)
    expression = EXPRESSIONS.get(webhook.path)
    if expression is None:
        return recorded
    url = f"{base_url}/webhook/{webhook.prefix}{webhook.path}"
    computed = stringify(expression.evaluate(WebhookItem(request, body, params, url)))
    return replace(recorded, body=computed.encode(errors="backslashreplace"))


def not_registered(
    request: LoopbackRequest, path: str, other_method: RecordedWebhook | None
) -> RecordedReply:
    """Return n8n's 404, with this request's method and path in place of the recorded one's."""
    if other_method is None:
        return changed_reply("unregistered", {"POST nope": f"{request.method} {path}"})
    return changed_reply(
        "GET on POST hook",
        {"for GET": f"for {request.method}", "a POST": f"a {other_method.method}"},
    )


def _recorded(label: str) -> RecordedReply:
    return load_recordings().exchanges[label].reply


def changed_reply(label: str, changes: Mapping[str, str]) -> RecordedReply:
    """Return a recorded reply with other words in its body."""
    reply = _recorded(label)
    body = reply.body.decode()
    for old, new in changes.items():
        body = body.replace(old, json.dumps(new, ensure_ascii=False)[1:-1])
    return replace(reply, body=body.encode())


def _refusal(webhook: RecordedWebhook, request: LoopbackRequest) -> RecordedReply | None:
    """Return the reply to a request without the right credential."""
    if webhook.auth is None:
        return None
    name, value = RIGHT_CREDENTIALS[webhook.auth]
    sent = request.headers.get(name, "")
    if sent == value:
        return None
    scheme, _, token = sent.partition(" ")
    if webhook.auth == "jwt" and token:
        return replace(_recorded("jwt bad"), body=_jwt_error(token).encode())
    is_basic = scheme.lower() == "basic" and b":" in _decoded(token)
    has_form = webhook.auth == "header auth" or (webhook.auth == "basic" and is_basic)
    return _recorded(f"{webhook.auth} {'wrong' if has_form else 'missing'}")


def _jwt_error(token: str) -> str:
    parts = token.split(".")
    if len(parts) != 3:
        return "jwt malformed"
    return "invalid signature" if _decoded(parts[0])[:1] == b"{" else "invalid token"


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""


def _body(request: LoopbackRequest) -> Any:
    """Return what a Webhook node hands on as `body`. Raises ValueError for what is no JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    text = request.body.decode("utf-8", errors="replace")
    if kind == "application/x-www-form-urlencoded":
        return form_values(text)
    if kind == "text/plain":
        return text
    value = json.loads(text) if text and "json" in kind else None
    return {} if value is None else value
