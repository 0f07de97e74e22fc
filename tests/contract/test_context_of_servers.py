"""What servers tell of their context is what a conversation uses, and what does not fit is said."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from livekit.agents import llm

from caal_node.agent import CaalAgent
from caal_node.cli.checks.tools import check_offer
from caal_node.cli.tools import list_tools
from caal_node.config.settings import Settings
from caal_node.context.tool_data import ToolDataCache
from caal_node.control.messages import ListAnswer, ListTools
from caal_node.core.errors import ModelContextFull
from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.core.paths import used_tools
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.backends.base import Capabilities, ReplyDone
from caal_node.models.chat_context import as_api_error
from caal_node.models.llm import LLM
from caal_node.models.strategies import NativeStrategy
from caal_node.prompt_builder import PromptBuilder
from caal_node.testing import plain_settings
from caal_node.tools.tool_search import OFTEN, UsedTools
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.stand_in_model import Asked, Call, StandInModel

ABOUT = "Looks up one more of the many things that a house can tell, and says what it has found. "


def many(count: int, words: int = 6) -> FakeTier:
    """A tier whose tools' schemas take some 18 tokens for each of `words`."""
    properties = {"what": {"type": "string", "description": ABOUT}}
    parameters = {"type": "object", "properties": properties, "required": ["what"]}
    names = [f"look_up_{number:02}" for number in range(count)]
    return FakeTier(
        *(ToolSpec("n8n", "n8n", name, name, ABOUT * words, parameters) for name in names)
    )


NO_BUDGET = {"CAAL_TOOL_TOKENS": "100000"}
"""Only the model's context bounds what stands in front of a conversation."""


def said(asked: Asked) -> list[str]:
    return [str(m["content"]) for m in asked.json["messages"] if m["role"] == "user"]


async def context_of(server: StandInModel, **given: Any) -> int | None:
    """The context that is known once the way of asking was found out."""
    url = server.url if given.get("api") == "ollama" else server.openai_url
    model = LLM(server.model, base_url=url, **given)
    await model.find_strategy()
    found = model.retry_policy.stats.capabilities
    await model.aclose()
    assert found
    return found.context_tokens


@pytest.mark.parametrize("owner", ["vllm", "organization_owner", "library"])
async def test_the_context_of_the_loaded_model_is_known_before_the_first_turn(owner: str) -> None:
    async with StandInModel(answer=lambda _: [Call("get_weather")], context_tokens=5_000) as server:
        server.owner = owner
        assert await context_of(server, api="openai") == 5_000


async def test_llamas_context_and_the_lesser_of_ollamas_are_known() -> None:
    async with StandInModel(answer=lambda _: ["Hm."], context_tokens=5_000, llama=True) as llama:
        assert await context_of(llama, api="openai") == 5_000
    async with StandInModel(answer=lambda _: ["Hm."], context_tokens=5_000) as ollama:
        assert await context_of(ollama, api="ollama") == 5_000
        assert await context_of(ollama, api="ollama", num_ctx=4_096) == 4_096


async def test_with_tools_that_fill_the_window_the_turns_before_are_not_forgotten() -> None:
    replies = [[f"Reply {number}."] for number in range(4)]
    async with (
        StandInModel(*replies) as server,
        conversation(server, tier=many(35), api="openai", env=NO_BUDGET) as talk,
    ):
        server.prompt_tokens = 5_500  # It reads all.
        for number in range(4):
            await talk.ask(f"words {number}")
        assert talk.agent.table.prompt_tools.schema_tokens > 6_144
        assert said(server.chats[-1]) == [f"words {number}" for number in range(4)]
        assert len(server.chats[-1].json["tools"]) == 35


@pytest.mark.parametrize(("context", "in_front"), [(8_192, False), (16_384, True)])
async def test_tools_stand_in_front_where_the_context_holds_twenty_turns_beside_them(
    context: int, in_front: bool
) -> None:
    async with (
        StandInModel(["Ready."], ["One."], context_tokens=context, llama=True) as server,
        conversation(server, tier=many(20), api="openai", warm=True) as talk,
    ):
        await talk.agent.warmed()
        await talk.ask("first")
        assert 3_000 < talk.agent.table.prompt_tools.schema_tokens < 6_000
        assert len(talk.agent.head_entries) == (20 if in_front else 1)
        assert len(server.chats[-1].json["tools"]) == (20 if in_front else 2)


async def test_tools_for_which_the_context_is_too_small_are_told_on_demand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "caal_node")
    replies = [["One."], ["Two."], ["Three."]]
    async with (
        StandInModel(*replies, context_tokens=4_096, llama=True) as server,
        conversation(server, tier=many(55), api="openai", warm=True, env=NO_BUDGET) as talk,
    ):
        server.prompt_tokens = 3_000
        await talk.agent.warmed()
        await talk.ask("first")
        await talk.ask("second")
        offered = server.chats[-1].json["tools"]
        assert said(server.chats[-1]) == ["first", "second"]
        first = server.chats[1].json["tools"]
        listed = await talk.agent.on_tools(ListTools())
    assert [tool["function"]["name"] for tool in offered] == ["mcp_discover", "use_tool"]
    assert offered == first
    assert isinstance(listed, ListAnswer)
    assert len(listed.tools) == 55
    assert not any(tool.offered for tool in listed.tools)
    assert not [r.getMessage() for r in caplog.records if "do not fit" in r.getMessage()]


async def test_pinned_tools_for_which_the_context_is_too_small_are_left_out_and_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "caal_node")
    pinned = {"CAAL_PINNED_TOOLS": "look_up_[0-4]*"}
    async with (
        StandInModel(["One."], ["Two."], ["Three."], context_tokens=4_096, llama=True) as server,
        conversation(server, tier=many(55), api="openai", warm=True, env=pinned) as talk,
    ):
        server.prompt_tokens = 3_000
        await talk.agent.warmed()
        await talk.ask("first")
        await talk.ask("second")
        offered = server.chats[-1].json["tools"]
        listed = await talk.agent.on_tools(ListTools())
        assert offered == server.chats[1].json["tools"]
    assert isinstance(listed, ListAnswer)
    shown = {tool["function"]["name"] for tool in offered} - {"mcp_discover", "use_tool"}
    assert {tool.name for tool in listed.tools if tool.offered} == shown
    assert 5 < len(shown) < 50
    told = [r.getMessage() for r in caplog.records if "do not fit" in r.getMessage()]
    assert len(told) == 1, "it is said once, not in every turn"
    assert "left out: look_up_" in told[0]
    assert "set CAAL_NUM_CTX=11264" in told[0]


async def test_once_the_server_has_told_its_context_a_full_one_is_asked_with_fewer_tools() -> None:
    async with StandInModel() as server, conversation(server, tier=many(38), env=NO_BUDGET) as talk:
        await talk.agent.reload_tools()
        tools = llm.ToolContext(talk.agent.tools).flatten()
        model = LLM(server.model, base_url=server.url)
        agent = SimpleNamespace(table=talk.agent.table, model=model)
        builder = PromptBuilder(plain_settings(), ToolDataCache(), agent)
        history = (UserItem("first"),)
        assert len(builder.question(history, tools).tools.names) == 38
        model.retry_policy.stats.capabilities = Capabilities(context_tokens=4_096)
        full = as_api_error(ModelContextFull("the prompt is too long", status=400))
        full.__cause__ = ModelContextFull("the prompt is too long", status=400)
        assert builder.shorten(full, history, tools)
        assert len(builder.question(history, tools).tools.names) < 38
        assert not builder.shorten(full, history, tools), "there is nothing more to leave out"
        await model.aclose()


class Burdened(CaalAgent):
    """An agent with more tools than a small context holds."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings=settings, tiers={"n8n": many(55)})


async def test_doctor_says_what_does_not_fit_and_how_much_would() -> None:
    where = f"{__name__}:{Burdened.__name__}"
    async with StandInModel(context_tokens=32_768) as server:
        small = plain_settings(
            OLLAMA_HOST=server.url,
            CAAL_MODEL=server.model,
            CAAL_AGENT=where,
            CAAL_NUM_CTX="2048",
            CAAL_PINNED_TOOLS="look_up_*",
        )
        *_, found = await check_offer(small)
        assert (found.status, found.name) == ("warn", "context")
        assert "left out: look_up_" in found.found
        advised = found.fix.partition("CAAL_NUM_CTX=")[2].partition(",")[0]
        enough = small.model_copy(update={"num_ctx": int(advised)})
        *_, found = await check_offer(enough)
        assert (found.status, "the conversation gets" in found.found) == ("ok", True)
        on_demand = small.model_copy(update={"pinned_tools": ()})
        *_, found = await check_offer(on_demand)
        assert found.status == "ok"
        assert "55 of 55 tools are added on demand" in found.found


class Habitual(CaalAgent):
    """An agent whose earlier sessions called some of its forty tools often."""

    def __init__(self, *, tiers: Any = None, **options: Any) -> None:
        super().__init__(tiers=tiers or {"n8n": many(40)}, **options)


@pytest.mark.parametrize(
    ("context", "used"),
    [(4_096, []), (8_192, ["07"]), (16_384, ["07", "30", "21", "33"])],
)
async def test_the_commands_list_in_every_prompt_what_the_next_session_begins_with(
    context: int, used: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    often = UsedTools(used_tools(Habitual.__name__))
    for calls, number in enumerate(["12", "33", "21", "30", "07"], OFTEN - 1):
        for _ in range(calls):
            often.note(f"look_up_{number}")
    await asyncio.to_thread(often.save)
    env = {"CAAL_NUM_CTX": "32768"}
    async with (
        StandInModel(["Ready."], ["One."], context_tokens=context, llama=True) as server,
        conversation(
            server, agent=Habitual, tier=many(40), api="openai", warm=True, env=env
        ) as talk,
    ):
        await talk.agent.warmed()
        in_front = {entry.exposed for entry in talk.agent.head_entries}
        settings = plain_settings(
            CAAL_API="openai",
            CAAL_BASE_URL=server.openai_url,
            CAAL_MODEL=server.model,
            CAAL_AGENT=f"{__name__}:{Habitual.__name__}",
            **env,
        )
        await list_tools(settings, None, as_json=True)
        *_, found = await check_offer(settings)
    tools = json.loads(capsys.readouterr().out)["tools"]
    assert {tool["name"] for tool in tools if tool["offered"]} == in_front
    assert in_front == {"mcp_discover", *(f"look_up_{number}" for number in used)}
    assert f"; {40 - len(used)} of 40 tools are added on demand" in found.found


@pytest.mark.model
async def test_a_real_server_reads_earlier_turns_beside_schemas_of_its_whole_window(
    llama: str,
) -> None:
    """llama.cpp with a context of 4,096 tokens, and schemas that fill its window of 3,072."""
    model = LLM("any", "openai", f"{llama}/v1", native_tools=True)
    agent = CaalAgent(settings=plain_settings(**NO_BUDGET), tiers={"n8n": many(18)}, warm=False)
    asking = SimpleNamespace(table=agent.table, model=model)
    builder = PromptBuilder(agent.settings, ToolDataCache(), asking)
    history = [SystemItem("Be short."), UserItem("My name is Zebedee."), AssistantItem("Hello.")]
    try:
        await agent.reload_tools()
        await model.find_strategy()
        tools = llm.ToolContext(agent.tools).flatten()
        question = builder.question([*history, UserItem("What is my name?")], tools)
        assert question.tools.schema_tokens > 3_000
        assert question.items[:3] == tuple(history)
        request = replace(NativeStrategy().request(question), max_tokens=1)
        [*_, done] = [chunk async for chunk in model.backend.ask(request)]
        assert isinstance(done, ReplyDone)
        assert 2_000 < done.usage.prompt < 4_096
    finally:
        await agent.close_tools()
        await model.aclose()
