"""The webhooks that were recorded, and how each request finds its reply."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from caal_node.demo.n8n_replay.expressions import EXPRESSIONS, Item, stringify
from caal_node.demo.n8n_replay.loopback import Request, named
from caal_node.demo.n8n_replay.recordings import Recorded, Tape

RIGHT: Final[Mapping[str, tuple[str, str]]] = {
    "header auth": ("x-recorded-key", "recorded-header-value"),
    "basic": ("authorization", "Basic cmVjb3JkZWQ6cmVjb3JkZWQ="),
    "jwt": ("authorization", "Bearer recorded.token.signature"),
}
"""What the replay takes for the right credential; the real ones were not kept."""
WRONG: Final[Mapping[str, str]] = {
    "header auth": "wrong",
    "basic": "Basic d3Jvbmc6d3Jvbmc=",
    "jwt": "Bearer no.real.token",
}
"""Credentials of the right form that open nothing. n8n takes other forms for none at all."""


@dataclass(frozen=True, slots=True)
class Hook:
    workflow: str
    path: str
    """As in EXPRESSIONS, which computes the body where it has the path."""
    label: str
    """The exchange that is replayed: its status, its type, and its body where none is computed."""
    method: str = "POST"
    prefix: str = ""
    """The webhookId that a path with placeholders is registered under."""
    auth: str | None = None
    """A key of RIGHT."""

    def match(self, path: str) -> dict[str, str] | None:
        """The placeholders' values; None when the path is another one."""
        wanted, got = f"{self.prefix}{self.path}".split("/"), path.removesuffix("/").split("/")
        if len(wanted) != len(got):
            return None
        pairs = list(zip(wanted, got, strict=True))
        if any(w != g for w, g in pairs if not w.startswith(":")):
            return None
        return {w[1:]: g for w, g in pairs if w.startswith(":")}


HOOKS: Final = (
    Hook("get_weather", "get_weather", "ok first"),
    Hook("list_events", "list_events", "lastNode allEntries"),
    Hook(
        "get_order",
        "orders/:orderId",
        "dynamic path",
        "GET",
        prefix="2261997c-dafe-5e37-9d9f-e97428b77a44/",
    ),
    Hook("Convert Units", "units/convert", "real path lastNode"),
    Hook("echo", "echo", "echo json"),
    Hook("slow_report", "slow_report", "slow 8s"),
    Hook("all_items", "all_items", "respond allItems"),
    Hook("text_answer", "text_answer", "text"),
    Hook("stream_steps", "stream_steps", "streamed"),
    Hook("no_data", "no_data", "noData"),
    Hook("binary_out", "binary_out", "binary"),
    Hook("fire_and_forget", "fire_and_forget", "immediate"),
    Hook("never_responds", "never_responds", "respond never reached"),
    Hook("zero_items", "zero_items", "zero items lastNode"),
    Hook("fails_respond_node", "fails_respond_node", "fail respond node"),
    Hook("fails_last_node", "fails_last_node", "fail last node"),
    Hook("fails_handled", "fails_handled", "handled 422"),
    Hook("timeout_2s", "timeout_2s", "timeout_2s"),
    Hook("secure_lookup", "secure_lookup", "header auth ok", auth="header auth"),
    Hook("basic_lookup", "basic_lookup", "basic ok", auth="basic"),
    Hook("jwt_lookup", "jwt_lookup", "jwt ok", auth="jwt"),
    Hook("multi_trigger", "multi_a", "multi a"),
    Hook("multi_trigger", "multi_b", "multi b"),
    Hook("hidden_one", "hidden_one", "hidden (mcp off)"),
)


def answer(
    tape: Tape, hook: Hook, request: Request, params: Mapping[str, str], base_url: str
) -> Recorded:
    """The recorded reply, or what the workflow's expression gives for this request."""
    if (refusal := _refused(tape, hook, request)) is not None:
        return refusal
    try:
        body = _body(request)
    except ValueError:
        # The hint in it is about the recorded request's mistake, whatever this one's is.
        return tape.exchanges["echo invalid json"].reply
    recorded = tape.exchanges[hook.label].reply
    expression = EXPRESSIONS.get(hook.path)
    if expression is None:
        return recorded
    url = f"{base_url}/webhook/{hook.prefix}{hook.path}"
    computed = stringify(expression.evaluate(Item(request, body, params, url)))
    return replace(recorded, body=computed.encode(errors="backslashreplace"))


def not_registered(tape: Tape, request: Request, path: str, elsewhere: Hook | None) -> Recorded:
    """n8n's 404, with this request's method and path in place of the recorded one's."""
    if elsewhere is not None:
        reply = tape.exchanges["GET on POST hook"].reply
        return _put(reply, {"for GET": f"for {request.method}", "a POST": f"a {elsewhere.method}"})
    return _put(tape.exchanges["unregistered"].reply, {"POST nope": f"{request.method} {path}"})


def not_in_test(tape: Tape, path: str) -> Recorded:
    """The answer of /webhook-test/, where nobody is listening."""
    return _put(tape.exchanges["test url"].reply, {"get_weather": path})


def _refused(tape: Tape, hook: Hook, request: Request) -> Recorded | None:
    if hook.auth is None:
        return None
    name, value = RIGHT[hook.auth]
    got = request.header(name) or ""
    if got == value:
        return None
    token = got.partition(" ")[2]
    if hook.auth == "jwt" and token:
        reply = tape.exchanges["jwt bad"].reply
        return replace(reply, body=_said_of(token).encode())
    is_one = hook.auth == "header auth" or (hook.auth == "basic" and _is_basic(got))
    return tape.exchanges[f"{hook.auth} {'wrong' if is_one else 'missing'}"].reply


def _said_of(token: str) -> str:
    parts = token.split(".")
    if len(parts) != 3:
        return "jwt malformed"
    return "invalid signature" if _decoded(parts[0])[:1] == b"{" else "invalid token"


def _is_basic(header: str) -> bool:
    scheme, _, pair = header.partition(" ")
    return scheme.lower() == "basic" and b":" in _decoded(pair)


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""


def _body(request: Request) -> Any:
    """What a Webhook node hands on as `body`. Raises ValueError for what is no JSON."""
    kind = (request.header("content-type") or "").partition(";")[0]
    text = request.body.decode("utf-8", errors="replace")
    if kind == "application/x-www-form-urlencoded":
        return named(text)
    if kind == "text/plain":
        return text
    return ({} if (told := json.loads(text)) is None else told) if text and "json" in kind else {}


def _put(reply: Recorded, changes: Mapping[str, str]) -> Recorded:
    body = reply.body.decode()
    for old, new in changes.items():
        body = body.replace(old, json.dumps(new, ensure_ascii=False)[1:-1])
    return replace(reply, body=body.encode())
