"""What a webhook's reply means.

n8n answers 200 with nothing, "started" before anything has run, HTML for plain text, and stack
traces in its errors. Here each of these becomes a short value that a model can use, or an N8nError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from n8n.calls.failures import (
    MAX_SPOKEN_CHARS,
    failure_of,
    is_builtin_reply,
    packed,
    run_failed,
    words_to_speak,
)
from n8n.calls.progress import StreamReader
from n8n.core.http import HttpResponse
from n8n.core.json_values import (
    DECODER,
    LONG_BYTES,
    mapping,
    parse_json,
    well_formed,
)
from n8n.core.text import one_line, text_of_html
from n8n.core.workflow_tool import WorkflowTool

ResultKind: TypeAlias = Literal["object", "array", "text", "scalar", "empty", "started", "binary"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call that did not fail.

    `value` is always JSON and made for the model: the workflow's own object, array, text or
    scalar, or a short object that says what happened (`empty`, `started`, `binary`).
    """

    kind: ResultKind
    value: Any
    spoken: str | None = None
    """What is to be spoken as it stands, without asking the model: it is there only if the author's
    notes say `Speak: field`, and the result has text in that field."""
    truncated: bool = False
    """The reply was longer than the limit: of an array the complete items among the first
    LONG_BYTES characters are here, of anything else the beginning as text."""


def read_reply(tool: WorkflowTool, response: HttpResponse) -> CallResult:
    """Return the result of a 2xx. Raises N8nError for all others.

    A body of more than SHORT_BYTES belongs into a thread: it may take half a second, and is read so
    that other threads get their turn meanwhile.
    """
    if not 200 <= response.status < 300:
        raise failure_of(tool, response)
    if response.packing:
        raise packed(tool, response)
    if tool.response_mode == "onReceived":
        note = "The workflow was started. Its result is not known, and will not come."
        return CallResult("started", {"status": "started", "note": note})
    if not response.body.strip():
        return _empty(tool)
    if tool.response_mode == "streaming":
        reader = StreamReader(max_line=len(response.body))
        reader.feed(response.body + b"\n")
        if reader.is_stream:
            return _read_streamed(tool, response, reader)
    if not response.is_text:
        value = {"status": "file", "type": response.media_type, "bytes": len(response.body)}
        return CallResult("binary", value, truncated=response.truncated)
    text = response.body.decode("utf-8", errors="replace")
    if response.media_type.endswith("json") or not response.media_type:
        if response.truncated:
            # An array whose first item is longer than the limit is text as well: [] would be untrue
            items = _complete_items(text[:LONG_BYTES])
            return CallResult("array" if items else "text", items or text, truncated=True)
        try:
            return _read_value(tool, parse_json(text))
        except (ValueError, RecursionError):
            pass
    if response.media_type == "text/html":
        # A page without words says as little as no answer at all.
        text = text_of_html(text)
    if not text.strip():
        return _empty(tool)
    return CallResult("text", text.strip(), truncated=response.truncated)


def _read_streamed(tool: WorkflowTool, response: HttpResponse, reader: StreamReader) -> CallResult:
    if reader.has_failed:
        raise run_failed(tool, response.status)
    try:
        value = parse_json(reader.text) if len(reader.text) <= LONG_BYTES else reader.text
    except (ValueError, RecursionError):
        value = reader.text
    if not isinstance(value, str):
        return _read_value(tool, value)
    if not value.strip():
        return _empty(tool)
    spoken = one_line(value, MAX_SPOKEN_CHARS) if tool.spoken_field else None
    return CallResult("text", value, spoken, response.truncated)


def _read_value(tool: WorkflowTool, value: Any) -> CallResult:
    if isinstance(value, dict):
        body = mapping(cast(object, value))
        if is_builtin_reply(body):
            return _done()
        return CallResult("object", value, words_to_speak(body, tool))
    if isinstance(value, list):
        return CallResult("array", value)
    return CallResult("text" if isinstance(value, str) else "scalar", value)


def _empty(tool: WorkflowTool) -> CallResult:
    if tool.answers_nothing:
        return _done()
    # An unreached Respond node looks the same, and so does any failure in n8n 1.100 to 2.6.
    note = "The workflow answered without data. Whether it did its work is not known."
    return CallResult("empty", {"status": "unknown", "note": note})


def _done() -> CallResult:
    return CallResult("empty", {"status": "done", "note": "It returns no data."})


def _complete_items(text: str) -> list[Any]:
    """Return the items at the head of an array that breaks off; none if the text is no array."""
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
