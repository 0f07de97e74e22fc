"""A CaalAgent in a session without a room, on a stand-in model, with tools that keep a record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livekit.agents import AgentSession, TurnHandlingOptions

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import Event, Spoken
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.tools.source import CallConversation, ToolListing, ToolSource
from tests.stand_in_model import StandInModel

NOWHERE = Path("no-such-caal.toml")


def weather_spec(tier: Any = "n8n", name: str = "get_weather") -> ToolSpec:
    return ToolSpec(
        tier,
        tier,
        name,
        name,
        "Weather of a city.",
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    )


class FakeTier(ToolSource):
    """A remote source in this process. `answer` gives a value, or raises."""

    def __init__(
        self,
        *specs: ToolSpec,
        answer: Callable[[ToolSpec, Mapping[str, Any]], Awaitable[Any]] | None = None,
    ) -> None:
        self.specs = list(specs or [weather_spec()])
        self.failed: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.closed = False
        self._answer = answer

    async def discover(self) -> ToolListing:
        return ToolListing(tuple(self.specs), dict(self.failed))

    async def call(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        conversation: CallConversation | None = None,
    ) -> Any:
        self.calls.append((spec.name, dict(arguments)))
        if self._answer is not None:
            return await self._answer(spec, arguments)
        return {"city": arguments.get("city"), "forecast": "sunny", "high_c": 21}

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Conversation:
    agent: CaalAgent
    session: AgentSession[Any]
    model: LLM
    tier: FakeTier
    events: list[Event] = field(default_factory=list[Event])

    async def say(self, words: str) -> str:
        """One turn; what was spoken in it."""
        before = len(self.events)
        async with asyncio.timeout(20):
            await self.session.run(user_input=words)
        return " ".join(e.text for e in self.events[before:] if isinstance(e, Spoken))

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def history(self) -> list[Any]:
        return self.session.history.items


@asynccontextmanager
async def conversation(
    server: StandInModel,
    *,
    agent: type[CaalAgent] = CaalAgent,
    tier: FakeTier | None = None,
    api: Any = "ollama",
    native_tools: bool | None = True,
    env: Mapping[str, str] | None = None,
    warm: bool = False,
) -> AsyncIterator[Conversation]:
    settings = load_settings({"CAAL_CUES": "off", **(env or {})}, NOWHERE)
    model = LLM(
        server.model,
        api,
        server.url if api == "ollama" else server.openai_url,
        native_tools=native_tools,
    )
    tier = tier or FakeTier()
    events: list[Event] = []
    speaker = agent(settings=settings, tiers={"n8n": tier}, on_event=events.append, warm=warm)
    session: AgentSession[Any] = AgentSession(
        llm=model,
        vad=None,
        turn_handling=TurnHandlingOptions(turn_detection=None),
        max_tool_steps=settings.max_tool_rounds - 1,
    )
    await session.start(speaker)
    try:
        yield Conversation(speaker, session, model, tier, events)
    finally:
        await session.aclose()
        await model.aclose()
