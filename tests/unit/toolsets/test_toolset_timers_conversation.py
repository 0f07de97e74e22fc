"""Timers in a conversation without a room, as `caal-node chat` has one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import CuePlayed, Event, Spoken
from caal_node.room.cue_player import SilentCueSink
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel

RINGS_S = 30.0
"""Seconds within which a timer of one second must have rung."""


def agent_of(folder: Path, table: str, words: str) -> tuple[CaalAgent, asyncio.Event]:
    """An agent with a table of caal.toml, and an event that is set once it says `words`."""
    (folder / "caal.toml").write_text(table, encoding="utf-8")
    said = asyncio.Event()

    def note(event: Event) -> None:
        if isinstance(event, Spoken) and event.text == words:
            said.set()

    agent = CaalAgent(
        settings=load_settings({}, folder / "caal.toml"),
        tiers={},
        warm=False,
        on_event=note,
        cue_sink=SilentCueSink(),
    )
    return agent, said


async def test_a_timer_rings_where_there_is_no_room(tmp_path: Path) -> None:
    agent, rang = agent_of(tmp_path, "[toolsets.timers]\n", "Your tea timer is done.")
    model = ScriptedModel([ScriptedCall("set_timer", {"length": "2 seconds", "name": "tea"})])
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("set a timer for 2 seconds for the tea")
        assert turn.text == "The tea timer is set for 2 seconds."
        async with asyncio.timeout(RINGS_S):
            await rang.wait()
        assert CuePlayed("ring") in talk.events
    await model.aclose()


async def test_a_request_for_later_needs_a_yes_and_is_answered_at_its_time(tmp_path: Path) -> None:
    table = "[toolsets.timers]\nrequests = true\n"
    agent, answered = agent_of(tmp_path, table, "Nothing is set.")
    kept = {"request": "tell me which timers are set", "when": "in 3 seconds"}
    model = ScriptedModel([ScriptedCall("schedule", kept)], [ScriptedCall("list_timers", {})])
    async with AgentConversation(agent, model) as talk:
        question = await talk.say("tell me in 3 seconds which timers are set")
        assert "tell me which timers are set" in question.text
        assert question.text.endswith("?")
        assert "I'll do this at" in (await talk.say("yes")).text
        async with asyncio.timeout(RINGS_S):
            await answered.wait()
        said = [event.text for event in talk.events if isinstance(event, Spoken)]
        assert "As you asked earlier: tell me which timers are set." in said
    await model.aclose()
