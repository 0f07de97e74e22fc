"""A CaalAgent in a session without a room, on a stand-in model's server, with a scripted tier."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import Event
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, ScriptedToolSource
from tests.stand_ins.stand_in_model import StandInModel

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


async def sunny(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    """The answer of a tier that is always well."""
    return {"city": arguments.get("city"), "forecast": "sunny", "high_c": 21}


class Heard:
    """Puts the events that it hears into a list."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    def emit(self, event: Event) -> None:
        self._events.append(event)


class FakeTier(ScriptedToolSource):
    """A remote tier that has the weather, unless a test says otherwise."""

    def __init__(
        self,
        *specs: ToolSpec,
        answer: Callable[[ToolSpec, Mapping[str, Any]], Awaitable[Any]] = sunny,
    ) -> None:
        super().__init__(*(specs or [weather_spec()]), answer=answer)


class Conversation(AgentConversation):
    """A conversation that also knows the tier of its agent."""

    def __init__(self, agent: CaalAgent, model: LLM, tier: FakeTier) -> None:
        super().__init__(agent, model)
        self.tier = tier

    async def ask(self, words: str) -> str:
        """One turn; what was spoken in it."""
        return (await self.say(words)).spoken


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
    **options: Any,
) -> AsyncGenerator[Conversation]:
    settings = load_settings({"CAAL_CUES": "off", **(env or {})}, NOWHERE)
    model = LLM(
        server.model,
        api,
        server.url if api == "ollama" else server.openai_url,
        native_tools=native_tools,
        **options,
    )
    tier = tier or FakeTier()
    speaker = agent(settings=settings, tiers={"n8n": tier}, warm=warm)
    try:
        async with Conversation(speaker, model, tier) as talk:
            yield talk
    finally:
        await model.aclose()
