"""Finds out for whom LiveKit runs a call."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its rooms open, so they are half unknown.

from __future__ import annotations

from typing import Any

from livekit.agents import RunContext

from caal_node.core.caller import Caller
from caal_node.core.events import API_CALL


def caller_of(context: RunContext[Any] | None) -> Caller:
    """Return the person that a conversation is with; without a context, a caller of the API."""
    if context is None:
        return Caller("api")
    origin = "api" if context.function_call.call_id.startswith(API_CALL) else "room"
    try:
        room_io = context.session.room_io
    except RuntimeError:  # LiveKit raises it where the session has no room
        return Caller("api" if origin == "api" else "terminal")
    person = None if origin == "api" else room_io.linked_participant
    if person is None:
        return Caller(origin, room_io.room.name)
    return Caller(origin, room_io.room.name, person.identity, dict(person.attributes))
