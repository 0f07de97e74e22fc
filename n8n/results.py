"""What a webhook's reply means.

n8n answers 200 with nothing, "started" before anything has run, HTML for plain text, and stack
traces in its errors. Here each of these becomes a short value that a model can use, or an N8nError.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, cast

from n8n.errors import CallFailure, N8nError
from n8n.html_text import text_of_html
from n8n.shapes import mapping
from n8n.tool import WorkflowTool
from n8n.wire import Reply, retry_after_s

MAX_SPOKEN_CHARS = 1_000
"""About a minute of speech."""
MAX_TOLD_CHARS = 300
"""Of an author's own error, for the model."""

ResultKind: TypeAlias = Literal["object", "array", "text", "scalar", "empty", "started", "binary"]
_TEXT_TYPES = frozenset(
    ("application/xml", "application/javascript", "application/x-www-form-urlencoded")
)
_SECRETIVE = frozenset(("stacktrace", "stack", "hint", "code"))
"""Of an n8n error: nothing here is for a model."""
_NOT_REGISTERED = re.compile(r"webhook .{0,200}is not registered\.")
_WRONG_METHOD = re.compile(r"not registered for \w+ requests")
_AUTH_TEXTS = (
    "Authorization data is wrong!",
    "Authorization is required!",
    "Authentication data is wrong!",
    "No token provided",
    "invalid token",
)


@dataclass(frozen=True, slots=True)
class CallResult:
    """A reply that is no error.

    `value` is always JSON and made for the model: the workflow's own object, array, text or
    scalar, or a short object that says what happened (`empty`, `started`, `binary`).
    """

    kind: ResultKind
    value: Any
    spoken: str | None = None
    """To be spoken as it stands, without asking the model: only where the author's notes say
    `Speak: field`, and the result has text in that field."""
    truncated: bool = False
    """The reply was longer than the limit: of an array the complete items at its head are here,
    of anything else the beginning as text."""


def read_reply(tool: WorkflowTool, reply: Reply) -> CallResult:
    """Raises N8nError for everything that is not a 2xx."""
    if not 200 <= reply.status < 300:
        _failed(tool, reply)
    if tool.response_mode == "onReceived":
        note = "The workflow was started. Its result is not known, and will not come."
        return CallResult("started", {"status": "started", "note": note})
    if not reply.body.strip():
        return _empty(tool)
    if not _is_text(reply):
        value = {"status": "file", "type": reply.media_type, "bytes": len(reply.body)}
        return CallResult("binary", value, truncated=reply.truncated)
    text = reply.body.decode("utf-8", errors="replace")
    if reply.media_type.endswith(("json", "+json")) or not reply.media_type:
        if reply.truncated:
            return _beginning(text)
        try:
            return _result(tool, json.loads(text))
        except (ValueError, RecursionError):
            pass
    if reply.media_type == "text/html":
        text = text_of_html(text)
    return CallResult("text", text.strip(), truncated=reply.truncated)


def _result(tool: WorkflowTool, value: Any) -> CallResult:
    if isinstance(value, dict):
        said = mapping(cast(object, value)).get(tool.spoken_field or "")
        spoken = said.strip()[:MAX_SPOKEN_CHARS] if isinstance(said, str) else None
        return CallResult("object", value, spoken or None)
    if isinstance(value, list):
        return CallResult("array", value)
    return CallResult("text" if isinstance(value, str) else "scalar", value)


def _empty(tool: WorkflowTool) -> CallResult:
    if tool.answers_nothing:
        return CallResult("empty", {"status": "done", "note": "It returns no data."})
    # An unreached Respond node looks the same, and so does any failure in n8n 1.100 to 2.6.
    note = "The workflow answered without data. Whether it did its work is not known."
    return CallResult("empty", {"status": "unknown", "note": note})


def _beginning(text: str) -> CallResult:
    if not text.lstrip().startswith("["):
        return CallResult("text", text, truncated=True)
    decoder = json.JSONDecoder()
    items: list[Any] = []
    at = text.index("[") + 1
    try:
        while True:
            while text[at] in ", \t\r\n":
                at += 1
            item, at = decoder.raw_decode(text, at)
            items.append(item)
    except (ValueError, IndexError, RecursionError):
        return CallResult("array", items, truncated=True)


def _is_text(reply: Reply) -> bool:
    kind = reply.media_type
    if not kind:
        return b"\x00" not in reply.body[:1024]
    return kind.startswith("text/") or kind.endswith(("json", "+xml")) or kind in _TEXT_TYPES


def _failed(tool: WorkflowTool, reply: Reply) -> NoReturn:
    status, name = reply.status, tool.name
    body = mapping(_json(reply))
    said = str(body.get("message") or "").split("\n")[0]

    def error(kind: CallFailure, message: str, mend: str | None = None) -> N8nError:
        wait = retry_after_s(reply) if status == 429 else None
        return N8nError(kind, message, status=status, mend=mend, retry_after_s=wait)

    if status == 404 and _WRONG_METHOD.search(said):
        mend = f"its webhook does not take {tool.method} any more: reload the tools"
        raise error("wrong_method", f"{name} has changed and cannot be called now.", mend)
    if status == 404 and _NOT_REGISTERED.search(said):
        mend = "the workflow is inactive or its path has changed: activate it, reload the tools"
        raise error("not_registered", f"{name} is switched off at the moment.", mend)
    if status in (401, 403) and (tool.auth_kind != "none" or _plain(reply) in _AUTH_TEXTS):
        mend = f"its webhook wants {tool.auth_kind} credentials: configure them for {tool.path}"
        raise error("auth", f"{name} refused this assistant's credentials.", mend)
    if status == 429:
        raise error("rate_limited", f"{name} takes no more calls for a while.")
    if status == 422 and said == "Failed to parse request body":
        raise error("invalid_arguments", f"n8n could not read the arguments of {name}.")
    if 300 <= status < 400:
        mend = "a redirect is not followed: let the workflow answer with data"
        raise error("redirected", f"{name} answered with a redirect instead of a result.", mend)
    if status < 500:
        raise error("rejected", f"{name} refused the call ({status}): {_told(reply)}")
    if "timed out" in said:
        mend = "the workflow hit its own time limit (Settings > Timeout)"
        raise error("workflow_timeout", f"{name} took too long and was stopped by n8n.", mend)
    if said == "No item to return was found":
        mend = "its last node had no items: let it always output data, or use a Respond node"
        raise error("workflow_failed", f"{name} ended without a result.", mend)
    mend = "look at its latest execution in n8n"
    raise error("workflow_failed", f"{name} failed while it was running{_why(reply, said)}.", mend)


def _why(reply: Reply, said: str) -> str:
    """What an author told with a 5xx of the workflow's own; n8n's stock phrases tell nothing."""
    if said in ("Error in workflow", "") or "problem executing the workflow" in said:
        own = "" if said or not mapping(_json(reply)) else _told(reply)
    else:
        own = said[:MAX_TOLD_CHARS]
    return f" ({own})" if own else ""


def _told(reply: Reply) -> str:
    value = _json(reply)
    if isinstance(value, dict):
        kept = {k: v for k, v in mapping(cast(object, value)).items() if k not in _SECRETIVE}
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    else:
        text = _plain(reply)
    return text if len(text) <= MAX_TOLD_CHARS else text[: MAX_TOLD_CHARS - 1] + "…"


def _plain(reply: Reply) -> str:
    """The first line of a text error; the rest could be a stack trace."""
    text = reply.body[:4096].decode("utf-8", errors="replace")
    if reply.media_type == "text/html" or text.lstrip().startswith("<"):
        text = text_of_html(text)
    return (text.strip().splitlines() or [""])[0].strip()


def _json(reply: Reply) -> object:
    if not _is_text(reply) or len(reply.body) > 65_536:
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
