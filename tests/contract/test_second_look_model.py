"""Another model's server looks at a call once more, over its real API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from livekit.agents import function_tool

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import Decision, ToolCallEnded
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel
from tests.stand_ins.stand_in_model import Hang, Refuse, Reply, StandInModel

CALL = ScriptedCall("set_lamp", {"lamp": "bedroom"})
WORDS = "make it brighter"
EVENT_S = 20.0
"""For what must come; a test that runs into it has failed."""


class House(CaalAgent):
    def __init__(self, folder: Path, reference: str) -> None:
        self.ran: list[str] = []
        path = folder / "caal.toml"
        path.write_text(f'[tools]\nsecond_look_model = "{reference}"\n', "utf-8")
        settings = load_settings({"CAAL_CUES": "off", "CAAL_CHECKS": "off"}, path)
        super().__init__(settings=settings, tiers={}, warm=False)

    @function_tool
    async def set_lamp(self, lamp: str) -> str:
        """Switch a lamp on."""
        self.ran.append(lamp)
        return "on"


def look(talk: AgentConversation) -> Decision:
    (ended,) = talk.events_of(ToolCallEnded)
    (found,) = (each for each in ended.decisions if each.by == "second_look")
    return found


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (['{"wanted": "yes", "lamp": "yes"}'], "allowed"),
        (['{"wanted": "no", "lamp": "no"}'], "doubted"),
        ([Refuse(503, "busy")], "allowed"),
        (["Let me think about that."], "allowed"),
        (['{"wanted": "yes", "lamp": "'], "allowed"),
        (['{"wanted": "no"}'], "allowed"),
    ],
)
@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_its_answer_decides_whether_the_person_is_asked(
    tmp_path: Path, api: str, reply: Reply, verdict: str
) -> None:
    async with StandInModel(reply) as server:
        url = server.url if api == "ollama" else server.openai_url
        agent = House(tmp_path, f"{api}:stand-in@{url}")
        async with AgentConversation(agent, ScriptedModel([CALL], "So it is.")) as talk:
            await talk.say(WORDS)
            assert agent.ran == ([] if verdict == "doubted" else ["bedroom"])
            if verdict == "doubted":
                await talk.say("no")
            assert look(talk).verdict == verdict
        (asked,) = server.chats
        shown = json.loads(asked.json["messages"][-1]["content"])
        assert shown["talk"] == [f"Person: {WORDS}"]
        assert shown["arguments"] == {"lamp": "bedroom"}


async def test_a_server_that_is_not_there_holds_no_call_up(tmp_path: Path) -> None:
    agent = House(tmp_path, "ollama:judge@http://127.0.0.1:9")
    async with AgentConversation(agent, ScriptedModel([CALL], "So it is.")) as talk:
        await talk.say(WORDS)
        assert "could not be looked at" in look(talk).line
    assert agent.ran == ["bedroom"]


async def test_a_cancelled_turn_closes_the_request(tmp_path: Path) -> None:
    async with StandInModel([Hang()]) as server:
        agent = House(tmp_path, f"ollama:stand-in@{server.url}")
        async with AgentConversation(agent, ScriptedModel([CALL], "So it is.")) as talk:
            turn = asyncio.create_task(talk.say(WORDS))
            async with asyncio.timeout(EVENT_S):
                while not server.chats:
                    await server.request_arrived()
                agent.cancel_calls()
                await server.client_gone()
            await turn
        assert agent.ran == []
