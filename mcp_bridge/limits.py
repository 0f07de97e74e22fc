"""What one manager allows: seconds, characters and counts."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bridge.results import MAX_RESULT_CHARS


@dataclass(frozen=True, slots=True)
class Limits:
    connect_timeout_s: float = 10.0
    """From starting the process, or the first byte, to the end of the handshake; and the same
    again for listing the tools."""
    call_timeout_s: float = 20.0
    """From `call_tool` to its result, a reconnect included."""
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
