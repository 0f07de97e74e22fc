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


async def test_a_timer_rings_where_there_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "caal.toml").write_text("[toolsets.timers]\n", encoding="utf-8")
    rang = asyncio.Event()

    def note(event: Event) -> None:
        if isinstance(event, Spoken) and event.text == "Your tea timer is done.":
            rang.set()

    agent = CaalAgent(
        settings=load_settings({}, tmp_path / "caal.toml"),
        tiers={},
        warm=False,
        on_event=note,
        cue_sink=SilentCueSink(),
    )
    model = ScriptedModel([ScriptedCall("set_timer", {"length": "2 seconds", "name": "tea"})])
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("set a timer for 2 seconds for the tea")
        assert turn.text == "The tea timer is set for 2 seconds."
        async with asyncio.timeout(RINGS_S):
            await rang.wait()
        assert CuePlayed("ring") in talk.events
    await model.aclose()
