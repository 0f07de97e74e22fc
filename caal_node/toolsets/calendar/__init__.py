"""The toolset `calendar`: what is on, whether a time is free, and new events.

Its class is loaded when it is first used: the child that reads calendars imports only their reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caal_node.toolsets.calendar.toolset import Calendar

__all__ = ["Calendar"]


def __getattr__(name: str) -> Any:
    if name != "Calendar":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from caal_node.toolsets.calendar.toolset import Calendar

    return Calendar
