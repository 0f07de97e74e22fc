"""Waits for a room, since LiveKit starts an agent before its room is connected."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio

from livekit import rtc


async def connected(room: rtc.Room) -> None:
    """Wait until `room` is connected, without a deadline: the agent's end cancels the wait."""
    if room.isconnected():
        return
    is_connected = asyncio.Event()

    def on_state(state: rtc.ConnectionState) -> None:
        if room.isconnected():
            is_connected.set()

    room.on("connection_state_changed", on_state)
    try:
        await is_connected.wait()
    finally:
        room.off("connection_state_changed", on_state)
