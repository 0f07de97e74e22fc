"""The agent's end: one reload at a time, no call that waits for it, nothing left running."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import pytest
import time_machine
from livekit import rtc

from caal_node.config.setting_tables import Checks
from caal_node.config.settings import load_settings
from caal_node.config.switches import Switches
from caal_node.control.listener import MAX_WAITING, SAY_S, ControlListener
from caal_node.control.messages import (
    AgentAnswer,
    AgentRequest,
    Announcement,
    ListTools,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    SayReport,
    SayRequest,
    SwitchReport,
    SwitchRequest,
    read_answer,
)
from caal_node.control.rpc import (
    BUSY,
    GONE,
    MAX_ANSWER_BYTES,
    METHOD,
    REFUSED,
    RPC_ANSWER,
    AnswerChunk,
    RequestFailed,
    RpcAnswer,
    SendChunk,
    StillRunning,
    join,
    sign_request,
    split,
)
from caal_node.core.errors import (
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)
from caal_node.core.events import Announced, AnswerTo, Priority
from tests.stand_ins import virtual_loop

KEY, SECRET = "key", "a secret of more than thirty-two bytes"
REPORT = ReloadReport(tool_count=3, added=("get_weather",))
TIMEOUT = RequestFailed(reason="timeout")
Handler = Callable[[rtc.RpcInvocationData], Awaitable[str]]


class FakeRoom:
    """A room that can be connected later, and the participant in it."""

    name = "kitchen"

    def __init__(self, *, connected: bool = True) -> None:
        self.connected = connected
        self.methods: dict[str, Handler] = {}
        self.listeners: list[Callable[..., None]] = []

    @property
    def local_participant(self) -> FakeRoom:
        assert self.connected
        return self

    def register_rpc_method(self, name: str, handler: Handler, /) -> None:
        self.methods[name] = handler

    def unregister_rpc_method(self, name: str, /) -> None:
        del self.methods[name]

    def isconnected(self) -> bool:
        return self.connected

    def on(self, _event: str, callback: Callable[..., None], /) -> None:
        self.listeners.append(callback)

    def off(self, _event: str, callback: Callable[..., None], /) -> None:
        self.listeners.remove(callback)

    async def call(self, payload: str, caller: str = "server") -> str:
        return await self.methods[METHOD](rtc.RpcInvocationData("1", caller, payload, 2.5))

    async def ask(self, id_: str, request: AgentRequest | None = None) -> AgentAnswer | RpcAnswer:
        """Send a request of one chunk; what it answers, read where it is there."""
        [data] = split((request or ReloadRequest()).model_dump_json())
        chunk = SendChunk(id=id_, number=0, of=1, data=data)
        payload = sign_request(chunk, room=self.name, api_key=KEY, api_secret=SECRET)
        answer = RPC_ANSWER.validate_json(await self.call(payload))
        if isinstance(answer, AnswerChunk):
            return read_answer(join([answer.data], MAX_ANSWER_BYTES))
        return answer


def listener(room: FakeRoom, on_reload: Any, **options: Any) -> ControlListener:
    connected: Any = room
    return ControlListener(
        connected, on_reload=on_reload, api_key=KEY, api_secret=SECRET, **options
    )


class Reloads:
    """Reloads that end when the test says so."""

    def __init__(self) -> None:
        self.began: list[ReloadRequest] = []
        self.running = 0
        self.most = 0
        self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self, request: ReloadRequest) -> ReloadReport:
        self.began.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return REPORT


def test_a_quick_reload_is_answered_at_once() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        reloads.go.set()
        control = listener(room, reloads)
        request = ReloadRequest(announcements=(Announcement(message="Hello."),))
        assert await room.ask("1", request) == REPORT
        assert reloads.began == [request]
        await control.aclose()

    virtual_loop.run(story())


def test_a_slow_reload_is_asked_about_until_it_is_done_and_runs_once() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        control = listener(room, reloads)
        assert await room.ask("1") == StillRunning()
        assert await room.ask("1") == StillRunning()
        reloads.go.set()
        assert await room.ask("1") == REPORT
        assert await room.ask("1") == REPORT
        assert len(reloads.began) == 1
        await control.aclose()

    virtual_loop.run(story())


def test_reloads_run_one_at_a_time_and_not_too_many_wait() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        control = listener(room, reloads)
        answers = await asyncio.gather(*(room.ask(str(n)) for n in range(7)))
        assert answers.count(StillRunning()) == 5
        assert answers.count(RequestFailed(reason="busy", detail=BUSY)) == 2
        assert len(reloads.began) == 1
        reloads.go.set()
        assert await room.ask("4") == REPORT
        assert (len(reloads.began), reloads.most) == (5, 1)
        await control.aclose()

    virtual_loop.run(story())


def test_closing_cancels_the_reload_that_runs_and_those_that_wait() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        control = listener(room, reloads)
        await asyncio.gather(*(room.ask(str(n)) for n in range(3)))
        await control.aclose()
        assert (len(reloads.began), reloads.cancelled, reloads.running) == (1, 1, 0)

    virtual_loop.run(story())


def test_a_reload_that_hangs_is_stopped_at_its_deadline() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        control = listener(room, reloads, reload_s=3.5)
        answers = [await room.ask("1") for _ in range(4)]
        assert answers == [StillRunning(), StillRunning(), StillRunning(), TIMEOUT]
        assert (reloads.cancelled, reloads.running) == (1, 0)
        reloads.go.set()
        assert await room.ask("2") == REPORT
        await control.aclose()

    virtual_loop.run(story())


def test_a_reload_that_raises_is_reported_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: ReloadRequest) -> ReloadReport:
        raise RuntimeError("the token is hunter2")

    async def story() -> None:
        room = FakeRoom()
        control = listener(room, broken)
        assert await room.ask("1") == RequestFailed(reason="error")
        await control.aclose()

    virtual_loop.run(story())
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_forged_request_is_refused_and_its_caller_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        control = listener(room, reloads)
        for _ in range(3):
            with pytest.raises(rtc.RpcError) as caught:
                await room.call(json.dumps({"message": "say this aloud"}), caller="mallory")
            assert caught.value.code == REFUSED
        assert reloads.began == []
        await control.aclose()

    with caplog.at_level(logging.WARNING):
        virtual_loop.run(story())
    assert caplog.text.count("mallory") == 1
    assert "say this aloud" not in caplog.text


def test_it_listens_as_soon_as_the_room_is_connected_and_not_after_the_end() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(connected=False), Reloads()
        reloads.go.set()
        control = listener(room, reloads)
        assert room.methods == {}
        room.connected = True
        for listen in room.listeners:
            listen(None)
        assert await room.ask("1") == REPORT
        await control.aclose()
        await control.aclose()
        assert (room.methods, room.listeners) == ({}, [])

    virtual_loop.run(story())


def test_another_model_is_asked_for_in_the_order_of_the_reloads() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        asked: list[ModelRequest] = []

        async def on_model(request: ModelRequest) -> ModelReport:
            asked.append(request)
            return ModelReport(model=request.model, api="ollama")

        control = listener(room, reloads, on_model=on_model)
        change = ModelRequest(model="m")
        assert await room.ask("1") == StillRunning()
        assert await room.ask("2", change) == StillRunning()
        assert asked == []
        reloads.go.set()
        assert await room.ask("2", change) == ModelReport(model="m", api="ollama")
        await control.aclose()

    virtual_loop.run(story())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelMissing("no m; it has: inner"), "the server has no model 'm'"),
        (ModelUnreachable("inner"), "the model's server does not answer"),
        (ModelTimeout("inner"), "the model's server does not answer"),
        (ModelReplyError("inner", status=500), "the model's server answered with HTTP 500"),
        (ModelLacksTools("inner"), "the model cannot be used"),
    ],
)
def test_of_a_models_server_the_caller_reads_our_words_alone(error: ModelError, words: str) -> None:
    async def story() -> None:
        async def on_model(_: ModelRequest) -> ModelReport:
            raise error

        room = FakeRoom()
        control = listener(room, Reloads(), on_model=on_model)
        failed = await room.ask("1", ModelRequest(model="m"))
        assert isinstance(failed, RequestFailed)
        assert failed.detail.startswith(words)
        assert "inner" not in failed.detail
        await control.aclose()

    virtual_loop.run(story())


def test_an_agent_without_models_or_tools_says_so() -> None:
    async def story() -> None:
        room = FakeRoom()
        control = listener(room, Reloads())
        for request, words in (
            (ModelRequest(model="m"), "this agent's model cannot be changed"),
            (SayRequest(text="hello"), "this agent says nothing by itself"),
            (SwitchRequest(cues=False), "this agent has nothing that can be switched"),
            (ListTools(), "this agent's tools cannot be asked for"),
        ):
            failed = RequestFailed(reason="error", detail=words)
            assert await room.ask(request.ask, request) == failed
        await control.aclose()

    virtual_loop.run(story())


def test_what_is_switched_is_reported_and_what_cannot_be_is_told() -> None:
    async def story() -> None:
        switches = Switches(load_settings({}))

        def on_switch(request: SwitchRequest) -> SwitchReport:
            switches.switch(request.cues, request.checks)
            return SwitchReport.model_validate(switches.as_json())

        room = FakeRoom()
        control = listener(room, Reloads(), on_switch=on_switch)
        report = await room.ask("1", SwitchRequest(cues=False, checks={"claims": False}))
        assert isinstance(report, SwitchReport)
        assert (report.cues, report.checks) == (False, asdict(Checks(claims=False)))
        failed = await room.ask("2", SwitchRequest(checks={"climes": True}))
        assert isinstance(failed, RequestFailed)
        assert failed.detail.startswith("no check is named climes; they are claims, facts")
        assert await room.ask("3", SwitchRequest()) == report
        await control.aclose()

    virtual_loop.run(story())


@pytest.mark.parametrize(
    ("became", "report"),
    [
        (Announced("said"), SayReport(status="said")),
        (
            Announced("not_said", "nobody_there"),
            SayReport(status="not_said", reason="nobody_there"),
        ),
        (Announced("answered", answer="Soon."), SayReport(status="answered", words="Soon.")),
    ],
)
def test_words_are_said_once_and_the_caller_learns_what_became_of_them(
    became: Announced, report: SayReport
) -> None:
    async def story() -> None:
        said: list[tuple[str, Priority, AnswerTo]] = []

        async def on_say(*asked: Any) -> Announced:
            said.append(asked)
            return became

        room = FakeRoom()
        control = listener(room, Reloads(), on_say=on_say)
        for _ in range(2):
            request = SayRequest(text="Dinner?", priority="low", answer="caller")
            assert await room.ask("1", request) == report
        assert said == [("Dinner?", "low", "caller")]
        await control.aclose()

    virtual_loop.run(story())


def test_words_wait_for_a_silence_but_not_for_ever_and_not_too_many() -> None:
    async def story() -> None:
        async def on_say(_: str, priority: Priority, __: AnswerTo) -> Announced:
            if priority != "urgent":
                await asyncio.Event().wait()
            return Announced("said")

        room = FakeRoom()
        control = listener(room, Reloads(), on_say=on_say)
        for number in range(MAX_WAITING + 1):
            asked = await room.ask(f"{number}", SayRequest(text="Dinner."))
            assert asked == StillRunning()
        busy = RequestFailed(reason="busy", detail=BUSY)
        assert await room.ask("more", SayRequest(text="Dinner.")) == busy
        fire = SayRequest(text="Fire.", priority="urgent")
        assert await room.ask("fire", fire) == SayReport(status="said")
        await asyncio.sleep(SAY_S)
        assert await room.ask("0") == TIMEOUT
        await control.aclose()

    virtual_loop.run(story())


def test_a_reload_is_not_done_again_once_its_answer_is_gone() -> None:
    async def story() -> None:
        room, reloads = FakeRoom(), Reloads()
        reloads.go.set()
        control = listener(room, reloads)
        for n in range(40):
            assert await room.ask(str(n)) == REPORT
        assert await room.ask("39") == REPORT
        assert await room.ask("0") == RequestFailed(reason="error", detail=GONE)
        assert len(reloads.began) == 40
        await control.aclose()

    virtual_loop.run(story())


BEGAN = 1_800_000_000.0
"""When the agent of these tests starts, as Unix time."""


@pytest.mark.parametrize(
    ("signed_s", "sent_s", "taken"),
    [
        (0, 1, True),
        (-4, 1, True),  # the other end's clock is slow
        (9, 5, True),  # or fast
        (-6, 1, False),  # somebody else was here when it was signed
        (-25, 4, False),
        (10, 44, True),
        (10, 46, False),  # 30 s, and 5 s for the clocks
        (20, 10, False),
    ],
)
async def test_a_request_is_taken_while_it_holds_by_the_agent_that_it_was_signed_for(
    signed_s: float, sent_s: float, taken: bool
) -> None:
    room, reloads = FakeRoom(), Reloads()
    reloads.go.set()
    [data] = split(ReloadRequest().model_dump_json())
    chunk = SendChunk(id="1", number=0, of=1, data=data)
    with time_machine.travel(BEGAN + signed_s, tick=False):
        payload = sign_request(chunk, room=room.name, api_key=KEY, api_secret=SECRET)
    with time_machine.travel(BEGAN, tick=False):
        control = listener(room, reloads)
    try:
        with time_machine.travel(BEGAN + sent_s, tick=False):
            if taken:
                await room.call(payload)
            else:
                with pytest.raises(rtc.RpcError):
                    await room.call(payload)
    finally:
        await control.aclose()
    assert len(reloads.began) == taken


async def test_an_agent_that_is_started_anew_does_nothing_a_second_time() -> None:
    room, reloads = FakeRoom(), Reloads()
    reloads.go.set()
    [data] = split(ReloadRequest().model_dump_json())
    chunk = SendChunk(id="1", number=0, of=1, data=data)
    with time_machine.travel(BEGAN, tick=False) as clock:
        first = listener(room, reloads)
        payload = sign_request(chunk, room=room.name, api_key=KEY, api_secret=SECRET)
        await room.call(payload)
        await first.aclose()
        clock.shift(10)
        second = listener(room, reloads)
        with pytest.raises(rtc.RpcError):
            await room.call(payload)
        await second.aclose()
    assert len(reloads.began) == 1
