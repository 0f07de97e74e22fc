"""What LiveKit opens to a whole room is closed as the agent enters, before anything is served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, room_io

from caal_node.agent import CaalAgent
from caal_node.room import other_participants
from caal_node.room.other_participants import close_to_others, keep_job_alive
from caal_node.testing import ScriptedModel, plain_settings

HOST = "lk.agent.session"
NO_SOUND = room_io.RoomOptions(audio_input=False, audio_output=False)


def an_agent(**variables: str) -> CaalAgent:
    return CaalAgent(settings=plain_settings(**variables), tiers={}, warm=False)


@asynccontextmanager
async def started(
    agent: Agent, *, options: room_io.RoomOptions = NO_SOUND, **others: Any
) -> AsyncGenerator[tuple[AgentSession[Any], Any]]:
    """A session in a room that nobody connects, and the handlers of byte streams there."""
    room = rtc.Room()
    session = AgentSession[Any](
        llm=ScriptedModel(), vad=None, turn_handling={"turn_detection": None}
    )
    await session.start(agent, room=room, room_options=options, **others)
    try:
        yield session, room._byte_stream_handlers  # pyright: ignore[reportPrivateUsage]
    finally:
        await session.aclose()


def listeners_of_hosts(session: Any) -> list[Any]:
    listening = [each for name in session._events for each in session._events[name]]
    return [each for each in listening if "SessionHost" in repr(each)]


@pytest.mark.parametrize("options", [{}, {"session_host": True}, {"session_host": False}])
async def test_the_session_host_is_closed_however_the_session_was_started(
    options: dict[str, bool],
) -> None:
    async with started(an_agent(), **options) as (session, topics):
        assert HOST not in topics
        assert listeners_of_hosts(session) == []


async def test_an_owner_opens_the_session_host_by_name_and_is_warned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with started(an_agent(CAAL_ROOM_SEES="everything")) as (session, topics):
        assert HOST in topics
        assert listeners_of_hosts(session)
    assert "everyone in the room" in caplog.text


async def test_an_agent_that_is_handed_a_session_closes_its_running_host() -> None:
    async with started(Agent(instructions="Help.")) as (session, topics):
        assert HOST in topics
        entered = asyncio.Event()

        class Entering(CaalAgent):
            async def on_enter(self) -> None:
                entered.set()

        session.update_agent(Entering(settings=plain_settings(), tiers={}, warm=False))
        await entered.wait()
        assert HOST not in topics
        assert listeners_of_hosts(session) == []


async def test_a_session_whose_host_cannot_be_seen_ends(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[bool] = []
    unknown: Any = SimpleNamespace(
        _room_io=SimpleNamespace(), shutdown=lambda drain: ended.append(drain)
    )
    with caplog.at_level(logging.ERROR):
        await close_to_others(unknown, open_session_host=False)
    assert ended == [False]
    assert "install a version of livekit-agents" in caplog.text


async def test_speech_of_others_is_dropped_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with started(an_agent(), options=room_io.RoomOptions(audio_output=False)) as (
        session,
        topics,
    ):
        linked = asyncio.Future[Any]()
        linked.set_result(SimpleNamespace(identity="ann"))
        session.room_io._participant_available_fut = linked  # pyright: ignore[reportPrivateUsage]
        closed: list[str] = []
        for number in range(3):
            reader = SimpleNamespace(close=lambda number=number: closed.append(str(number)))
            topics["lk.agent.pre-connect-audio-buffer"](reader, "stranger")
        assert closed == ["0", "1", "2"]
    assert caplog.text.count("whom this session does not hear") == 1


class Job:
    """A job as LiveKit's: it ends when somebody leaves, which `connect` has it listen for."""

    def __init__(self, simulation: object = None) -> None:
        self.room = rtc.EventEmitter[str]()
        self.room.isconnected = lambda: True  # type: ignore[attr-defined]
        self.simulation_context = lambda: simulation
        self.ended = False

    async def connect(self) -> None:
        self.room.on("participant_disconnected", self._on_simulator_disconnected)

    def _on_simulator_disconnected(self, _: object) -> None:
        self.ended = True


@pytest.mark.parametrize("simulation", [None, "a run"])
async def test_only_a_simulation_ends_the_job_when_somebody_leaves(
    simulation: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job: Any = Job(simulation)
    monkeypatch.setattr(other_participants, "get_job_context", lambda required: job)
    await job.connect()
    await keep_job_alive(job.room)
    job.room.emit("participant_disconnected", "somebody")
    assert job.ended is (simulation is not None)
