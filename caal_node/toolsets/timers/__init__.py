"""Timers, alarms and reminders: they ring in the room, and outlive restarts and empty rooms."""

from caal_node.toolsets.timers.toolset import Timers, TimersOptions

__all__ = ["Timers", "TimersOptions"]
