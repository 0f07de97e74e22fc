"""A typed conversation with an agent in a real LiveKit session, without a room."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from livekit.agents import AgentSession, APIConnectOptions, llm
from livekit.agents.voice.agent_session import SessionConnectOptions

from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings, load_settings
from caal_node.core.events import (
    Event,
    Outcome,
    Spoken,
    TierName,
    ToolCallEnded,
    ToolCallStarted,
)
from caal_node.factories import text_session
from caal_node.models.llm import LLM

TURN_S: Final = 20.0
"""Seconds that a turn may take before its test fails. A scripted one takes some milliseconds."""

RETRIES: Final = SessionConnectOptions(llm_conn_options=APIConnectOptions(retry_interval=0.1))
"""A model is asked again as often as in any session, without LiveKit's two seconds in between."""

EventType = TypeVar("EventType", bound=Event)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a tool, and how it ended."""

    tool: str
    tier: TierName
    source: str
    arguments: Mapping[str, Any] | None
    outcome: Outcome | None
    """None where the call still ran when the turn was over."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What came of the words that a person said."""

    spoken: str
    """Everything that was said, its sentences joined by spaces."""
    calls: tuple[CallRecord, ...]
    """The calls in the order in which they began."""
    events: tuple[Event, ...]
    """Every event of the turn, as `CaalAgent(on_event=...)` is told."""


def plain_settings(**values: str) -> Settings:
    """Settings that neither the environment nor a file has a part in, with cues off.

    `values` are variables as `.env.example` lists them, such as `CAAL_DETECTION="streamed"`.

    Raises:
        ConfigError: a value does not fit.
    """
    return load_settings({"CAAL_CUES": "off", **values}, Path("no-such-file") / "caal.toml")


class AgentConversation:
    """An agent in a session that is typed to; use it as an async context manager.

    Args:
        agent: The agent to test. `tiers={}` keeps it from looking for n8n and MCP servers.
        model: What it asks: a `ScriptedModel`, or a real one. Whoever made it closes it.
        turn_s: Seconds that a turn may take.
    """

    def __init__(self, agent: CaalAgent, model: LLM, *, turn_s: float = TURN_S) -> None:
        self.agent: Final = agent
        self.model: Final = model
        self.session: AgentSession[Any] = text_session(agent.settings, model, conn_options=RETRIES)
        self.events: list[Event] = []
        """Every event since the conversation began."""
        self._turn_s = turn_s
        agent.add_listener(self.events.append)

    async def __aenter__(self) -> Self:
        await self.session.start(self.agent)  # pyright: ignore[reportUnknownMemberType]  # LiveKit left a type open
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.aclose()

    async def say(self, words: str) -> TurnRecord:
        """Say `words`, and wait until everything that answers them is over.

        Raises:
            TimeoutError: the turn took longer than `turn_s`.
        """
        before = len(self.events)
        async with asyncio.timeout(self._turn_s):
            await self.session.run(user_input=words)
        events = tuple(self.events[before:])
        spoken = " ".join(event.text for event in events if isinstance(event, Spoken))
        return TurnRecord(spoken, _calls(events), events)

    def events_of(self, kind: type[EventType]) -> list[EventType]:
        """The events of one kind since the conversation began."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def history(self) -> Sequence[llm.ChatItem]:
        """The conversation as LiveKit keeps it."""
        return self.session.history.items


def _calls(events: Sequence[Event]) -> tuple[CallRecord, ...]:
    ended = {event.call_id: event for event in events if isinstance(event, ToolCallEnded)}
    return tuple(
        CallRecord(
            event.tool,
            event.tier,
            event.source,
            event.arguments,
            ended[event.call_id].outcome if event.call_id in ended else None,
        )
        for event in events
        if isinstance(event, ToolCallStarted)
    )
