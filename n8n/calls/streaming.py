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


class StreamReader:
    """Reads a streamed reply as it comes.

    It tells each step's words when its node is done, and again once another one begins.
    """

    def __init__(self, on_step: StepCallback | None = None) -> None:
        self.is_stream = True
        """Whether all lines so far were those of a stream."""
        self.has_failed = False
        self.text = ""
        """What the node that streams last has said so far."""
        self._on_step = on_step
        self._line = b""
        self._has_ended = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece of the reply's body."""
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in filter(bytes.strip, lines):
            kind, content = _read_line(line)
            self.is_stream = self.is_stream and kind is not None
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
