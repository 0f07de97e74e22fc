"""Waiting for a room: LiveKit starts an agent before its room is connected."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms open, so they are half unknown.

from __future__ import annotations

import asyncio

from livekit import rtc


async def connected(room: rtc.Room) -> None:
    """Wait until `room` is connected. Who waits is ended with the agent, as LiveKit's own is."""
    if room.isconnected():
        return
    came = asyncio.Event()

    def on_state(state: rtc.ConnectionState) -> None:
        if room.isconnected():
            came.set()

    room.on("connection_state_changed", on_state)
    try:
        await came.wait()
    finally:
        room.off("connection_state_changed", on_state)
