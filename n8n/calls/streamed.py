"""The reply of a webhook that answers by `Streaming`: one JSON object on each line.

`begin`, `item` with its `content`, and `end` come from each node that streams, in the order in
which they run; `error` from one that failed. The last node's text is the answer. What the ones
before it said is progress in the author's own words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeAlias

from n8n.core.json_values import mapping, parse_json
from n8n.notes.parser import visible

MAX_SAID_CHARS: Final = 200
"""Of one step's words."""


Tell: TypeAlias = Callable[[str, bool], None]
"""A step's words, and whether another step has begun since. Until then they may be the answer."""


class Steps:
    """Tells each step's words when its node is done, and again once another one begins."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._line = b""
        self._said = ""
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            kind, content = _read(line)
            if kind == "begin" and self._ended:
                self._hand_over(followed=True)
                self._said, self._ended = "", False
            elif kind == "item":
                self._said += content
            elif kind == "end":
                self._ended = True
                self._hand_over(followed=False)

    def _hand_over(self, *, followed: bool) -> None:
        said = visible(self._said[: 2 * MAX_SAID_CHARS])
        if words := " ".join(said.split())[:MAX_SAID_CHARS]:
            self._tell(words, followed)


def answer_of(body: bytes) -> tuple[str, bool] | None:
    """The last node's text, and whether a node failed; None for a body that is no stream."""
    said, failed, seen = "", False, False
    for line in body.split(b"\n"):
        if not line.strip():
            continue
        kind, content = _read(line)
        if kind is None:
            return None
        seen = True
        failed = failed or kind == "error"
        said = "" if kind == "begin" else said + content
    return (said, failed) if seen else None


def _read(line: bytes) -> tuple[str | None, str]:
    try:
        told = mapping(parse_json(line))
    except (ValueError, RecursionError):
        return None, ""
    kind, content = told.get("type"), told.get("content", "")
    known = kind in ("begin", "item", "end", "error")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return (str(kind) if known else None), text if kind == "item" else ""
