"""What one manager allows: seconds, characters and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_RESULT_CHARS: Final = 65_536
"""Characters, about 16,000 tokens: more than a small local model's whole window."""


@dataclass(frozen=True, slots=True)
class Limits:
    connect_timeout_s: float = 10.0
    """From starting the process, or the first byte, to the end of the handshake; and the same
    again for listing the tools."""
    call_timeout_s: float = 20.0
    """A server's silence: from `call_tool` to its result, a reconnect included, or to a sign of
    progress, from which it counts anew."""
    call_cap_s: float = 120.0
    """The whole call, whatever progress the server tells of. Nobody stays on the line for more."""
    answer_s: float = 45.0
    """For a person to answer a server's question: hearing it, thinking and speaking."""
    idle_s: float = 30 * 60.0
    """A connection that nobody uses is closed after this; its tools stay, and the next call
    connects again."""
    retry_first_s: float = 0.5
    """Bound of the wait before a lost connection is made again by itself; it doubles each time,
    and each wait is any time below the bound."""
    retry_longest_s: float = 60.0
    retries: int = 8
    """In a row, by itself: some three minutes, for a server that is being restarted. After them
    the next call or reload tries."""
    failures: int = 5
    """In a row; then calls are refused at once, for `rest_s`, until one that is let through
    succeeds."""
    rest_s: float = 30.0
    max_result_chars: int = MAX_RESULT_CHARS
    max_tools: int = 2_000
    """For each server. What is more is left out, and said."""
    max_pages: int = 100
    """Of one server's list: bounds a server that pages for ever."""
    max_description_chars: int = 1_024
    max_schema_chars: int = 65_536
    """A tool whose input schema is larger is left out, and said."""
    max_waiting: int = 64
    """Calls of one server at a time; further ones are refused at once."""
