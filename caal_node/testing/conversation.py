"""A `Conversation` as tests want it: with a short deadline, and with all its events."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

from livekit.agents import APIConnectOptions
from livekit.agents.voice.agent_session import SessionConnectOptions

from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings, load_settings
from caal_node.conversation import Conversation
from caal_node.core.events import Event
from caal_node.models.llm import LLM

TURN_S: Final = 20.0
"""Seconds that a turn may take before its test fails. A scripted one takes some milliseconds."""

RETRIES: Final = SessionConnectOptions(
    llm_conn_options=APIConnectOptions(retry_interval=0.1, timeout=900)
)
"""A model is asked again as often as in any session, without LiveKit's two seconds in between. The
time-out is one that no turn reaches."""

EventType = TypeVar("EventType", bound=Event)


def plain_settings(**values: str) -> Settings:
    """Settings that neither the environment nor a file has a part in, with cues off.

    `values` are variables as `.env.example` lists them, such as `CAAL_DETECTION="streamed"`.

    Raises:
        ConfigError: a value does not fit.
    """
    return load_settings({"CAAL_CUES": "off", **values}, Path("no-such-file") / "caal.toml")


class AgentConversation(Conversation):
    """A conversation with an agent under test.

    Args:
        agent: The agent to test. `tiers={}` keeps it from looking for n8n and MCP servers.
        model: What it asks: a `ScriptedModel`, or a real one. Whoever made it closes it.
        userdata: What tools find as `context.userdata`; None takes the agent's `make_userdata()`.
        turn_s: Seconds that a turn may take.
    """

    def __init__(
        self, agent: CaalAgent, model: LLM, *, userdata: Any = None, turn_s: float = TURN_S
    ) -> None:
        super().__init__(agent, model, userdata=userdata, turn_s=turn_s, conn_options=RETRIES)
        self.model: Final = model
        self.events: list[Event] = []
        """Every event since the conversation began."""
        agent.add_listener(self.events.append)

    def events_of(self, kind: type[EventType]) -> list[EventType]:
        """The events of one kind since the conversation began."""
        return [event for event in self.events if isinstance(event, kind)]
