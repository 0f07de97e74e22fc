"""What a call says while it runs, so that nobody takes a slow workflow for a dead line.

A webhook that answers by `Streaming` sends one JSON object on each line: `begin`, `item` with its
`content`, and `end` come from each node that streams, in the order in which they run; `error` comes
from one that failed. The last node's text is the answer. What the ones before it said is progress
in the author's own words.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final, TypeAlias

from n8n.core.json_values import mapping, parse_json
from n8n.core.text import one_line, visible

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
