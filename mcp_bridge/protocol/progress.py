"""Turns what a server tells of a call's progress into events: few, cleaned, never backwards."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from mcp_bridge.core.status import CallProgressed, EventSink
from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.protocol.tool_listing import clean_text

Progress: TypeAlias = Callable[[float, float | None, str], None]
"""A function that takes what is done, a total that may not be known, and the server's words."""
GAP_S: Final = 0.25
"""The time between two events of a call; nobody looks more often."""
MAX_MESSAGE_CHARS: Final = 200


def progress_reporter(
    tool: ToolInfo, sink: EventSink | None, now: Callable[[], float] = time.monotonic
) -> Progress | None:
    """Gives a function that tells `sink` of one call's progress; None without a sink.

    The first report passes, and whatever reaches the total.
    """
    if sink is None:
        return None
    last_at, furthest = -math.inf, -math.inf

    def report(done: float, total: float | None, message: str) -> None:
        nonlocal last_at, furthest
        at = now()
        if not math.isfinite(done) or done <= furthest:
            return  # the protocol has it grow
        total = total if total is not None and math.isfinite(total) else None
        if at - last_at < GAP_S and done != total:
            return
        last_at, furthest = at, done
        words = " ".join(clean_text(message[:1000], MAX_MESSAGE_CHARS).split())
        sink(CallProgressed(tool.name, tool.server, done, total, words))

    return report
