"""Rooms of one agent begin their prompts with the same bytes, so that a server reads them once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.core.tool_spec import Example, ToolSpec
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, plain_settings
from caal_node.tools.source import ToolListing
from mcp_bridge import ServerManager
from tests.contract.test_mcp_late import config, stand_ins
from tests.stand_ins.conversation import FakeTier
from tests.stand_ins.mcp_events import PATIENCE_S
from tests.stand_ins.stand_in_model import StandInModel


def spec(tier: Any, source: str, name: str) -> ToolSpec:
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    said = (Example(f"{name} in Oslo", {"place": "Oslo"}),)
    return ToolSpec(tier, source, name, name, f"Tells the {name}.", parameters, examples=said)


class SlowTier(FakeTier):
    """It lists its tools when `turn` has come."""

    def __init__(self, turn: asyncio.Event, then: asyncio.Event, *specs: ToolSpec) -> None:
        super().__init__(*specs)
        self._turn, self._then = turn, then

    async def discover(self) -> ToolListing:
        await self._turn.wait()
        self._then.set()
        return await super().discover()


class House(CaalAgent):
    """Lives in whichever room it is put into."""


async def prompts_of(server: StandInModel, first: str, *, native: bool, api: Any) -> list[bytes]:
    """The bodies of a room's warm-up and first turn, where the tier `first` answers first."""
    at_once, later, end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    at_once.set()
    turns = {first: (at_once, later)}
    waits = (later, end)
    tools: dict[Any, Sequence[ToolSpec]] = {
        "n8n": [spec("n8n", "n8n", "weather"), spec("n8n", "n8n", "time")],
        "mcp": [spec("mcp", "house", "house__light"), spec("mcp", "garden", "garden__rain")],
    }
    order = [first, *(name for name in tools if name != first)]
    tiers: Any = {name: SlowTier(*turns.get(name, waits), *tools[name]) for name in order}
    model = LLM(
        server.model,
        api,
        server.url if api == "ollama" else server.openai_url,
        native_tools=native,
    )
    begun = len(server.chats)
    agent = House(settings=plain_settings(), tiers=tiers)
    try:
        async with AgentConversation(agent, model) as talk:
            await agent.warmed()
            await talk.say("Good morning.")
    finally:
        await model.aclose()
    return [asked.body for asked in server.chats[begun:]]


@pytest.mark.parametrize("api", ["ollama", "openai"])
@pytest.mark.parametrize("native", [True, False])
async def test_the_order_in_which_sources_answer_is_in_no_prompt(api: str, native: bool) -> None:
    async with StandInModel(answer=lambda _: ['{"say": "Good morning."}']) as server:
        one = await prompts_of(server, "n8n", native=native, api=api)
        other = await prompts_of(server, "mcp", native=native, api=api)
    assert one[0] == other[0]
    assert one[-1] == other[-1]
    assert all(name in one[-1] for name in (b"weather", b"house__light", b"garden__rain"))


async def listed(first: int) -> list[str]:
    """The tools of two servers, where the one at the place `first` is ready first."""
    async with stand_ins(2) as servers:
        configs = [config(server, name) for server, name in zip(servers, "ab", strict=True)]

        async def begin() -> None:
            await servers[first].start()
            await servers[1 - first].start()

        starting = asyncio.create_task(begin())
        async with ServerManager(configs, ready_s=PATIENCE_S) as manager:
            await starting
            return [json.dumps([t.name, t.input_schema]) for t in await manager.list_tools()]


async def test_the_order_in_which_mcp_servers_are_ready_is_in_no_list_of_tools() -> None:
    one = await listed(0)
    assert one == await listed(1)
    assert len({name.split("__")[0] for name in one}) == 2
