"""The client of the control API, and the commands that use it, against the API itself over TCP."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import get_args

import pytest
from livekit import rtc
from pydantic import SecretStr

from caal_node.cli.control_commands import change_model, reload_room, say
from caal_node.client import ControlApiError, ControlClient
from caal_node.config.settings import Settings
from caal_node.control.messages import (
    ModelReport,
    ReloadResponse,
    ReloadsResponse,
    SayReport,
    SayRequest,
)
from caal_node.control.room_agents import LiveKitRooms
from caal_node.core.errors import ConfigError
from caal_node.core.events import NotSaid, Spoken, ToolCallEnded, UserSaid, to_json
from caal_node.room.front_end import TOPIC
from tests.stand_ins.control_server import TOKEN, control_server
from tests.stand_ins.fake_rooms import FakeRoomEvents, FakeRooms
from tests.stand_ins.livekit_server import LiveKit

NOBODY = "http://127.0.0.1:9"
SETTINGS = Settings(control_token=SecretStr(TOKEN))


@asynccontextmanager
async def client(rooms: LiveKitRooms, token: str = TOKEN) -> AsyncGenerator[ControlClient]:
    async with (
        control_server(rooms) as server,
        ControlClient(f"http://127.0.0.1:{server.port}/", token) as control,
    ):
        yield control


async def test_a_reload_and_a_model_come_back_as_objects() -> None:
    async with client(FakeRooms({"kitchen": ["agent"]})) as control:
        one = await control.reload("kitchen", message="There is more now.")
    async with client(FakeRooms({"kitchen": ["a"], "office": ["b"]})) as control:
        all_rooms = await control.reload()
    rooms = FakeRooms({"kitchen": ["agent"]}, [ModelReport(model="qwen3:8b", api="ollama")])
    async with client(rooms) as control:
        model = await control.change_model("qwen3:8b")
    assert isinstance(one, ReloadResponse)
    assert one.added == ["get_weather"]
    assert isinstance(all_rooms, ReloadsResponse)
    assert [each.room_name for each in all_rooms.rooms] == ["kitchen", "office"]
    assert (model.room_name, model.model) == ("kitchen", "qwen3:8b")


async def test_a_refusal_says_what_the_api_says() -> None:
    rooms = FakeRooms({"kitchen": ["a"], "office": ["b"]})
    async with client(rooms) as control:
        with pytest.raises(ControlApiError, match="Several rooms are live") as several:
            await control.change_model("qwen3:8b")
        with pytest.raises(ControlApiError, match="no live room 'attic'"):
            await control.tools("attic")
    async with client(rooms, "a-wrong-token-of-20") as control:
        with pytest.raises(ControlApiError, match="Authorization"):
            await control.search(["lamp"])
    assert several.value.status == 409
    assert several.value.body is not None


async def test_an_api_that_is_not_there_is_told_with_its_fix() -> None:
    async with ControlClient(NOBODY, TOKEN) as control:
        with pytest.raises(ControlApiError, match="start it with: caal-node control") as gone:
            await control.call("set_light", {"room": "kitchen"})
        with pytest.raises(ControlApiError, match="start it with: caal-node control"):
            await anext(control.events())
    assert gone.value.status == 0


@pytest.mark.parametrize("url", ["localhost:8889", "http://", "http://[::1", "ftp://here"])
def test_what_is_no_address_is_told_with_its_form(url: str) -> None:
    with pytest.raises(ConfigError, match="write http://HOST:PORT"):
        ControlClient(url, TOKEN)


async def test_events_that_break_off_are_told_as_that_and_the_room_is_left() -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    rooms.lines = ["x" * 200_000]
    left = FakeRoomEvents(rooms.lines, None)
    rooms.events = lambda room: left  # type: ignore[method-assign] -- to see that it is left
    async with client(rooms) as control:
        with pytest.raises(ControlApiError, match="broke off; ask for them again"):
            await anext(control.events("kitchen"))
    assert left.is_left


async def test_events_come_in_order_and_newer_ones_are_left_out() -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    events = [UserSaid("grüße\u2028"), Spoken("Hallo.")]
    rooms.lines = [to_json(events[0]), "", '{"type": "of_tomorrow"}', to_json(events[1])]
    async with client(rooms) as control:
        assert [event async for event in control.events("kitchen")] == events


async def test_a_room_that_nobody_may_listen_in_is_a_refusal() -> None:

    rooms = FakeRooms({"kitchen": ["agent"]})
    async with client(rooms) as control:
        rooms.events = lambda room: _Closed()  # type: ignore[method-assign] -- a room that is full
        with pytest.raises(ControlApiError, match="does not let anybody listen") as refused:
            await anext(control.events("kitchen"))
    assert refused.value.status == 503


class _Closed:
    async def __aenter__(self) -> None:
        raise ConnectionError("full")

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_the_commands_print_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    async with control_server(FakeRooms({"kitchen": ["agent"]})) as server:
        code = await reload_room(SETTINGS, f"http://127.0.0.1:{server.port}", "kitchen", None)
    rooms = FakeRooms({"kitchen": ["agent"]}, [ModelReport(model="qwen3:8b", api="ollama")])
    async with control_server(rooms) as server:
        await change_model(SETTINGS, f"http://127.0.0.1:{server.port}", "qwen3:8b", None)
    assert code == 0
    assert capsys.readouterr().out.splitlines() == [
        "kitchen: 4 tools; added: get_weather; changed: timer; not listed: files",
        "kitchen: qwen3:8b (ollama)",
    ]


@pytest.mark.parametrize(
    ("report", "code", "printed"),
    [
        (SayReport(status="said"), 0, "said"),
        (
            SayReport(status="not_said", reason="nobody_there"),
            1,
            "not said, as nobody is in the room",
        ),
        (SayReport(status="silence"), 1, "said, but nobody answered"),
        (SayReport(status="answered", words="Soon\x1b[2J."), 0, "Soon [2J."),
    ],
)
async def test_a_sentence_is_said_in_the_named_room(
    capsys: pytest.CaptureFixture[str], report: SayReport, code: int, printed: str
) -> None:
    rooms = FakeRooms({"kitchen": ["a"], "office": ["b"]}, [report])
    async with control_server(rooms) as server:
        address = f"http://127.0.0.1:{server.port}"
        text = " Dinner is ready. "
        assert await say(SETTINGS, address, "office", text, priority="low", ask=True) == code
        with pytest.raises(ControlApiError, match="text"):
            await say(SETTINGS, address, "office", "x" * 501)
        with pytest.raises(ControlApiError, match="priority: input should be 'low', 'normal' or"):
            await say(SETTINGS, address, "office", text, priority="high")
    assert capsys.readouterr().out == f"office: {printed}\n"
    assert [(room, asked) for room, _, asked in rooms.asked] == [
        ("office", SayRequest(text="Dinner is ready.", priority="low", answer="caller"))
    ]


@pytest.mark.parametrize("reason", get_args(NotSaid))
async def test_what_was_not_said_comes_back_with_its_reason(
    capsys: pytest.CaptureFixture[str], reason: NotSaid
) -> None:
    rooms = FakeRooms({"kitchen": ["a"]}, [SayReport(status="not_said", reason=reason)])
    async with control_server(rooms) as server:
        assert await say(SETTINGS, f"http://127.0.0.1:{server.port}", "kitchen", "Hi.") == 1
    assert capsys.readouterr().out.startswith("kitchen: not said, as ")
    async with client(rooms) as control:
        said = await control.say("Hi.")
        announced = await control.announce("Hi?", answer="caller")
    assert (said.status, said.reason) == ("not_said", reason)
    assert (announced.status, announced.reason, announced.answer) == ("not_said", reason, None)


async def test_a_command_without_a_token_says_which() -> None:
    with pytest.raises(ConfigError, match="CAAL_CONTROL_TOKEN"):
        await reload_room(Settings(), NOBODY, None, None)


@pytest.mark.livekit
async def test_a_real_room_s_agent_is_heard_and_nobody_sees_who_listens(livekit: LiveKit) -> None:
    name = f"events-{uuid.uuid4().hex[:8]}"
    agent, guest, seen = rtc.Room(), rtc.Room(), list[str]()
    await agent.connect(livekit.url, livekit.token(name, "agent", agent=True))
    await guest.connect(livekit.url, livekit.token(name, "guest"))
    guest.on("participant_connected", lambda who: seen.append(who.identity))
    ended = ToolCallEnded("c1", "lamp", "agent", "ok", 12)
    rooms = LiveKitRooms(livekit.url, livekit.key, livekit.secret)
    async with client(rooms) as control:
        events = control.events(name)
        waiting = asyncio.create_task(anext(events))
        try:
            async with asyncio.timeout(30):
                while not waiting.done():  # until the listener has joined
                    await guest.local_participant.send_text(to_json(UserSaid("me")), topic=TOPIC)
                    await agent.local_participant.send_text("no event", topic=TOPIC)
                    await agent.local_participant.send_text(to_json(ended), topic=TOPIC)
                    await asyncio.wait({waiting}, timeout=0.5)
                assert await waiting == ended
        finally:
            waiting.cancel()
            await events.aclose()
            await agent.disconnect()
            await guest.disconnect()
    assert seen == []
