"""Sixty tools of real MCP servers, told on demand in an agent's turns, by both ways of asking."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from livekit.agents import llm

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded, ToolCallStarted
from tests.stand_ins.conversation import Conversation, FakeTier, conversation, weather_spec
from tests.stand_ins.mcp_conversation import PATIENCE_S, mcp_conversation
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel
from tests.stand_ins.told_conversations import spec

pytestmark = pytest.mark.long

MORE: Final = ("get_forecast", "find_trains", "search_mail", "list_tasks", "get_balance")
SERVERS: Final[dict[str, Any]] = {
    "mcpServers": {
        "house": {"command": sys.executable, "args": ["-m", "tests.stand_ins.fifty_tools"]},
        "office": {"command": sys.executable, "args": ["-m", "tests.stand_ins.fifty_tools", *MORE]},
        "club": {"command": sys.executable, "args": ["-m", "tests.stand_ins.fifty_tools", *MORE]},
    }
}
LIGHT: Final = {"room": "kitchen", "on": True}


def carried(name: str, arguments: Any) -> Call:
    return Call("use_tool", {"name": name, "arguments": arguments})


@asynccontextmanager
async def sixty(*replies: Reply) -> AsyncGenerator[tuple[StandInModel, Conversation]]:
    async with StandInModel(*replies) as server, mcp_conversation(server, SERVERS) as talk:
        async with asyncio.timeout(PATIENCE_S):  # on a busy machine its tools come later
            while len(talk.agent.table) < 60:  # noqa: ASYNC110 - a session takes no listener later
                await asyncio.sleep(0.005)
        yield server, talk


def offered(asked: Asked) -> list[str]:
    return [tool["function"]["name"] for tool in asked.json["tools"]]


def assert_only_grew(server: StandInModel) -> None:
    """Every request has the one before at its beginning, byte for byte, tools included."""
    bodies = [asked.json for asked in server.chats]
    for before, after in itertools.pairwise(bodies):
        assert after.get("tools") == before.get("tools")
        assert after["messages"][: len(before["messages"])] == before["messages"]


async def test_a_told_tool_is_carried_and_run_under_its_own_name() -> None:
    replies = ([carried("house__set_light", LIGHT)], ["It is on."], ["You are welcome."])
    async with sixty(*replies) as (server, talk):
        assert await talk.ask("turn on the light in the kitchen please") == "It is on."
        assert await talk.ask("thank you") == "You are welcome."
        (ended,) = talk.events_of(ToolCallEnded)
        (begun,) = talk.events_of(ToolCallStarted)
        assert (begun.tool, begun.arguments) == ("house__set_light", LIGHT)
        assert ended.outcome == "ok"
        assert [i.name for i in talk.history if isinstance(i, llm.FunctionCall)] == [begun.tool]
        assert all(offered(asked) == ["mcp_discover", "use_tool"] for asked in server.chats)
        assert_only_grew(server)
        assert "house__set_light" in str(server.chats[0].json["messages"][-2]["content"])
        told = [m for m in server.chats[-1].json["messages"] if "Tools that may" in m["content"]]
        assert len(told) == 1


async def test_a_tool_that_a_search_found_is_callable_in_the_same_turn() -> None:
    replies = (
        [Call("mcp_discover", {"patterns": ["forecast"]})],
        [carried("house__get_forecast", {"place": "Oslo"})],
        ["It will rain."],
    )
    async with sixty(*replies) as (server, talk):
        assert await talk.ask("will I get wet in Oslo") == "It will rain."
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["ok", "ok"]
        assert_only_grew(server)


async def test_a_call_by_the_told_name_itself_is_run_too() -> None:
    replies = ([Call("house__set_light", LIGHT)], ["It is on."])
    async with sixty(*replies) as (server, talk):
        assert await talk.ask("turn on the light in the kitchen please") == "It is on."
        assert [e.tool for e in talk.events_of(ToolCallEnded)] == ["house__set_light"]
        assert_only_grew(server)


async def test_an_error_of_a_carried_call_names_the_right_parameters() -> None:
    wrong, right = {"where": "kitchen"}, LIGHT
    replies = (
        [carried("house__set_light", wrong)],
        [carried("house__set_light", right)],
        ["It is on."],
    )
    async with sixty(*replies) as (server, talk):
        assert await talk.ask("turn on the light in the kitchen please") == "It is on."
        result = server.chats[1].json["messages"][-1]["content"]
        assert "room" in result
        assert "use_tool" not in result
        assert_only_grew(server)


async def test_warming_reads_the_few_tools_alone() -> None:
    tier = FakeTier(*(spec(f"tool_{number}") for number in range(60)), weather_spec())
    async with (
        StandInModel(["."], ["Sunny."]) as server,
        conversation(server, tier=tier, warm=True) as talk,
    ):
        await talk.agent.warmed()
        await talk.ask("how is the weather in Paris")
        warm, turn = (asked.json for asked in server.chats)
        head = warm["messages"][:-1]
        assert turn["messages"][: len(head)] == head
        assert turn["tools"] == warm["tools"]
        assert offered(server.chats[0]) == ["mcp_discover", "use_tool"]
        assert len(json.dumps(warm)) < 4_000
        assert "get_weather" in turn["messages"][-2]["content"]


async def test_by_text_the_told_name_is_called_as_it_is() -> None:
    call = json.dumps({"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]})
    tier = FakeTier(*(spec(f"tool_{number}") for number in range(60)), weather_spec())
    async with (
        StandInModel([call], ['{"say": "Sunny."}']) as server,
        conversation(server, tier=tier, native_tools=False) as talk,
    ):
        assert await talk.ask("how is the weather in Paris") == "Sunny."
        assert tier.calls == [("get_weather", {"city": "Paris"})]
        assert_only_grew(server)
        first = server.chats[0].json
        assert "tool_7" not in first["messages"][0]["content"]
        assert '"get_weather"' in json.dumps(first.get("format") or first)


async def test_a_class_that_gives_its_node_another_list_has_told_tools_run() -> None:
    class Choosy(CaalAgent):
        async def llm_node(
            self, chat_ctx: Any, tools: Any, model_settings: Any
        ) -> AsyncGenerator[Any]:
            some = [tool for tool in tools if tool.id != "tool_1"]
            async for chunk in super().llm_node(chat_ctx, some, model_settings):
                yield chunk

    tier = FakeTier(*(spec(f"tool_{number}") for number in range(60)), weather_spec())
    replies = ([carried("get_weather", {"city": "Paris"})], ["Sunny."])
    async with (
        StandInModel(*replies) as server,
        conversation(server, tier=tier, agent=Choosy) as talk,
    ):
        assert await talk.ask("how is the weather in Paris") == "Sunny."
        assert tier.calls == [("get_weather", {"city": "Paris"})]


async def test_a_plugins_own_model_gets_the_schemas_of_what_was_told() -> None:
    class Plugin(llm.LLM[Any]):
        """It notes which tools it is given, and says nothing."""

        def __init__(self) -> None:
            super().__init__()
            self.given: list[list[str]] = []

        def chat(self, *, tools: Any = None, **options: Any) -> Any:
            self.given.append([tool.id for tool in tools])
            raise RuntimeError

    plugin = Plugin()

    class PluginAgent(CaalAgent):
        def __init__(self, **options: Any) -> None:
            super().__init__(llm=plugin, **options)

    tier = FakeTier(*(spec(f"tool_{number}") for number in range(60)), weather_spec())
    async with (
        StandInModel() as server,
        conversation(server, tier=tier, agent=PluginAgent) as talk,
    ):
        await talk.ask("how is the weather in Paris")
    assert plugin.given == [["mcp_discover", "get_weather"]]


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_a_tool_that_goes_in_mid_conversation_is_not_run(api: str) -> None:
    weather = weather_spec()
    tier = FakeTier(*(spec(f"tool_{number}") for number in range(60)), weather)
    call = carried("get_weather", {"city": "Paris"})
    replies = ([call], ["Sunny."], [call], [call], ["I cannot."], ["I cannot."])
    async with StandInModel(*replies) as server, conversation(server, tier=tier, api=api) as talk:
        assert await talk.ask("how is the weather in Paris") == "Sunny."
        before = server.chats[-1].json["messages"]
        tier.specs = [each for each in tier.specs if each is not weather]
        await talk.agent.reload_tools()
        await talk.ask("and once more the same")
        assert tier.calls == [("get_weather", {"city": "Paris"})]
        assert server.chats[2].json["messages"][: len(before)] == before
