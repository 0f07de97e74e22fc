"""Calls of own methods in one reply: in the model's order, side by side where they read.

Some stand beside calls of a real MCP server, and some are cancelled.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from livekit.agents import AgentTask, function_tool
from livekit.agents.llm.tool_context import ToolFlag

from caal_node.agent import CaalAgent
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.effects import effect
from caal_node.tools.sources.mcp import McpToolSource
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, StandInModel

DONE = ["All done."]
PATIENCE_S = 20.0
READER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("notes")
@server.tool()
def read_note(path: str) -> str:
    "Read a note."
    return open(path).read()
server.run()
"""


class House(CaalAgent):
    """Each call notes when it begins and ends, and gives all others time to begin."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []
        self.both_began = asyncio.Event()
        self.asked = asyncio.Event()
        self.gate_opened = asyncio.Event()

    async def _work(self, name: str) -> str:
        self.log.append(f"{name} began")
        for _ in range(50):
            await asyncio.sleep(0)
        self.log.append(f"{name} ended")
        return name

    async def _read(self, name: str) -> str:
        self.log.append(name)
        if len(self.log) == 2:
            self.both_began.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.both_began.wait()
        return name

    @function_tool
    async def open_gate(self) -> str:
        """Open the gate."""
        name = await self._work("open_gate")
        self.gate_opened.set()
        return name

    @function_tool(flags=ToolFlag.CANCELLABLE)
    async def drive_in(self) -> str:
        """Drive in."""
        return await self._work("drive_in")

    @function_tool
    async def get_time(self) -> str:
        """Tell the time."""
        return await self._read("get_time")

    @function_tool
    @effect("read")
    async def humidity(self) -> str:
        """Tell the humidity."""
        return await self._read("humidity")

    @function_tool
    async def write_note(self, path: str) -> str:
        """Write a note into a file."""
        return await self._work(f"write_note {path}")

    @function_tool
    async def keep_note(self, path: str) -> str:
        """Write a note into a file, slowly."""
        name = await self._work("keep_note")
        await asyncio.to_thread(Path(path).write_text, "milk and eggs", encoding="utf-8")
        return name

    @function_tool(flags=ToolFlag.CANCELLABLE)
    async def wash(self) -> str:
        """Wash the car, which does not end."""
        self.log.append("wash began")
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("wash was cancelled")
        return "washed"

    @function_tool
    async def interview(self) -> str:
        """Ask a few questions."""
        self.log.append("interview began")
        self.task = _Interview(self)
        answer = await self.task
        self.log.append("interview ended")
        return answer


class _Interview(AgentTask[str]):
    """A conversation inside a call, in which the model speaks and somebody answers."""

    def __init__(self, house: House) -> None:
        # LiveKit leaves the types of its sessions open.
        super().__init__(instructions="Ask.")  # pyright: ignore[reportUnknownMemberType]
        self._house = house

    async def on_enter(self) -> None:
        self._house.log.append("a question")
        self._house.asked.set()


async def test_own_methods_that_write_run_in_the_models_order() -> None:
    calls = [Call("open_gate", {}, id="c1"), Call("drive_in", {}, id="c2")]
    async with StandInModel(calls, DONE) as server, conversation(server, agent=House) as talk:
        assert await talk.ask("open the gate and drive in") == DONE[0]
        assert _log(talk.agent) == [
            "open_gate began",
            "open_gate ended",
            "drive_in began",
            "drive_in ended",
        ]


async def test_own_methods_that_read_run_side_by_side() -> None:
    calls = [Call("get_time", {}, id="c1"), Call("humidity", {}, id="c2")]
    async with StandInModel(calls, DONE) as server, conversation(server, agent=House) as talk:
        assert await talk.ask("what are the time and the humidity?") == DONE[0]
        assert _log(talk.agent) == ["get_time", "humidity"]


async def test_a_remote_call_on_the_same_file_waits_for_the_own_one(tmp_path: Path) -> None:
    path = str(tmp_path / "note.txt")
    log: list[str] = []

    async def read(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        log.append(spec.name)
        return {"text": "hi"}

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tier = FakeTier(ToolSpec("n8n", "n8n", "get_note", "get_note", "Reads.", schema), answer=read)
    calls = [
        Call("write_note", {"path": path}, id="c1"),
        Call("get_note", {"path": path}, id="c2"),
    ]
    async with (
        StandInModel(calls, DONE) as server,
        conversation(server, agent=House, tier=tier) as talk,
    ):
        _agent(talk.agent).log = log
        assert await talk.ask(f"write the note {path} and read it out") == DONE[0]
    assert log == [f"write_note {path} began", f"write_note {path} ended", "get_note"]


async def test_a_call_behind_one_that_holds_a_conversation_comes_after_it() -> None:
    calls = [Call("interview", {}, id="c1"), Call("open_gate", {}, id="c2")]
    async with (
        StandInModel(calls, ["Thank you."], DONE) as server,
        conversation(server, agent=House) as talk,
    ):
        house = _agent(talk.agent)
        async with asyncio.timeout(PATIENCE_S):
            await talk.ask("interview me, then open the gate")
            await house.asked.wait()
            assert await talk.ask("blue") == "Thank you."
            house.task.complete("answered")
            await house.gate_opened.wait()
        assert house.log == [
            "interview began",
            "a question",
            "interview ended",
            "open_gate began",
            "open_gate ended",
        ]


async def test_a_call_that_fails_lets_the_next_one_run() -> None:
    calls = [Call("write_note", {"path": 7, "more": []}, id="c1"), Call("drive_in", {}, id="c2")]
    async with StandInModel(calls, DONE) as server, conversation(server, agent=House) as talk:
        await talk.ask("write the note and drive in")
        assert _log(talk.agent)[-2:] == ["drive_in began", "drive_in ended"]


class HouseOfServers(House):
    """Takes the conversation's tier as its MCP servers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "tiers": {"mcp": options["tiers"]["n8n"]}})


async def test_a_real_servers_call_on_the_same_file_waits_for_the_own_one(tmp_path: Path) -> None:
    path, config = str(tmp_path / "note.txt"), tmp_path / "mcp_servers.json"
    entry = {"command": sys.executable, "args": ["-c", READER], "allow": ["eval"]}
    config.write_text(json.dumps({"notes": entry | {"connect_timeout": 60}}), encoding="utf-8")
    config.chmod(0o600)
    tier: Any = McpToolSource(config, call_timeout_s=PATIENCE_S, ready_s=PATIENCE_S)
    calls = [
        Call("keep_note", {"path": path}, id="c1"),
        Call("notes__read_note", {"path": path}, id="c2"),
    ]
    async with (
        StandInModel(calls, DONE) as server,
        conversation(server, agent=HouseOfServers, tier=tier) as talk,
    ):
        assert await talk.ask(f"keep the note {path} and read it out") == DONE[0]
        told = [m["content"] for m in server.chats[1].json["messages"] if m["role"] == "tool"]
    assert "milk and eggs" in told[1]


async def test_a_session_that_closes_ends_the_call_that_runs_and_the_one_behind_it() -> None:
    calls = [Call("wash", {}, id="c1"), Call("drive_in", {}, id="c2")]
    async with (
        asyncio.timeout(PATIENCE_S),
        StandInModel(calls, DONE) as server,
        conversation(server, agent=House) as talk,
    ):
        house = _agent(talk.agent)
        talk.session.generate_reply(user_input="wash the car and drive in")
        await house.asked.wait()
        await talk.session.aclose()
        assert house.log == ["wash began", "wash was cancelled"]
    assert house.log == ["wash began", "wash was cancelled"]


def _agent(agent: CaalAgent) -> House:
    assert isinstance(agent, House)
    return agent


def _log(agent: CaalAgent) -> list[str]:
    return _agent(agent).log
