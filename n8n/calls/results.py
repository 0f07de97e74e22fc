"""What a webhook's reply means.

n8n answers 200 with nothing, "started" before anything has run, HTML for plain text, and stack
traces in its errors. Here each of these becomes a short value that a model can use, or an N8nError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from n8n.calls.failures import MAX_SPOKEN_CHARS, raise_failure, run_failed, spoken_words, words_of
from n8n.calls.html_text import text_of_html
from n8n.calls.stock import is_stock
from n8n.calls.streamed import answer_of
from n8n.core.http import Reply, is_text
from n8n.core.json_values import DECODER, mapping, parse_json, parse_long_json, well_formed
from n8n.core.workflow_tool import WorkflowTool

LONG_BYTES = 65_536
"""Replies up to here are read in 1 to 8 ms. Longer ones are for a thread, and of a cut array no
more than this is read: a model is shown far less."""

__all__ = ["LONG_BYTES", "MAX_SPOKEN_CHARS", "CallResult", "ResultKind", "read_reply"]

ResultKind: TypeAlias = Literal["object", "array", "text", "scalar", "empty", "started", "binary"]


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
    """The reply was longer than the limit: of an array the complete items among the first
    LONG_BYTES characters are here, of anything else the beginning as text."""


def read_reply(tool: WorkflowTool, reply: Reply) -> CallResult:
    """Raises N8nError for everything that is not a 2xx.

    A body of more than LONG_BYTES may take half a second, and is read so that other threads get
    their turn meanwhile.
    """
    if not 200 <= reply.status < 300:
        raise_failure(tool, reply)
    if tool.response_mode == "onReceived":
        note = "The workflow was started. Its result is not known, and will not come."
        return CallResult("started", {"status": "started", "note": note})
    if not reply.body.strip():
        return _empty(tool)
    if tool.response_mode == "streaming" and (told := answer_of(reply.body)) is not None:
        return _streamed(tool, reply, *told)
    if not is_text(reply):
        value = {"status": "file", "type": reply.media_type, "bytes": len(reply.body)}
        return CallResult("binary", value, truncated=reply.truncated)
    text = reply.body.decode("utf-8", errors="replace")
    if reply.media_type.endswith(("json", "+json")) or not reply.media_type:
        if reply.truncated:
            return _beginning(text)
        try:
            parse = parse_json if len(reply.body) <= LONG_BYTES else parse_long_json
            return _result(tool, parse(text))
        except (ValueError, RecursionError):
            pass
    if reply.media_type == "text/html":
        text = text_of_html(text)
    return CallResult("text", text.strip(), truncated=reply.truncated)


def _streamed(tool: WorkflowTool, reply: Reply, said: str, failed: bool) -> CallResult:
    if failed:
        raise run_failed(tool, reply.status)
    try:
        value = parse_json(said) if len(said) <= LONG_BYTES else said
    except (ValueError, RecursionError):
        value = said
    if not isinstance(value, str):
        return _result(tool, value)
    words = spoken_words(value) if tool.spoken_field else None
    return CallResult("text", value, words, reply.truncated) if value.strip() else _empty(tool)


def _result(tool: WorkflowTool, value: Any) -> CallResult:
    if isinstance(value, dict):
        body = mapping(cast(object, value))
        if is_stock(body):
            return CallResult("empty", {"status": "done", "note": "It returns no data."})
        return CallResult("object", value, words_of(body, tool))
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
    items = _complete_items(text[:LONG_BYTES])
    if not items:  # also of an array whose first item is longer than that: [] would be untrue
        return CallResult("text", text, truncated=True)
    return CallResult("array", items, truncated=True)


def _complete_items(text: str) -> list[Any]:
    """The items at the head of an array that breaks off; none where the text is no array."""
    at = len(text) - len(text.lstrip())
    items: list[Any] = []
    if text[at : at + 1] != "[":
        return items
    at += 1
    try:
        while True:
            while text[at] in ", \t\r\n":
                at += 1
            item, at = DECODER.raw_decode(text, at)
            if text[at] not in ",] \t\r\n":  # 12 may be the beginning of 12.5
                break
            items.append(item)
    except (ValueError, IndexError, RecursionError):
        pass
    return well_formed(text, items)
