"""The tools of a home against Home Assistant: one that `python -m tests.real_home_assistant` boots
where it runs these, else a stand-in with what that one has answered.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from caal_node.agent import CaalAgent
from caal_node.config.setting_tables import toolset_tables
from caal_node.core.errors import (
    InvalidArguments,
    ToolBroke,
    ToolFailure,
    ToolRefused,
    ToolUnavailable,
)
from caal_node.extend import Undoable
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets import registry
from caal_node.toolsets.home_assistant import HomeAssistant, HomeAssistantOptions
from caal_node.toolsets.home_assistant.devices import UNREACHABLE, too_talkative
from caal_node.toolsets.home_assistant.links import ANSWER_MAX_BYTES, MESSAGE_MAX_BYTES
from caal_node.toolsets.installed import GROUP
from tests.stand_ins.home_assistant_stand_in import TOKEN, HomeAssistantStandIn, stand_in

URL = os.environ.get("HOME_ASSISTANT_TEST_URL", "")
ADMIN = os.environ.get("HOME_ASSISTANT_TEST_TOKEN", TOKEN)
GUEST = os.environ.get("HOME_ASSISTANT_TEST_GUEST_TOKEN", TOKEN)
only_real = pytest.mark.skipif(not URL, reason="run python -m tests.real_home_assistant")
only_stand_in = pytest.mark.skipif(bool(URL), reason="what a real one does not do on demand")


@pytest.fixture
async def server() -> AsyncGenerator[HomeAssistantStandIn]:
    async with stand_in() as home:
        yield home


def toolset(server: HomeAssistantStandIn, token: str = ADMIN, **options: Any) -> HomeAssistant:
    return HomeAssistant(
        HomeAssistantOptions(url=URL or server.url, token=SecretStr(token), **options)
    )


@pytest.fixture(params=["websocket", "mcp"])
def home(request: pytest.FixtureRequest, server: HomeAssistantStandIn) -> HomeAssistant:
    """By each of the ways; a guest's token does for Home Assistant's MCP server."""
    token = GUEST if request.param == "mcp" else ADMIN
    return toolset(server, token, via=request.param)


def words(result: Any) -> str:
    assert isinstance(result, VerbatimResult | Undoable)
    assert result.words is not None
    return result.words


def data(result: Any) -> Any:
    return result.output if isinstance(result, Undoable) else result.value


async def test_a_light_is_turned_off_and_on_and_said_so(home: HomeAssistant) -> None:
    off = await home.control_home(device="kitchen lights", action="off")
    assert words(off) == "The kitchen lights are off."
    assert data(off)["devices"][0]["state"] == "off"
    on = await home.control_home(device="the kitchen light", action="on")
    assert words(on).startswith("The kitchen lights are on")


async def test_a_light_is_found_by_its_alias_and_called_by_it(home: HomeAssistant) -> None:
    result = await home.control_home(device="desk lamp", action="on")
    assert words(result).startswith("The desk lamp is on")


async def test_its_rooms_and_devices_are_names_that_are_said(home: HomeAssistant) -> None:
    names = list(await home.spoken_names())
    assert "Kitchen" in names
    assert len(names) > names.index("Kitchen") + 1


async def test_a_room_s_lights_are_turned_off_together(home: HomeAssistant) -> None:
    result = await home.control_home(device="living room lights", action="off")
    assert words(result) == "All 3 are off."
    asked = await home.ask_home(device="lights in the lounge")
    assert {each["state"] for each in data(asked)["devices"]} == {"off"}


async def test_a_light_is_dimmed(home: HomeAssistant) -> None:
    result = await home.set_home(device="bed light", value="40 percent")
    assert words(result) == "The bed light is on, at 40 percent."


async def test_heating_is_set_in_degrees(home: HomeAssistant) -> None:
    result = await home.set_home(device="thermostat", value="23 degrees")
    assert "set to 23 degrees Celsius" in words(result)
    assert data(result)["devices"][0]["temperature_target"] == 23


async def test_states_are_data_with_rooms_and_a_sentence(home: HomeAssistant) -> None:
    result = await home.ask_home(device="kitchen window")
    assert words(result) == "The kitchen window is closed."
    assert result.value == {
        "devices": [{"name": "Kitchen Window", "area": "Kitchen", "state": "closed"}]
    }


async def test_what_is_not_exposed_is_not_there(home: HomeAssistant) -> None:
    # The demo has this one too, and nobody has exposed it.
    with pytest.raises(InvalidArguments, match="no 'swing fan'"):
        await home.ask_home(device="swing fan")
    with pytest.raises(InvalidArguments):
        await home.control_home(device="percentage full fan", action="on")


async def test_a_garage_is_opened_by_the_tool_that_asks_first(home: HomeAssistant) -> None:
    with pytest.raises(InvalidArguments, match="call unlock_door"):
        await home.control_home(device="garage door", action="open")


async def test_check_counts_what_assist_may_use(home: HomeAssistant) -> None:
    # Its MCP server has a script as a tool of its own, and not among the devices.
    count = 32 if home.options.via == "mcp" else 33
    assert f"{count} devices in 6 rooms" in await home.check()


@pytest.mark.parametrize("via", ["websocket", "mcp"])
async def test_a_wrong_token_is_told_of(server: HomeAssistantStandIn, via: str) -> None:
    with pytest.raises(ToolRefused, match="does not take the token") as raised:
        await toolset(server, "wrong", via=via).ask_home(device="kitchen lights")
    assert raised.value.words == "Home Assistant doesn't let me in."


async def test_floors_have_their_names(server: HomeAssistantStandIn) -> None:
    home = toolset(server)
    result = await home.control_home(device="all lights downstairs", action="off")
    assert len(data(result)["devices"]) == 5
    assert (await home.ask_home(device="bed light")).value["devices"][0]["area"] == "Bedroom"


async def test_a_door_is_unlocked_and_locked(server: HomeAssistantStandIn) -> None:
    home = toolset(server)
    assert "unlock" in words(await home.unlock_door(door="front door"))
    assert "lock" in words(await home.control_home(device="front door", action="lock"))


@only_real
async def test_covers_media_and_the_vacuum_do_what_they_are_told(
    server: HomeAssistantStandIn,
) -> None:
    home = toolset(server)
    assert "open" in words(await home.unlock_door(door="garage"))
    assert "clos" in words(await home.control_home(device="garage door", action="close"))
    assert "clos" in words(await home.control_home(device="hall window", action="close"))
    assert "cleaning" in words(await home.control_home(device="hoover", action="start"))
    assert "paused" in words(await home.control_home(device="walkman", action="pause"))
    assert "playing" in words(await home.control_home(device="walkman", action="start"))
    assert words(await home.set_home(device="walkman", value="30 percent")) == (
        "The walkman is at 30 percent volume."
    )
    assert (
        words(await home.control_home(device="movie night", action="on"))
        == "I've started Movie night."
    )
    assert "light speed" in words(await home.set_home(device="speed", value="light speed"))
    assert "66 percent" in words(await home.set_home(device="bedroom fan", value="medium"))
    await home.set_home(device="bed light", value="40 percent")
    brighter = await home.set_home(device="bed light", value="brighter")
    assert "60 percent" in words(brighter)
    assert "on" in words(await home.set_home(device="desk lamp", value="blue"))


@only_real
async def test_a_token_of_a_guest_does_not_tell_what_is_exposed(
    server: HomeAssistantStandIn,
) -> None:
    with pytest.raises(ToolRefused, match='via = "mcp"'):
        await toolset(server, GUEST).ask_home(device="kitchen lights")


@only_stand_in
async def test_a_person_without_rights_is_told_the_other_way(server: HomeAssistantStandIn) -> None:
    server.is_admin = False
    with pytest.raises(ToolRefused, match='via = "mcp"'):
        await toolset(server).ask_home(device="kitchen lights")


@only_stand_in
async def test_what_does_not_change_is_not_said_to_have_changed(
    server: HomeAssistantStandIn,
) -> None:
    server.stubborn = {"light.bed_light"}
    result = await toolset(server).control_home(device="bed light", action="on")
    assert words(result) == "I asked, but the bed light has not changed yet."
    assert result.value == {"devices": [], "not_changed": ["Bed Light"]}


@only_stand_in
async def test_a_device_that_cannot_be_reached_is_said_so(server: HomeAssistantStandIn) -> None:
    server.states["light.bed_light"]["state"] = "unavailable"
    with pytest.raises(ToolUnavailable) as raised:
        await toolset(server).control_home(device="bed light", action="on")
    assert raised.value.words == "The bed light is not reachable right now."
    assert not server.called


@only_stand_in
async def test_only_what_is_exposed_is_ever_called(server: HomeAssistantStandIn) -> None:
    del server.exposed["exposed_entities"]["light.kitchen_lights"]
    server.exposed["exposed_entities"]["light.bed_light"] = {"cloud.alexa": True}
    home = toolset(server)
    await home.control_home(device="all lights", action="off")
    (called,) = [each for each in server.called if each["domain"] == "light"]
    assert "light.kitchen_lights" not in called["target"]["entity_id"]
    assert "light.bed_light" not in called["target"]["entity_id"]


@only_stand_in
async def test_an_error_of_home_assistant_is_told(server: HomeAssistantStandIn) -> None:
    server.fails_with = "The lamp is on fire"
    with pytest.raises(ToolBroke, match="on fire") as raised:
        await toolset(server).control_home(device="bed light", action="on")
    assert raised.value.words == "Home Assistant could not do that."


@only_stand_in
@pytest.mark.parametrize("text", ["{", "[]", "null", '{"id": 1, "type": "event", "event": 3}', "7"])
async def test_answers_of_another_form_end_in_a_failure(
    server: HomeAssistantStandIn, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caal_node.toolsets.home_assistant.links.CALL_S", 0.3)
    server.answer = lambda command: text
    with pytest.raises(ToolFailure):
        await toolset(server).ask_home(device="bed light")


@only_stand_in
async def test_a_message_past_its_cap_asks_for_fewer_devices(server: HomeAssistantStandIn) -> None:
    server.answer = lambda command: json.dumps("x" * MESSAGE_MAX_BYTES)
    with pytest.raises(ToolUnavailable) as raised:
        await toolset(server).ask_home(device="bed light")
    assert raised.value.words == too_talkative().words


@only_stand_in
async def test_an_answer_by_mcp_past_its_cap_asks_for_fewer_devices(
    server: HomeAssistantStandIn,
) -> None:
    server.rows[0]["state"] = "x" * ANSWER_MAX_BYTES
    with pytest.raises(ToolUnavailable) as raised:
        await toolset(server, GUEST, via="mcp").ask_home(device="bed light")
    assert raised.value.words == too_talkative().words


@only_stand_in
async def test_a_connection_that_home_assistant_closes_is_one_that_is_lost() -> None:
    async def close(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.close(code=1009)
        return socket

    async with stand_in(close) as closing:
        with pytest.raises(ToolUnavailable) as raised:
            await toolset(closing).ask_home(device="bed light")
    assert raised.value.words == UNREACHABLE


@pytest.mark.parametrize("via", ["websocket", "mcp"])
async def test_nobody_there_is_a_sentence(via: Any) -> None:
    options = HomeAssistantOptions(url="http://127.0.0.1:9", token=SecretStr("x"), via=via)
    home = HomeAssistant(options)
    with pytest.raises(ToolUnavailable) as raised:
        await home.ask_home(device="kitchen lights")
    assert raised.value.words == "I can't reach Home Assistant right now."


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    value = f"{HomeAssistant.__module__}:HomeAssistant"
    entry = EntryPoint("home_assistant", value, GROUP)
    monkeypatch.setattr(registry, "installed", lambda: {"home_assistant": entry})


def agent_of_a_home(server: HomeAssistantStandIn) -> CaalAgent:
    table = {"home_assistant": {"url": URL or server.url, "token": ADMIN}}
    settings = plain_settings().model_copy(update={"toolsets": toolset_tables(table)})
    return CaalAgent(settings=settings, tiers={}, warm=False)


@pytest.mark.usefixtures("_installed")
async def test_in_a_conversation_the_state_is_said_without_another_request(
    server: HomeAssistantStandIn,
) -> None:
    off = ScriptedCall("control_home", {"device": "kitchen lights", "action": "off"})
    model = ScriptedModel([off], "They are off.")
    async with AgentConversation(agent_of_a_home(server), model) as talk:
        turn = await talk.say("turn off the kitchen lights")
        assert turn.text == "The kitchen lights are off."
        assert len(model.requests) == 1
        await talk.say("are they off now?")
    assert "Kitchen Lights" in str(model.requests[-1].items)


@pytest.mark.usefixtures("_installed")
async def test_in_a_conversation_a_door_is_unlocked_after_a_yes(
    server: HomeAssistantStandIn,
) -> None:
    model = ScriptedModel([ScriptedCall("unlock_door", {"door": "front door"})])
    async with AgentConversation(agent_of_a_home(server), model) as talk:
        asked = await talk.say("unlock the front door")
        assert asked.text == "Shall I unlock door: front door?"
        assert not server.called
        turn = await talk.say("Yes, please.")
    assert turn.text.startswith("The front door is unlock")
    offered = {tool["function"]["name"] for tool in model.requests[0].tools}
    assert offered == {"control_home", "set_home", "ask_home", "unlock_door", "undo"}


@pytest.mark.usefixtures("_installed")
async def test_in_a_conversation_which_one_is_asked(server: HomeAssistantStandIn) -> None:
    call = ScriptedCall("control_home", {"device": "the fan", "action": "on"})
    async with AgentConversation(agent_of_a_home(server), ScriptedModel([call])) as talk:
        turn = await talk.say("turn on the fan")
    assert turn.text == (
        "Which one do you mean: Ceiling Fan in Bedroom or Living Room Fan in Living Room?"
    )
    assert turn.calls[0].outcome != "ok"
