"""Finds out for whom LiveKit runs a call, and which words it answers."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LiveKit leaves the types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

from typing import Any, Final

from livekit.agents import Agent, AgentSession, RunContext, get_job_context, llm

from caal_node.core.events import API_CALL
from caal_node.core.tool_spec import Caller, CallOrigin

# The words of a person that a call of a tool answers.

REQUEST_CHARS: Final = 400
"""Characters of a request that are read: half a minute of speech."""


def request_of(context: RunContext[Any]) -> str:
    """Return the words that a call answers; "" for a call that nobody in the conversation made."""
    if caller_of(context).origin == "api":
        return ""
    for item in reversed(context.session.history.items):
        if isinstance(item, llm.ChatMessage) and item.role == "user":
            return (item.text_content or "")[:REQUEST_CHARS]
    return ""


def caller_of(context: RunContext[Any] | None) -> Caller:
    """Return the person that a conversation is with; without a context, a caller of the API."""
    if context is None:
        return Caller("api")
    if context.function_call.call_id.startswith(API_CALL):
        return Caller("api", _place_of(context.session)[1])
    origin, room = _place_of(context.session)
    person = context.session.room_io.linked_participant if origin == "room" else None
    if person is None:
        return Caller(origin, room)
    return Caller(origin, room, person.identity, dict(person.attributes))


class AgentPlace:
    """Where an agent's conversation is."""

    def __init__(self, agent: Agent) -> None:
        self._agent: Final = agent

    @property
    def place(self) -> tuple[CallOrigin, str]:
        """The origin of its calls, and the room's name, "" without a room."""
        try:
            session: AgentSession[Any] = self._agent.session
        except RuntimeError:  # LiveKit raises it where the agent is in no session
            return "terminal", ""
        return _place_of(session)


def _place_of(session: AgentSession[Any]) -> tuple[CallOrigin, str]:
    try:
        room = session.room_io.room
    except RuntimeError:  # LiveKit raises it where the session has no room
        return "terminal", ""
    if not room.name and (job := get_job_context(required=False)) is not None:
        return "room", job.job.room.name  # the room has a name once it is connected
    return "room", room.name
