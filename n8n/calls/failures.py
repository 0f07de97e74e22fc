"""What a webhook's refusal means: n8n's own errors, a proxy's, and those that authors send.

n8n's own replies, as seen on 2.41.1, are told from those of authors: nobody meant them to be heard.
Its errors have `code` and `message`, and a `stacktrace` outside production; three replies have a
`message` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from n8n.core.errors import CallFailure, N8nError
from n8n.core.http import HttpResponse
from n8n.core.json_values import LONG_BYTES, mapping, parse_json
from n8n.core.text import clip, one_line, text_of_html
from n8n.core.workflow_tool import WorkflowTool

MAX_SPOKEN_CHARS: Final = 1_000
"""About a minute of speech."""
MAX_ERROR_CHARS: Final = 300
"""How much of an author's own error the model is told."""
MAX_MESSAGE_CHARS: Final = 1_000
"""How much of n8n's own message is looked at: it names a webhook at most."""
SEE_EXECUTION: Final = "look at its latest execution in n8n"
"""The fix where n8n's answer does not say what went wrong."""
_NODE_FAILED: Final = "Error in workflow"
"""A node failed; only the record of the run says which, and why."""
_NO_DATA: Final = (
    "Workflow executed successfully but no data was returned",
    "Workflow executed successfully but the last node did not return any data",
)
"""These come with a 200."""
_NO_ITEM: Final = (
    "No item to return was found",
    "No item was found to return",
    "No binary data was found to return",
)
_NO_RESPOND_NODE: Final = "No Respond to Webhook node found in the workflow"
_NOT_ALLOWED: Final = "IP is not allowed to access the webhook!"
_NOT_REGISTERED: Final = re.compile(r"webhook .{0,200}is not registered\.")
_WRONG_METHOD: Final = re.compile(r"not registered for \w+ requests")
_CHALLENGE: Final = 'Basic realm="Webhook"'
"""It comes with each refusal of a Webhook node's own, whatever its kind of authentication."""
_ERROR_KEYS: Final = frozenset(("code", "message", "hint", "stacktrace"))
_HIDDEN_KEYS: Final = frozenset(("stacktrace", "stack", "hint", "code"))
"""The fields of an n8n error that are not for a model."""


def is_builtin_reply(body: Mapping[str, Any]) -> bool:
    """Whether n8n wrote this reply, and not the workflow's author."""
    message = body.get("message")
    if set(body) == {"message"}:
        return message == _NODE_FAILED or message in _NO_DATA
    return body.get("code") == 0 and "message" in body and body.keys() <= _ERROR_KEYS


def failure_of(tool: WorkflowTool, response: HttpResponse) -> N8nError:
    """Return the error for a response that is not a 2xx."""
    body = mapping(_json(response))
    message = str(_first_line(str(body.get("message") or "")[:MAX_MESSAGE_CHARS]))
    kind, told, fix = _classify(tool, response, body, message)
    return N8nError(
        kind,
        told,
        status=response.status,
        fix=fix,
        retry_after_s=response.retry_after_s if response.status == 429 else None,
        spoken=words_to_speak(body, tool) if kind in ("rejected", "workflow_failed") else None,
    )


def run_failed(tool: WorkflowTool, status: int) -> N8nError:
    """Return the error for a run of which the reply says no more than that it failed."""
    message = f"{tool.name} failed while it was running."
    return N8nError("workflow_failed", message, status=status, fix=SEE_EXECUTION)


def packed(tool: WorkflowTool, response: HttpResponse) -> N8nError:
    """Return the error for a result that came compressed, which is not read."""
    return N8nError(
        "workflow_failed",
        f"{tool.name} sent its answer packed ({response.packing}), so it cannot be read. It may "
        "have done its work: do not call it again for the same thing.",
        status=response.status,
        fix="switch compression off in the workflow's answer, or in the proxy before n8n",
    )


def words_to_speak(body: Mapping[str, Any], tool: WorkflowTool) -> str | None:
    """Return what a person is to hear as it stands, if the author's notes say `Speak: field`."""
    words = None if is_builtin_reply(body) else body.get(tool.spoken_field or "")
    return one_line(words, MAX_SPOKEN_CHARS) or None if isinstance(words, str) else None


def _classify(
    tool: WorkflowTool, response: HttpResponse, body: Mapping[str, Any], message: str
) -> tuple[CallFailure, str, str | None]:
    """Return the kind of a failure, what the model is told, and the fix for a person."""
    status, name = response.status, tool.name
    if status == 404 and _WRONG_METHOD.search(message):
        fix = f"its webhook does not take {tool.method} any more: reload the tools"
        return "wrong_method", f"{name} has changed and cannot be called now.", fix
    if status == 404 and _NOT_REGISTERED.search(message):
        fix = "the workflow is inactive or its path has changed: activate it, reload the tools"
        return "not_registered", f"{name} is switched off at the moment.", fix
    is_challenge = response.headers.get("www-authenticate") == _CHALLENGE
    if status in (401, 403) and (tool.auth_kind != "none" or is_challenge):
        fix = f"its webhook wants {tool.auth_kind} credentials: configure them for {tool.path}"
        if tool.auth_kind == "none":
            fix = "its webhook wants credentials by now, or has `Ignore Bots` on: reload the tools"
        return "auth", f"{name} refused this assistant's credentials.", fix
    if status == 403 and _plain_text(response) == _NOT_ALLOWED:
        fix = "the option IP(s) Allowlist of its webhook does not list this machine"
        return "auth", f"{name} does not take calls from this assistant's machine.", fix
    if status == 429:
        return "rate_limited", f"{name} takes no more calls for a while.", None
    if status == 422 and message == "Failed to parse request body":
        return "invalid_arguments", f"n8n could not read the arguments of {name}.", None
    if 300 <= status < 400:
        fix = "a redirect is not followed: let the workflow answer with data"
        return "redirected", f"{name} answered with a redirect instead of a result.", fix
    if status < 500 and is_builtin_reply(body):
        told = f"{name} cannot run ({message[:MAX_ERROR_CHARS]})."
        return "workflow_failed", told, message
    if status < 500:
        return "rejected", f"{name} refused the call ({status}): {_own_error(response)}", None
    if "timed out" in message:
        fix = "the workflow hit its own time limit (Settings > Timeout)"
        return "workflow_timeout", f"{name} took too long and was stopped by n8n.", fix
    if message == _NO_RESPOND_NODE:
        fix = "add a Respond to Webhook node, or set Respond to `When Last Node Finishes`"
        return "workflow_failed", f"{name} has no node that answers.", fix
    if message in _NO_ITEM:
        fix = "its last node had no items: let it always output data, or use a Respond node"
        return "workflow_failed", f"{name} ended without a result.", fix
    if message in (_NODE_FAILED, "") or "problem executing the workflow" in message:
        own = "" if message or not body else _own_error(response)
    else:
        own = message[:MAX_ERROR_CHARS]
    if own:
        told = f"{name} failed while it was running ({own})."
        return "workflow_failed", told, "its own answer is an error"
    return "workflow_failed", f"{name} failed while it was running.", SEE_EXECUTION


def _own_error(response: HttpResponse) -> str:
    """Return an author's own error for the model."""
    value = _json(response)
    if isinstance(value, dict):
        fields = mapping(cast(object, value)).items()
        kept = {k: _first_line(v) for k, v in fields if k not in _HIDDEN_KEYS}
        try:
            text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            text = _plain_text(response)
    else:
        text = _plain_text(response)
    return clip(text, MAX_ERROR_CHARS)


def _plain_text(response: HttpResponse) -> str:
    text = response.body[:4096].decode("utf-8", errors="replace")
    if response.media_type == "text/html" or text.lstrip().startswith("<"):
        text = text_of_html(text)
    return str(_first_line(text.strip()))


def _first_line(value: object) -> object:
    # Further lines of a text are where stack traces stand.
    return (value.splitlines() or [""])[0].strip() if isinstance(value, str) else value


def _json(response: HttpResponse) -> Any:
    if not response.is_text or len(response.body) > LONG_BYTES:
        return None
    try:
        return parse_json(response.body)
    except (ValueError, RecursionError):
        return None
