"""The reply of a webhook that answers by `Streaming`: one JSON object on each line.

`begin`, `item` with its `content`, and `end` come from each node that streams, in the order in
which they run; `error` comes from one that failed. The last node's text is the answer. What the
ones before it said is progress in the author's own words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeAlias

from n8n.core.json_values import mapping, parse_json
from n8n.core.text import one_line, visible

MAX_STEP_CHARS: Final = 200
"""How much of one step's words is told."""

StepCallback: TypeAlias = Callable[[str, bool], None]
"""It is called with a step's words, and whether another step has begun since. Until then they may
be the answer."""


class StepReader:
    """Tells each step's words when its node is done, and again once another one begins."""

    def __init__(self, on_step: StepCallback) -> None:
        self._on_step = on_step
        self._line = b""
        self._words = ""
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece of the reply's body."""
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            kind, content = _read_line(line)
            if kind == "begin" and self._ended:
                self._tell(followed=True)
                self._words, self._ended = "", False
            elif kind == "item":
                self._words += content
            elif kind == "end":
                self._ended = True
                self._tell(followed=False)

    def _tell(self, *, followed: bool) -> None:
        if words := one_line(visible(self._words[: 2 * MAX_STEP_CHARS]), MAX_STEP_CHARS):
            self._on_step(words, followed)


def streamed_answer(body: bytes) -> tuple[str, bool] | None:
    """Return the last node's text and whether a node failed; None for a body that is no stream."""
    answer, failed, is_stream = "", False, False
    for line in body.split(b"\n"):
        if not line.strip():
            continue
        kind, content = _read_line(line)
        if kind is None:
            return None
        is_stream = True
        failed = failed or kind == "error"
        answer = "" if kind == "begin" else answer + content
    return (answer, failed) if is_stream else None


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
