"""The demo's agent has one method of its own, so that all three tiers are there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from livekit.agents import function_tool

from caal_node.agent import CaalAgent


class DemoAgent(CaalAgent):
    """A CaalAgent with a kitchen timer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._timers: list[dict[str, Any]] = []

    @function_tool
    async def set_timer(self, minutes: float, label: str = "timer") -> dict[str, Any]:
        """Start a countdown timer.

        Args:
            minutes: How long it runs.
            label: What it is for, if the person says so.

        Example: remind me in twenty minutes -> {"minutes": 20}
        Example: start a ten minute timer for the pasta -> {"minutes": 10, "label": "pasta"}
        """
        ends = datetime.now() + timedelta(minutes=minutes)
        timer = {"timer": label, "minutes": minutes, "rings_at": ends.strftime("%H:%M")}
        self._timers.append(timer)
        return {"running": True, **timer}
