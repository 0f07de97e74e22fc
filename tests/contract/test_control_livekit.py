"""Reloading through a real livekit-server: who is heard, who is not, and what comes back."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from livekit import api, rtc
from livekit.agents import AgentSession, room_io

from caal_node.agent import CaalAgent
from caal_node.client import ControlClient
from caal_node.config.settings import load_settings
from caal_node.control.listener import ControlListener
from caal_node.control.messages import AgentAnswer, Announcement, ReloadReport, ReloadRequest
from caal_node.control.room_agents import (
    CHANGE_S,
    LiveKitRefused,
    LiveKitRooms,
    LiveKitUnreachable,
    RoomUnknown,
    SeveralRooms,
    ask_agent,
    choose_room,
)
from caal_node.control.rpc import METHOD, REFUSED, FetchChunk, sign_request
from caal_node.testing import ScriptedModel
from tests.stand_ins.control_process import control_process
from tests.stand_ins.conversation import FakeTier, conversation, weather_spec
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import StandInModel

pytestmark = pytest.mark.livekit

REPORT = ReloadReport(tool_count=2, added=("get_weather",), failed=("files",))
PROBE = FetchChunk(id="1", number=0)
ANSWER_S = 20.0
TOKEN = "-".join(["a", "long", "random", "token"])
OnReload = Callable[[ReloadRequest], Any]


def room_name() -> str:
    return f"control-{uuid.uuid4().hex[:8]}"


async def reload(rooms: LiveKitRooms, room: str, message: str | None = None) -> AgentAnswer:
    request = ReloadRequest(announcements=(Announcement(message=message),))
    return await ask_agent(rooms, room, request, ReloadReport, CHANGE_S)


def open_rooms(livekit: LiveKit) -> LiveKitRooms:
    return LiveKitRooms(livekit.url, livekit.key, livekit.secret)


async def at_once(*_: ReloadRequest) -> ReloadReport:
    return REPORT


@asynccontextmanager
async def joined(
    livekit: LiveKit, room: str, identity: str, **of: bool
) -> AsyncGenerator[rtc.Room]:
    here = rtc.Room()
    await here.connect(livekit.url, livekit.token(room, identity, **of))
    try:
        yield here
    finally:
        await here.disconnect()


@asynccontextmanager
async def agent_in(
    livekit: LiveKit, room: str, on_reload: OnReload = at_once, secret: str | None = None
) -> AsyncGenerator[rtc.Room]:
    """An agent that listens from before it is connected, as it does in a session."""
    here = rtc.Room()
    control = ControlListener(
        here, on_reload=on_reload, api_key=livekit.key, api_secret=secret or livekit.secret
    )
    await here.connect(livekit.url, livekit.token(room, "agent", agent=True))
    try:
        yield here
    finally:
        await control.aclose()
        await here.disconnect()


async def test_a_separate_control_process_reloads_a_live_agent(livekit: LiveKit) -> None:
    room = room_name()
    asked: list[ReloadRequest] = []

    async def on_reload(request: ReloadRequest) -> ReloadReport:
        asked.append(request)
        return REPORT

    async with (
        agent_in(livekit, room, on_reload),
        control_process(livekit, TOKEN) as address,
        httpx2.AsyncClient(timeout=ANSWER_S) as http,
    ):
        url, bearer = f"{address}/reload-tools", {"Authorization": f"Bearer {TOKEN}"}
        body = {"room_name": room, "message": "There is a new tool."}
        assert (await http.post(url, json=body)).status_code == 401
        done = await http.post(url, json=body, headers=bearer)
        assert done.status_code == 200
        assert done.json() == {
            "status": "reloaded",
            "room_name": room,
            "tool_count": 2,
            "added": ["get_weather"],
            "removed": [],
            "changed": [],
            "failed": ["files"],
            "new": [],
            "faults": [],
            "tool_name": None,
            "found": None,
        }
        [request] = asked
        assert request.announcements == (Announcement(message="There is a new tool."),)
        missing = await http.post(url, json={"room_name": "no-such-room"}, headers=bearer)
        assert missing.status_code == 404


async def test_who_names_a_tool_is_told_whether_it_is_there_and_only_then_is_it_announced(
    livekit: LiveKit,
) -> None:
    room, tier = room_name(), FakeTier()
    async with (
        StandInModel() as model,
        conversation(model, tier=tier) as talk,
        agent_in(livekit, room, talk.agent.on_reload),
        control_process(livekit, TOKEN) as address,
        httpx2.AsyncClient(
            base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=ANSWER_S
        ) as http,
    ):

        async def named(tool: str, **more: str) -> tuple[str, bool]:
            body = {"room_name": room, "tool_name": tool, **more}
            told = (await http.post("/reload-tools", json=body)).json()
            return told["tool_name"], told["found"]

        def said() -> list[str | None]:
            return [item.text_content for item in talk.history if item.type == "message"]

        assert await named("list_events") == ("list_events", False)
        assert await named("list_events", message="I can read calendars.") == ("list_events", False)
        tier.specs.append(weather_spec(name="list_events"))
        assert await named("List events") == ("list_events", True)
        assert await named("list_events", message="I can read calendars.") == ("list_events", True)
        async with asyncio.timeout(ANSWER_S):
            while len(said()) < 2:  # noqa: ASYNC110 - the history announces nothing
                await asyncio.sleep(0.01)
        assert said() == ["I can use a new tool now: list events.", "I can read calendars."]


async def test_a_reload_longer_than_the_servers_patience_runs_once(livekit: LiveKit) -> None:
    room, began = room_name(), 0

    async def slow(*_: ReloadRequest) -> ReloadReport:
        nonlocal began
        began += 1
        # Longer than the 3 s after which the server repeats a call, by the real clock: that
        # repetition is what this test is about.
        await asyncio.sleep(4)
        return REPORT

    async with agent_in(livekit, room, slow), open_rooms(livekit) as rooms:
        assert await reload(rooms, room) == REPORT
    assert began == 1


async def refusal(caller: rtc.Room, payload: str) -> int:
    """The code of the error that a participant's own call ends with; one that got lost is repeated.

    A busy machine may tell of a call too late for LiveKit.
    """
    lost = (rtc.RpcError.ErrorCode.CONNECTION_TIMEOUT, rtc.RpcError.ErrorCode.RESPONSE_TIMEOUT)
    async with asyncio.timeout(60):
        while True:
            with pytest.raises(rtc.RpcError) as caught:
                await caller.local_participant.perform_rpc(
                    destination_identity="agent", method=METHOD, payload=payload
                )
            if caught.value.code not in lost:
                return caught.value.code


async def test_a_participant_cannot_ask_for_a_reload(
    livekit: LiveKit, caplog: pytest.LogCaptureFixture
) -> None:
    room = room_name()
    asked: list[ReloadRequest] = []

    async def on_reload(request: ReloadRequest) -> ReloadReport:
        asked.append(request)
        return REPORT

    genuine = json.loads(
        sign_request(
            FetchChunk(id="1", number=0), room=room, api_key=livekit.key, api_secret=livekit.secret
        )
    )
    forged = [
        '{"message": "a planted sentence"}',
        json.dumps(genuine | {"token": livekit.token(room, "mallory")}),
        json.dumps(genuine | {"body": '{"id":"2","number":0,"of":1,"data":"planted"}'}),
    ]
    async with (
        agent_in(livekit, room, on_reload) as agent,
        joined(livekit, room, "mallory") as mallory,
        open_rooms(livekit) as rooms,
    ):
        data: asyncio.Queue[rtc.DataPacket] = asyncio.Queue()
        agent.on("data_received", data.put_nowait)  # pyright: ignore[reportUnknownMemberType] -- untyped there
        for payload in forged:
            assert await refusal(mallory, payload) == REFUSED
            await mallory.local_participant.publish_data(payload, topic=METHOD)
            await asyncio.wait_for(data.get(), ANSWER_S)
        assert asked == []
        # The same agent answers to the control process.
        assert await reload(rooms, room, "the third") == REPORT
        [request] = asked
        assert request.announcements == (Announcement(message="the third"),)
    assert "mallory" in caplog.text
    assert "planted" not in caplog.text


async def test_a_control_process_with_another_secret_is_told_so(livekit: LiveKit) -> None:
    room = room_name()
    async with (
        agent_in(livekit, room, secret="another secret of thirty-two bytes"),  # noqa: S106
        open_rooms(livekit) as rooms,
    ):
        with pytest.raises(LiveKitRefused, match="the same"):
            await reload(rooms, room)


async def test_an_agent_that_does_not_listen_gives_no_answer(livekit: LiveKit) -> None:
    room = room_name()
    async with (
        joined(livekit, room, "other-agent", agent=True),
        joined(livekit, room, "person"),
        open_rooms(livekit) as rooms,
    ):
        assert await rooms.agents(room) == ["other-agent"]
        assert await rooms.ask(room, "other-agent", PROBE) is None
        assert await rooms.ask(room, "nobody", PROBE) is None


async def test_rooms_are_chosen_among_those_that_are_live(livekit: LiveKit) -> None:
    one, two, empty = room_name(), room_name(), room_name()
    async with (
        agent_in(livekit, one),
        agent_in(livekit, two),
        api.LiveKitAPI(livekit.url, livekit.key, livekit.secret) as server,
        open_rooms(livekit) as rooms,
    ):
        await server.room.create_room(api.CreateRoomRequest(name=empty))
        assert await choose_room(rooms, one) == one
        with pytest.raises(SeveralRooms, match="name one"):
            await choose_room(rooms, None)
        with pytest.raises(RoomUnknown):
            await choose_room(rooms, room_name())
        assert {one, two, empty} <= set(await rooms.live())
        assert (await rooms.agents(one), await rooms.agents(empty)) == (["agent"], [])


async def test_a_large_report_comes_back(livekit: LiveKit) -> None:
    room = room_name()
    many = tuple(f"server{n}__{'tool' * 12}" for n in range(400))

    async def on_reload(*_: ReloadRequest) -> ReloadReport:
        return ReloadReport(tool_count=len(many), added=many)

    async with agent_in(livekit, room, on_reload), open_rooms(livekit) as rooms:
        assert await reload(rooms, room) == ReloadReport(tool_count=400, added=many)


async def test_wrong_keys_and_a_missing_server_are_told_apart(livekit: LiveKit) -> None:
    async with LiveKitRooms(livekit.url, livekit.key, "wrong" * 8) as rooms:
        with pytest.raises(LiveKitRefused, match="LIVEKIT_API_KEY"):
            await rooms.live()
        with pytest.raises(LiveKitRefused, match="LIVEKIT_API_KEY"):
            await rooms.ask("a", "b", PROBE)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = held.getsockname()[1]
        async with LiveKitRooms(f"ws://127.0.0.1:{port}", livekit.key, livekit.secret) as rooms:
            with pytest.raises(LiveKitUnreachable, match="LIVEKIT_URL"):
                await rooms.live()
            with pytest.raises(LiveKitUnreachable, match="LIVEKIT_URL"):
                await rooms.ask("a", "b", PROBE)


async def test_a_person_s_answer_in_a_real_room_goes_back_to_who_asked(
    livekit: LiveKit, tmp_path: Path
) -> None:
    room, here, model = room_name(), rtc.Room(), ScriptedModel()
    keys = {"LIVEKIT_API_KEY": livekit.key, "LIVEKIT_API_SECRET": livekit.secret}
    settings = load_settings({"CAAL_CUES": "off", **keys}, tmp_path / "caal.toml")
    agent = CaalAgent(settings=settings, tiers={}, warm=False)
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )
    said: asyncio.Queue[str] = asyncio.Queue()
    await here.connect(livekit.url, livekit.token(room, "agent", agent=True))
    options = room_io.RoomOptions(audio_input=False, audio_output=False)
    await session.start(agent, room=here, room_options=options)
    session.on("conversation_item_added", lambda event: said.put_nowait(event.item.text_content))  # pyright: ignore[reportUnknownMemberType] -- untyped there
    try:
        async with (
            joined(livekit, room, "person") as person,
            control_process(livekit, TOKEN) as address,
            ControlClient(address, TOKEN) as control,
        ):
            async with asyncio.timeout(ANSWER_S):
                while not here.remote_participants:  # noqa: ASYNC110 - LiveKit has no condition
                    await asyncio.sleep(0.1)
            asked = asyncio.create_task(control.announce("Tea?", room, answer="caller"))
            async with asyncio.timeout(ANSWER_S):
                assert await said.get() == "Tea?"
                await person.local_participant.send_text("Yes, please.", topic="lk.chat")
                told = await asked
            assert (told.status, told.answer) == ("answered", "Yes, please.")
            assert not model.requests
    finally:
        await session.aclose()
        await here.disconnect()
        await model.aclose()
