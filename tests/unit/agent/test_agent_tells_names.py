"""Speech recognition is told the names that are said to an agent's tools, in a real session."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from livekit.agents import AgentSession, STTContextOptions, stt

from caal_node import CaalAgent
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import ScriptedModel, ScriptedSTT, ScriptedToolSource, plain_settings
from caal_node.toolsets.base import ConfiguredToolset, tool

WAIT_S = 10


class Ears(ScriptedSTT):
    """Speech to text that keeps what it is told."""

    def __init__(self, *, keyterms: bool = True) -> None:
        super().__init__()
        self._capabilities = stt.STTCapabilities(
            streaming=False, interim_results=False, keyterms=keyterms
        )
        self.told: asyncio.Queue[list[str]] = asyncio.Queue()

    def _update_session_keyterms(self, keyterms: list[str]) -> None:
        self.told.put_nowait(keyterms)

    async def next(self) -> list[str]:
        async with asyncio.timeout(WAIT_S):
            return await self.told.get()


class Rooms(ConfiguredToolset):
    NAME = "rooms"
    SUMMARY = "Knows rooms."
    names: Sequence[str] = ("orangery", "snug")
    fails = False

    @tool("write")
    async def dim(self, room: str) -> str:
        """Dim a room."""
        return room

    async def spoken_names(self) -> Sequence[str]:
        if self.fails:
            raise ConnectionError
        return self.names


def call_people(*names: str) -> ToolSpec:
    schema = {"type": "object", "properties": {"who": {"enum": list(names)}}}
    return ToolSpec("n8n", "n8n", "call", "call", "Call somebody.", schema)


def source_of(*specs: ToolSpec) -> ScriptedToolSource:
    async def answer(spec: ToolSpec, arguments: object) -> object:
        return {}

    return ScriptedToolSource(*specs, answer=answer)


def agent_with(source: ScriptedToolSource, *toolsets: ConfiguredToolset) -> CaalAgent:
    return CaalAgent(
        settings=plain_settings(), tiers={"n8n": source}, tools=list(toolsets), warm=False
    )


def session_with(ears: Ears, *keyterms: str) -> AgentSession[Any]:
    return AgentSession(
        llm=ScriptedModel(),
        stt=ears,
        vad=None,
        turn_handling={"turn_detection": "manual"},
        stt_context_options=STTContextOptions(keyterms=list(keyterms)),
    )


async def test_recognition_is_told_the_names_of_toolsets_and_the_choices_of_tools() -> None:
    ears = Ears()
    async with session_with(ears) as session:
        await session.start(agent_with(source_of(call_people("Siobhan")), Rooms()))
        assert await ears.next() == ["orangery", "snug", "Siobhan"]


async def test_it_is_told_anew_when_tools_change_and_only_then() -> None:
    ears, source = Ears(), source_of(call_people("Siobhan"))
    async with session_with(ears) as session:
        await session.start(agent := agent_with(source))
        assert await ears.next() == ["Siobhan"]
        await agent.reload_tools()
        source.specs[:] = [call_people("Siobhan", "Nguyen")]
        await agent.reload_tools()
        assert await ears.next() == ["Siobhan", "Nguyen"]


async def test_the_session_s_own_keyterms_stay_and_are_left_behind() -> None:
    ears = Ears()
    async with session_with(ears, "Grafana") as session:
        await session.start(agent_with(source_of(call_people("Siobhan"))))
        while (told := await ears.next()) == ["Grafana"]:
            pass  # LiveKit tells its own before the tools are known.
        assert told == ["Grafana", "Siobhan"]
        session.update_agent(agent_with(source_of()))
        assert await ears.next() == ["Grafana"]


async def test_a_toolset_that_cannot_be_reached_leaves_the_others_names() -> None:
    ears, rooms = Ears(), Rooms()
    rooms.fails = True
    async with session_with(ears) as session:
        await session.start(agent_with(source_of(call_people("Siobhan")), rooms))
        assert await ears.next() == ["Siobhan"]


async def test_recognition_that_takes_no_names_is_told_none() -> None:
    ears = Ears(keyterms=False)
    async with session_with(ears) as session:
        await session.start(agent_with(source_of(call_people("Siobhan"))))
        await session.drain()
        assert ears.told.empty()
