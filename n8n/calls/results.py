"""What a webhook's reply means.

n8n answers 200 with nothing, "started" before anything has run, HTML for plain text, and stack
traces in its errors. Here each of these becomes a short value that a model can use, or an N8nError.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, Literal, TypeAlias, cast

from lxml import (  # pyright: ignore[reportMissingTypeStubs]  # lxml has no types
    etree as untyped_etree,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

from n8n.core.errors import CallFailure, N8nError
from n8n.core.http import HttpResponse
from n8n.core.json_values import (
    DECODER,
    LONG_BYTES,
    mapping,
    parse_json,
    visible,
    well_formed,
)
from n8n.core.workflow_tool import WorkflowTool

# What a call says while it runs, so that nobody takes a slow workflow for a dead line.
#
# A webhook that answers by `Streaming` sends one JSON object on each line: `begin`, `item` with its
# `content`, and `end` come from each node that streams, in the order in which they run; `error`
# comes from one that failed. The last node's text is the answer. What the ones before it said is
# progress in the author's own words.

PROGRESS_S: Final = 5.0
"""About as long as a person waits before wondering."""
STEP_GAP_S: Final = 0.25
"""The least time between two steps that are told at once: nobody looks more often, and a run may
stream thousands of them. One in between is told with the next tick, if it is still the last."""
LAST_STEP_S: Final = 1.0
"""How long a step's words wait for the answer to end: a run that still goes on then does something
after them, so they are progress."""
MAX_LINE_BYTES: Final = 16_384
"""The longest line that is read on the event loop. n8n streams a piece of a text in each."""
MAX_STEP_CHARS: Final = 200
"""How much of one step's words is told."""

StepCallback: TypeAlias = Callable[[str, bool], None]
"""It is called with a step's words, and whether another step has begun since. Until then they may
be the answer."""


class StreamReader:
    """Reads a streamed reply as it comes.

    It tells each step's words when its node is done, and again once another one begins. After a
    line that is none of a stream's, or is longer than `max_line`, it reads no further.
    """

    def __init__(self, on_step: StepCallback | None = None, max_line: int = MAX_LINE_BYTES) -> None:
        self.is_stream = True
        """Whether all lines so far were those of a stream."""
        self.has_failed = False
        self.text = ""
        """What the node that streams last has said so far."""
        self._on_step = on_step
        self._max_line = max_line
        self._line = b""
        self._has_ended = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece of the reply's body."""
        # All lines at once would be a list of a million where a body is nothing but line ends.
        for line in BytesIO(self._line + chunk):
            if not self.is_stream:
                return
            if not line.endswith(b"\n"):
                self._line = line
                self.is_stream = len(line) <= self._max_line
                return
            if line.strip():
                self._take(*_read_line(line))
        self._line = b""

    def _take(self, kind: str | None, content: str) -> None:
        self.is_stream = kind is not None
        self.has_failed = self.has_failed or kind == "error"
        if kind == "begin":
            if self._has_ended:
                self._tell(followed=True)
            self.text, self._has_ended = "", False
        self.text += content
        if kind == "end":
            self._has_ended = True
            self._tell(followed=False)

    def _tell(self, *, followed: bool) -> None:
        words = one_line(visible(self.text[: 2 * MAX_STEP_CHARS]), MAX_STEP_CHARS)
        if words and self._on_step is not None:
            self._on_step(words, followed)


@dataclass(frozen=True, slots=True)
class Progress:
    """A call that has no answer yet."""

    elapsed_s: float
    deadline_s: float
    step: str | None = None
    """What it does, in its author's words: those that a streamed answer has sent so far."""


@contextmanager
def report_progress(
    every_s: float, deadline_s: float, callback: Callable[[Progress], None] | None
) -> Generator[StepCallback | None]:
    """Call `callback` on the event loop every so many seconds while the block runs.

    It is also called at once for a step that the block hands in, if the one before was told
    STEP_GAP_S ago. A step whose words may be the answer waits for LAST_STEP_S.
    """
    if callback is None:
        yield None
        return
    step: str | None = None
    told_at = -math.inf
    loop = asyncio.get_running_loop()
    began = loop.time()

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(every_s, tick)
        callback(Progress(loop.time() - began, deadline_s, step))

    def on_step(words: str, followed: bool) -> None:
        nonlocal waiting
        if waiting is not None:
            waiting.cancel()
        if followed:
            tell_step(words)
        else:
            waiting = loop.call_later(LAST_STEP_S, tell_step, words)

    def tell_step(words: str) -> None:
        nonlocal step, told_at
        if words == step:
            return
        step = words
        if loop.time() - told_at < STEP_GAP_S:
            return
        told_at = loop.time()
        callback(Progress(loop.time() - began, deadline_s, step))

    waiting: asyncio.TimerHandle | None = None
    timer = loop.call_later(every_s, tick)
    try:
        yield on_step
    finally:
        timer.cancel()
        if waiting is not None:
            waiting.cancel()


def _read_line(line: bytes) -> tuple[str | None, str]:
    """Return what kind of line it is, None for a strange one, and the text of an `item`."""
    try:
        event = mapping(parse_json(line))
    except (ValueError, RecursionError):
        return None, ""
    kind, content = event.get("type"), event.get("content", "")
    if kind not in ("begin", "item", "end", "error"):
        return None, ""
    if kind != "item":
        return kind, ""
    return kind, content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


# What a webhook's refusal means: n8n's own errors, a proxy's, and those that authors send.
#
# n8n's own replies, as seen on 2.41.1, are told from those of authors: nobody meant them to be
# heard. Its errors have `code` and `message`, and a `stacktrace` outside production; three replies
# have a `message` alone.

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


# Texts that people wrote, made fit for a prompt, a log or a voice.

etree: Any = untyped_etree  # pyright: ignore[reportUnknownVariableType]

PAGE_CHARS: Final = 131_072
"""How much of a page is read. The parser's work grows with the page, but for the attributes of one
element, each of which is compared with all others: these take 0.3 s at most."""
_SILENT_TAGS: Final = frozenset(("script", "style", "head", "template", "noscript"))
_BREAKING_TAGS: Final = frozenset(
    (
        *("br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("section", "article", "table", "ul", "ol"),
    )
)


def one_line(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters."""
    return " ".join(text.split())[:limit]


def clip(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters; an ellipsis shows where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of_html(html: str) -> str:
    """Return the words of an HTML page, as a person would read them in a browser.

    Plain text stays as it is: n8n sends it as text/html. Of a page no more than PAGE_CHARS are
    read, and no elements that lie deeper than libxml2's own limit of 256.
    """
    if "<" not in html and "&" not in html:
        return html
    page = html[:PAGE_CHARS].replace("\0", "").encode("utf-8", errors="replace")
    # It lets go of the interpreter, and refers to no file and no address.
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True)
    root = etree.fromstring(page, parser) if page.strip() else None
    if root is None:
        return ""
    parts: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if element.tag in _BREAKING_TAGS:
            parts.append("\n")
        if event == "end":
            parts.append(element.tail or "")
        elif element.tag in _SILENT_TAGS:
            walk.skip_subtree()
        elif isinstance(element.tag, str):  # else it is a processing instruction
            parts.append(element.text or "")
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)
