"""What a webhook's refusal means: n8n's own errors, a proxy's, and those that authors send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from n8n.calls.html_text import text_of_html
from n8n.calls.stock import FAILED, NO_ITEM, NO_RESPOND_NODE, NOT_ALLOWED, is_challenge, is_stock
from n8n.core.errors import CallFailure, N8nError
from n8n.core.http import Reply, is_text, retry_after_s
from n8n.core.json_values import mapping, parse_json
from n8n.core.workflow_tool import WorkflowTool

MAX_SPOKEN_CHARS = 1_000
"""About a minute of speech."""
LOOK_AT_RUN = "look at its latest execution in n8n"
"""The mend where n8n's answer does not say what went wrong."""
MAX_TOLD_CHARS = 300
"""Of an author's own error, for the model."""
_SECRETIVE = frozenset(("stacktrace", "stack", "hint", "code"))
"""Of an n8n error: nothing here is for a model."""
_NOT_REGISTERED = re.compile(r"webhook .{0,200}is not registered\.")
_WRONG_METHOD = re.compile(r"not registered for \w+ requests")


def raise_failure(tool: WorkflowTool, reply: Reply) -> NoReturn:
    """Raise the N8nError for a reply that is not a 2xx."""
    status, name = reply.status, tool.name
    body = mapping(_json(reply))
    said = str(_first_line(str(body.get("message") or "")))

    def error(kind: CallFailure, message: str, mend: str | None = None) -> N8nError:
        wait = retry_after_s(reply) if status == 429 else None
        return N8nError(
            kind,
            message,
            status=status,
            mend=mend,
            retry_after_s=wait,
            spoken=words_of(body, tool) if kind in ("rejected", "workflow_failed") else None,
        )

    if status == 404 and _WRONG_METHOD.search(said):
        mend = f"its webhook does not take {tool.method} any more: reload the tools"
        raise error("wrong_method", f"{name} has changed and cannot be called now.", mend)
    if status == 404 and _NOT_REGISTERED.search(said):
        mend = "the workflow is inactive or its path has changed: activate it, reload the tools"
        raise error("not_registered", f"{name} is switched off at the moment.", mend)
    if status in (401, 403) and (tool.auth_kind != "none" or is_challenge(reply)):
        mend = f"its webhook wants {tool.auth_kind} credentials: configure them for {tool.path}"
        if tool.auth_kind == "none":
            mend = "its webhook wants credentials by now, or has `Ignore Bots` on: reload the tools"
        raise error("auth", f"{name} refused this assistant's credentials.", mend)
    if status == 403 and _plain(reply) == NOT_ALLOWED:
        mend = "the option IP(s) Allowlist of its webhook does not list this machine"
        raise error("auth", f"{name} does not take calls from this assistant's machine.", mend)
    if status == 429:
        raise error("rate_limited", f"{name} takes no more calls for a while.")
    if status == 422 and said == "Failed to parse request body":
        raise error("invalid_arguments", f"n8n could not read the arguments of {name}.")
    if 300 <= status < 400:
        mend = "a redirect is not followed: let the workflow answer with data"
        raise error("redirected", f"{name} answered with a redirect instead of a result.", mend)
    if status < 500 and is_stock(body):
        raise error("workflow_failed", f"{name} cannot run ({said[:MAX_TOLD_CHARS]}).", said)
    if status < 500:
        raise error("rejected", f"{name} refused the call ({status}): {_told(reply)}")
    if "timed out" in said:
        mend = "the workflow hit its own time limit (Settings > Timeout)"
        raise error("workflow_timeout", f"{name} took too long and was stopped by n8n.", mend)
    if said == NO_RESPOND_NODE:
        mend = "add a Respond to Webhook node, or set Respond to `When Last Node Finishes`"
        raise error("workflow_failed", f"{name} has no node that answers.", mend)
    if said in NO_ITEM:
        mend = "its last node had no items: let it always output data, or use a Respond node"
        raise error("workflow_failed", f"{name} ended without a result.", mend)
    why = _why(reply, said)
    mend = "its own answer is an error" if why else LOOK_AT_RUN
    raise error("workflow_failed", f"{name} failed while it was running{why}.", mend)


def words_of(body: Mapping[str, Any], tool: WorkflowTool) -> str | None:
    """What a person is to hear as it stands: only where the author's notes say `Speak: field`."""
    said = None if is_stock(body) else body.get(tool.spoken_field or "")
    if not isinstance(said, str) or not said.strip():
        return None
    return spoken_words(said)


def spoken_words(text: str) -> str:
    """On one line, and no longer than anybody would listen."""
    return " ".join(text.split())[:MAX_SPOKEN_CHARS]


def run_failed(tool: WorkflowTool, status: int) -> N8nError:
    """Of a run about which the reply says no more."""
    message = f"{tool.name} failed while it was running."
    return N8nError("workflow_failed", message, status=status, mend=LOOK_AT_RUN)


def _why(reply: Reply, said: str) -> str:
    """What an author told with a 5xx of the workflow's own; n8n's stock phrases tell nothing."""
    if said in (FAILED, "") or "problem executing the workflow" in said:
        own = "" if said or not mapping(_json(reply)) else _told(reply)
    else:
        own = said[:MAX_TOLD_CHARS]
    return f" ({own})" if own else ""


def _told(reply: Reply) -> str:
    value = _json(reply)
    if isinstance(value, dict):
        told = mapping(cast(object, value)).items()
        kept = {k: _first_line(v) for k, v in told if k not in _SECRETIVE}
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    else:
        text = _plain(reply)
    return text if len(text) <= MAX_TOLD_CHARS else text[: MAX_TOLD_CHARS - 1] + "…"


def _plain(reply: Reply) -> str:
    """The first line of a text error; the rest could be a stack trace."""
    text = reply.body[:4096].decode("utf-8", errors="replace")
    if reply.media_type == "text/html" or text.lstrip().startswith("<"):
        text = text_of_html(text)
    return str(_first_line(text.strip()))


def _first_line(value: object) -> object:
    # Further lines of a text are where stack traces stand.
    return (value.splitlines() or [""])[0].strip() if isinstance(value, str) else value


def _json(reply: Reply) -> object:
    if not is_text(reply) or len(reply.body) > 65_536:
        return None
    try:
        return parse_json(reply.body)
    except (ValueError, RecursionError):
        return None
