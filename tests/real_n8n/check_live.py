"""A live agent and a real n8n whose workflows come, tell of themselves, and reload its tools.

Run by `make test-n8n` alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from livekit import rtc
from livekit.agents import AgentSession, room_io

from caal_node.agent import CaalAgent
from caal_node.config.settings import Settings, load_settings
from caal_node.core.events import Event, Spoken, ToolCallEnded, ToolProgress
from caal_node.models.llm import LLM
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.configured import n8n_tier
from caal_node.tools.sources.mcp import McpToolSource
from mcp_bridge import Answer, Question
from tests.real_n8n.author import author, sample
from tests.real_n8n.edges import slow_steps
from tests.stand_ins.control_process import control_process
from tests.stand_ins.conversation import NOWHERE, conversation
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import Call, StandInModel

PATIENCE_S: Final = 60.0
TOKEN: Final = "a-token-of-the-tests"  # noqa: S105 - guards nothing


def settings(**more: str) -> Settings:
    url, key = os.environ["N8N_TEST_URL"], os.environ["N8N_TEST_API_KEY"]
    return load_settings({"N8N_URL": url, "N8N_API_KEY": key, "CAAL_CUES": "off", **more}, NOWHERE)


def new_name(what: str) -> str:
    return f"{what}_{uuid.uuid4().hex[:8]}"


def well_read(server: StandInModel) -> StandInModel:
    """It says that it has read the whole prompt, which is long with so many workflows."""
    server.prompt_tokens = 20_000
    return server


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - a table announces nothing
            await asyncio.sleep(0.05)


async def test_a_poll_takes_a_workflow_that_is_published_into_a_live_conversation() -> None:
    name = new_name("lights")
    call = Call(name, {"action": "on", "room": "kitchen"}, id="c1")
    tier: Any = n8n_tier(settings(), poll_s=0.5)
    async with (
        StandInModel(["Hello."], [call]) as server,
        conversation(
            well_read(server), tier=tier, api="openai", env={"CAAL_TOOL_TIMEOUT": "60"}
        ) as talk,
    ):
        await talk.ask("hello")
        before = len(talk.agent.table)
        assert name not in talk.agent.table
        async with author() as writer:
            await writer.publish(sample("lights.json", name=name))
            await until(lambda: name in talk.agent.table)
            assert len(talk.agent.table) == before + 1
            assert await talk.ask("the kitchen light, please") == "The kitchen light is on."
        await until(lambda: name not in talk.agent.table)
        (ended,) = talk.events_of(ToolCallEnded)
        assert (ended.tool, ended.outcome) == (name, "ok")
        said = [item.text_content for item in talk.history if item.type == "message"]
        assert said[-4:] == ["hello", "Hello.", "the kitchen light, please", said[-1]]


async def test_the_steps_of_a_streamed_run_are_told_as_progress() -> None:
    tier: Any = n8n_tier(settings())
    async with (
        StandInModel([Call("stream_steps", {}, id="c1")]) as server,
        conversation(well_read(server), tier=tier, api="openai") as talk,
    ):
        assert await talk.ask("do it") == "It is done."
        (told,) = talk.events_of(ToolProgress)
        (ended,) = talk.events_of(ToolCallEnded)
    words = "Looking at the calendar."
    assert told == ToolProgress(ended.call_id, "stream_steps", "n8n", "n8n", 1.0, None, words)


async def test_a_step_is_told_while_the_run_goes_on_after_it() -> None:
    heard = asyncio.Event()

    class Conversation:
        def report_progress(self, done: float, total: float | None, message: str) -> None:
            assert (done, total, message) == (1.0, None, "Collecting the figures.")
            heard.set()

        async def ask(self, question: Question) -> Answer:
            raise AssertionError("a workflow asks nobody")

    name = new_name("slow_steps")
    tier = n8n_tier(settings())
    async with author() as writer:
        await writer.publish(slow_steps(name))
        try:
            spec = next(spec for spec in (await tier.discover()).specs if spec.name == name)
            call = asyncio.create_task(tier.call(spec, {}, Conversation()))
            await asyncio.wait_for(heard.wait(), PATIENCE_S)
            assert not call.done()
            assert await call == VerbatimResult("It is done.", "It is done.")
        finally:
            await tier.aclose()


@pytest.mark.livekit
async def test_a_workflow_reloads_the_tools_of_the_room_that_called_it(livekit: LiveKit) -> None:
    """The sample as it is, but for its name, its path, and where `caal-node control` is."""
    reloads, fresh = new_name("reload"), new_name("train")
    room_name = new_name("room")
    events: list[Event] = []
    own = settings(LIVEKIT_API_KEY=livekit.key, LIVEKIT_API_SECRET=livekit.secret)
    async with (
        control_process(livekit, TOKEN) as address,
        author() as writer,
        StandInModel(
            [Call(reloads, {}, id="c1")],
            [Call(reloads, {}, id="c2")],
            [Call(reloads, {"tool_name": "no_such"}, id="c3")],
        ) as server,
    ):
        await writer.publish(
            await asking(
                sample("reload_tools.json", name=reloads), f"{address}/reload-tools", writer
            )
        )
        model = LLM(server.model, "openai", well_read(server).openai_url, native_tools=True)
        agent = CaalAgent(
            settings=own, tiers={"n8n": n8n_tier(own)}, on_event=events.append, warm=False
        )
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling={"turn_detection": None}
        )
        room = rtc.Room()
        await room.connect(livekit.url, livekit.token(room_name, "agent", agent=True))
        try:
            options = room_io.RoomOptions(audio_input=False, audio_output=False)
            await session.start(agent, room=room, room_options=options)  # pyright: ignore[reportUnknownMemberType] -- untyped there
            before = len(agent.table)
            await writer.publish(sample("train_times.json", name=fresh))
            assert fresh not in agent.table
            assert await said(session, events) == "Of my tools, 1 new."
            assert fresh in agent.table
            assert answers(session)[-1]["tool_count"] == len(agent.table) == before + 1
            assert await said(session, events) == "Nothing has changed."
            assert answers(session)[-1]["tool_count"] == before + 1
            missing = "I find no tool named no such. Nothing has changed."
            assert await said(session, events) == missing
        finally:
            await session.aclose()
            await room.disconnect()
            await model.aclose()


async def asking(workflow: dict[str, Any], url: str, writer: Any) -> dict[str, Any]:
    header = {"name": "Authorization", "value": f"Bearer {TOKEN}"}
    (node,) = (n for n in workflow["nodes"] if n["type"].endswith(".httpRequest"))
    node["parameters"]["url"] = url
    node["credentials"] = await writer.credential("httpHeaderAuth", header)
    return workflow


async def said(session: AgentSession[Any], events: list[Event]) -> str:
    events.clear()
    async with asyncio.timeout(PATIENCE_S):
        await session.run(user_input="look for new tools")
    return " ".join(event.text for event in events if isinstance(event, Spoken))


def answers(session: AgentSession[Any]) -> list[Any]:
    items = session.history.items
    return [json.loads(item.output) for item in items if item.type == "function_call_output"]


async def test_a_workflow_that_is_an_mcp_server_is_called_as_one(tmp_path: Path) -> None:
    path, token = new_name("house"), new_name("token")
    async with author() as writer:
        auth = await writer.credential("httpBearerAuth", {"token": token})
        await writer.publish(house(path, auth))
        server = {
            "url": f"{os.environ['N8N_TEST_URL']}/mcp/{path}",
            "headers": {"Authorization": f"Bearer {token}"},
        }
        config = tmp_path / "mcp_servers.json"
        config.write_text(json.dumps({"mcpServers": {"house": server}}))
        tier: Any = McpToolSource(config, call_timeout_s=30)
        try:
            listing = await tier.discover()
            assert listing.failed == {}
            (spec,) = listing.specs
            assert (spec.name, spec.parameters["required"]) == ("house__roll_dice", ["sides"])
            assert await tier.call(spec, {"sides": 6}) == "You rolled 1 of 6."
        finally:
            await tier.aclose()


def house(path: str, auth: dict[str, Any]) -> dict[str, Any]:
    kind = "@n8n/n8n-nodes-langchain"
    trigger = {
        "id": f"trigger-{path}",
        "name": "MCP Server Trigger",
        "type": f"{kind}.mcpTrigger",
        "typeVersion": 2,
        "position": [0, 0],
        "webhookId": f"id-of-{path}",
        "parameters": {"authentication": "bearerAuth", "path": path},
        "credentials": auth,
    }
    takes = {"type": "object", "properties": {"sides": {"type": "number"}}, "required": ["sides"]}
    tool = {
        "id": f"tool-{path}",
        "name": "roll_dice",
        "type": f"{kind}.toolCode",
        "typeVersion": 1.3,
        "position": [0, 200],
        "parameters": {
            "description": "Roll dice.",
            "jsCode": "return `You rolled 1 of ${query.sides}.`",
            "specifyInputSchema": True,
            "schemaType": "manual",
            "inputSchema": json.dumps(takes),
        },
    }
    to = [[{"node": "MCP Server Trigger", "type": "ai_tool", "index": 0}]]
    return {
        "name": path,
        "nodes": [trigger, tool],
        "connections": {"roll_dice": {"ai_tool": to}},
        "settings": {"executionOrder": "v1"},
    }
