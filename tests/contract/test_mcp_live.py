"""A conversation and an MCP server whose tools change, which tells of progress, and which asks."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from caal_node.agent import CaalAgent
from caal_node.core.events import (
    QuestionAsked,
    QuestionEnded,
    QuestionField,
    ToolCallEnded,
    ToolProgress,
    ToolSourceChanged,
    TurnEnded,
    from_json,
    to_json,
)
from caal_node.tools.sources.mcp import McpToolSource
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.mcp_events import PATIENCE_S, events
from tests.stand_ins.stand_in_model import Call, StandInModel

FRAIL = """
import os, pathlib
from mcp.server.mcpserver import MCPServer
ill = pathlib.Path({ill!r})
if ill.exists():
    raise SystemExit("the disk is full")
server = MCPServer("frail")
@server.tool()
def die() -> str:
    "Die."
    ill.touch()
    os._exit(1)
@server.tool()
def live() -> str:
    "Live."
    return "alive"
server.run()
"""
"""It dies at a call, and does not start again until its file is gone."""
LIVELY = Path(__file__).parents[1] / "stand_ins" / "changing_mcp_server.py"


FIRST_PROMPT_S = 8.0
"""Seconds on a busy machine; the server alone would have its 120."""


class Agent(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "tiers": {"mcp": options["tiers"]["n8n"]}})


@asynccontextmanager
async def live(
    server: StandInModel, folder: Path, *, tool_tokens: int = 3000
) -> AsyncIterator[Conversation]:
    async with events() as seen:
        args, env = [str(LIVELY), "2025-11-25"], {"EVENTS_PORT": str(seen.port)}
        entry = {"command": sys.executable, "args": args, "env": env, "connect_timeout": 60}
        config = folder / "mcp_servers.json"
        config.write_text(json.dumps({"live": entry}))
        tier: Any = McpToolSource(
            config, call_timeout_s=30, ready_s=PATIENCE_S, tool_tokens=tool_tokens
        )
        env = {"CAAL_TOOL_TOKENS": str(tool_tokens)}
        async with conversation(server, agent=Agent, tier=tier, env=env) as talk:
            yield talk


async def until_there(talk: Conversation, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while name not in talk.agent.table:  # noqa: ASYNC110 - the table announces nothing
            await asyncio.sleep(0.01)


def offered(server: StandInModel, chat: int) -> list[Any]:
    return server.chats[chat].json["tools"]


async def test_a_tool_that_a_server_adds_can_be_called_in_the_next_turn(tmp_path: Path) -> None:
    grow, more = Call("live__grow", {}, id="c1"), Call("live__more7", {}, id="c2")
    async with (
        StandInModel([grow], ["Grown."], [more], ["Called."]) as server,
        live(server, tmp_path) as talk,
    ):
        await talk.ask("grow, please")
        await until_there(talk, "live__more7")
        await talk.ask("call the new one")
        first, last = offered(server, 0), offered(server, 2)
        assert last[: len(first)] == first, "the prompt's beginning stays"
        assert [tool["function"]["name"] for tool in last[len(first) :]] == ["live__more7"]
        assert [end.outcome for end in talk.events_of(ToolCallEnded)] == ["ok", "ok"]


async def test_where_tools_are_searched_for_a_new_one_is_found_and_the_prompt_stays(
    tmp_path: Path,
) -> None:
    grow = Call("live__grow", {}, id="c2")
    search = {"patterns": ["*grow*"]}
    again = Call("mcp_discover", {"patterns": ["*more*"]}, id="c3")
    async with (
        StandInModel(
            [Call("mcp_discover", search, id="c1")], [grow], ["Grown."], [again], ["Found."]
        ) as server,
        live(server, tmp_path, tool_tokens=0) as talk,
    ):
        await talk.ask("grow, please")
        await until_there(talk, "live__more7")
        assert [entry.exposed for entry in talk.agent.head_entries] == ["mcp_discover"]
        await talk.ask("find the new one")
        known = offered(server, 1)
        assert offered(server, 3)[: len(known)] == known


async def test_progress_of_a_call_is_told_as_events(tmp_path: Path) -> None:
    async with (
        StandInModel([Call("live__count", {}, id="c1")], ["Counted."]) as server,
        live(server, tmp_path) as talk,
    ):
        await talk.ask("count")
        (ended,) = talk.events_of(ToolCallEnded)
        told = talk.events_of(ToolProgress)
        first = ToolProgress(ended.call_id, "live__count", "mcp", "live", 1.0, 3.0, "step 1")
        assert told[0] == first
        assert (told[-1].done, told[-1].total) == (3.0, 3.0)
        assert from_json(to_json(first)) == first


async def test_a_servers_question_is_asked_and_the_next_words_are_its_answer(
    tmp_path: Path,
) -> None:
    async with (
        StandInModel([Call("live__ask", {}, id="c1")], ["The kitchen it is."]) as server,
        live(server, tmp_path) as talk,
    ):
        assert await talk.ask("clean a room") == "The server live asks: Which room?"
        assert len(server.chats) == 1
        assert await talk.ask("the kitchen") == "The kitchen it is."
        result = server.chats[1].json["messages"][-1]
        assert (result["role"], result["content"]) == ("tool", "accept the kitchen")
        assert [end.outcome for end in talk.events_of(ToolCallEnded)] == ["ok"]
        assert [(end.rounds, end.requests) for end in talk.events_of(TurnEnded)] == [(1, 2)], (
            "one turn"
        )
        assert talk.session.current_agent is talk.agent
        (asked,) = talk.events_of(QuestionAsked)
        (ended,) = talk.events_of(QuestionEnded)
        assert asked.message == "The server live asks: Which room?"
        assert asked.fields == (QuestionField("room", "text", "room", "", required=True),)
        assert (ended.question_id, ended.answer, ended.by) == (
            asked.question_id,
            "accepted",
            "words",
        )


async def test_a_person_may_leave_a_question(tmp_path: Path) -> None:
    async with (
        StandInModel([Call("live__ask", {}, id="c1")], ["As you like."]) as server,
        live(server, tmp_path) as talk,
    ):
        await talk.ask("clean a room")
        assert await talk.ask("Never mind.") == "As you like."
        assert server.chats[1].json["messages"][-1]["content"] == "cancel"
        assert [end.answer for end in talk.events_of(QuestionEnded)] == ["dismissed"]


async def test_a_server_that_dies_in_a_session_is_told_of_and_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    ill, config = tmp_path / "ill", tmp_path / "mcp_servers.json"
    code = FRAIL.format(ill=str(ill))
    entry = {"command": sys.executable, "args": ["-c", code], "allow": ["eval"]}
    config.write_text(json.dumps({"frail": entry | {"connect_timeout": 60}}), encoding="utf-8")
    config.chmod(0o600)
    tier: Any = McpToolSource(config, call_timeout_s=30, ready_s=PATIENCE_S)
    die, live = Call("frail__die", {}, id="c1"), Call("frail__live", {}, id="c2")
    async with (
        asyncio.timeout(60),
        StandInModel([die], ["It died."], [live], ["It lives."]) as server,
        conversation(server, agent=Agent, tier=tier) as talk,
    ):
        await talk.ask("die")
        while not talk.events_of(ToolSourceChanged):  # noqa: ASYNC110 - events come as they come
            await asyncio.sleep(0.02)
        down = talk.events_of(ToolSourceChanged)[0]
        assert (down.source, down.state) == ("frail", "down")
        assert "exited with code 1" in down.reason
        ill.unlink()
        await talk.agent.reload_tools()
        await talk.ask("live")
        assert talk.events_of(ToolSourceChanged)[-1] == ToolSourceChanged("frail", "ready")
        assert [end.outcome for end in talk.events_of(ToolCallEnded)][-1] == "ok"


async def test_a_server_that_prints_to_stdout_does_not_hold_up_the_first_prompt(
    tmp_path: Path,
) -> None:
    config = tmp_path / "mcp_servers.json"
    code = "import time; print('Listening on port 8080', flush=True); time.sleep(600)"
    entry = {"command": sys.executable, "args": ["-c", code], "allow": ["eval"]}
    config.write_text(json.dumps({"loud": entry | {"connect_timeout": 120}}), encoding="utf-8")
    config.chmod(0o600)
    tier: Any = McpToolSource(config, call_timeout_s=30)
    async with StandInModel(["Hello."]) as server:
        began = time.perf_counter()
        async with conversation(server, agent=Agent, tier=tier) as talk:
            assert await talk.ask("hello") == "Hello."
            took_s = time.perf_counter() - began
            assert "is not ready yet" in talk.agent.failed["loud"]
    assert took_s < FIRST_PROMPT_S
