"""Lists and the calendar in a conversation: one request for each plain answer, and "that one"."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.calendar import Calendar
from caal_node.toolsets.calendar.known_calendars import CalendarOptions
from caal_node.toolsets.lists import Lists, ListsOptions

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 11, 23, 9, 30, tzinfo=OSLO)
"""A Monday."""


def agent_in(folder: Path) -> CaalAgent:
    services = ToolsetServices(timezone=OSLO, now=lambda: NOW)
    tools = [
        Lists(ListsOptions(folder=folder / "lists")),
        Calendar(CalendarOptions(files=(f"{folder}/home.ics",)), services),
    ]
    return CaalAgent(settings=plain_settings(), tools=tools, tiers={}, warm=False)


async def test_a_list_is_filled_and_read_by_voice(tmp_path: Path) -> None:
    model = ScriptedModel(
        [ScriptedCall("add_to_list", {"items": "milk and eggs"})],
        [ScriptedCall("read_list", {})],
        [ScriptedCall("cross_off_list", {"items": "the second one"})],
        [ScriptedCall("cross_off_list", {"items": "bread"})],
    )
    async with AgentConversation(agent_in(tmp_path), model) as talk:
        added = await talk.say("put milk and eggs on the list")
        assert added.text == "I've put milk and eggs on the shopping list."
        assert (await talk.say("what's on it?")).text == "On the shopping list: milk and eggs."
        crossed = await talk.say("cross off the second one")
        assert crossed.text == "I've crossed off eggs."
        missing = await talk.say("and cross off bread")
        assert missing.text == "I can't find bread on the shopping list."
        outcomes = [event.outcome for event in talk.events_of(ToolCallEnded)]
    assert outcomes == ["ok", "ok", "ok", "error"]
    assert len(model.requests) == 4


async def test_an_event_is_put_in_and_asked_for_by_voice(tmp_path: Path) -> None:
    model = ScriptedModel(
        [ScriptedCall("add_event", {"title": "Dentist", "when": "friday at three"})],
        [ScriptedCall("check_free_time", {"when": "friday afternoon"})],
        [ScriptedCall("check_calendar", {"about": "dentist"})],
    )
    async with AgentConversation(agent_in(tmp_path), model) as talk:
        added = await talk.say("put the dentist in on friday at three")
        assert added.text == "I've put Dentist into the calendar, on Friday from 3 to 4 pm."
        free = await talk.say("am I free on friday afternoon?")
        assert free.text.startswith("Not all of it: on Friday afternoon there is Dentist")
        found = await talk.say("when is the dentist?")
        assert found.text == "Dentist is on Friday from 3 to 4 pm."
    assert len(model.requests) == 3
