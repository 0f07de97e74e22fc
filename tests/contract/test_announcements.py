"""Announcements in LiveKit's session: a program's questions, and a speech synthesis that fails."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# LiveKit leaves the types of its sessions open, so they are half unknown, and how it hears a turn
# is its own.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from livekit import rtc
from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS,
    APIConnectionError,
    APIConnectOptions,
    tts,
)
from livekit.agents.voice.audio_recognition import (
    _EndOfTurnInfo,
    _EndOfTurnMetrics,
    _PreemptiveGenerationInfo,
)

from caal_node.agent import CaalAgent
from caal_node.core.events import Announced, SpeechFailed, UserSaid
from caal_node.core.prompt_files import sentence
from caal_node.room.announcer import SessionAnnouncer
from tests.contract.test_tts_text_session import Nobody, Recorder
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.stand_in_model import StandInModel

ASKED_S = 20.0
LONG = "The dryer in the cellar has been ready for more than three hours by now, as it seems."
"""It is synthesised by itself."""


def announcer(talk: Conversation) -> SessionAnnouncer:
    return talk.agent._services.announcer  # what the control API asks


async def asked(talk: Conversation, words: str) -> asyncio.Task[Announced]:
    """Ask for a program, and wait until the question has been said."""
    said = asyncio.Event()
    talk.session.on("conversation_item_added", lambda _: said.set())
    task = asyncio.create_task(announcer(talk).say(words, "urgent", "caller"))
    async with asyncio.timeout(ASKED_S):
        await said.wait()
    return task


def messages(talk: Conversation) -> list[tuple[str, str | None]]:
    return [(item.role, item.text_content) for item in talk.history if item.type == "message"]


async def test_an_answer_goes_to_the_caller_and_not_to_the_model() -> None:
    async with StandInModel(["It is noon."]) as server, conversation(server) as talk:
        answer = await asked(talk, "Shall I start the dryer?")
        assert await talk.ask("yes, please") == sentence("passed_on")
        assert await answer == Announced("answered", answer="yes, please")
        assert server.chats == []
        assert await talk.ask("what time is it?") == "It is noon."
        assert UserSaid("yes, please") in talk.events
        assert messages(talk) == [
            ("assistant", "Shall I start the dryer?"),
            ("user", "yes, please"),
            ("assistant", sentence("passed_on")),
            ("user", "what time is it?"),
            ("assistant", "It is noon."),
        ]


def spoken(talk: Conversation, words: str, *, early: bool) -> None:
    """Have LiveKit hear a turn of spoken words, and where it is `early`, ask for a reply before."""
    ears = cast("Any", talk.session)._activity
    if early:
        ears.on_preemptive_generation(_PreemptiveGenerationInfo(words, 1.0, None))
    ears.on_end_of_turn(
        _EndOfTurnInfo(False, words, 1.0, _EndOfTurnMetrics(None, None, None, None))
    )


@pytest.mark.parametrize("early", [False, True])
async def test_spoken_words_are_an_answer_like_typed_ones(*, early: bool) -> None:
    async with StandInModel(["It is noon."]) as server, conversation(server) as talk:
        answer = await asked(talk, "Shall I start the dryer?")
        spoken(talk, "yes, please", early=early)
        assert await answer == Announced("answered", answer="yes, please")
        async with asyncio.timeout(ASKED_S):
            while talk.session.current_speech is not None:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
        assert server.chats == []
        assert await talk.ask("what time is it?") == "It is noon."
        assert [words for _, words in messages(talk)][1:3] == ["yes, please", sentence("passed_on")]


async def test_a_question_whose_caller_is_gone_leaves_the_words_to_the_model() -> None:
    async with StandInModel(["You are welcome."]) as server, conversation(server) as talk:
        answer = await asked(talk, "Shall I start the dryer?")
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
        assert await talk.ask("yes, please") == "You are welcome."


async def test_the_model_goes_on_from_an_announcement() -> None:
    async with StandInModel(["The dryer runs."]) as server, conversation(server) as talk:
        told = await announcer(talk).say("The washing is done. Shall I start the dryer?")
        assert told == Announced("said")
        await talk.ask("yes, please")
        shown = [(m["role"], m["content"]) for m in server.chats[0].json["messages"]][-2:]
    assert shown[0] == ("assistant", "The washing is done. Shall I start the dryer?")
    assert shown[1][0] == "user"
    assert "yes, please" in shown[1][1]


class Broken(Recorder):
    """A voice whose server is away, after `works` texts."""

    def __init__(self, works: int = 0) -> None:
        super().__init__()
        self.works = works

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        if len(self.heard) < self.works:
            return super().synthesize(text, conn_options=conn_options)
        self.heard.append(text)
        return Away(tts=self, input_text=text, conn_options=conn_options)


class Away(tts.ChunkedStream):
    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        raise APIConnectionError(f"cannot say {self.input_text}", retryable=False)


class OwnVoice(CaalAgent):
    async def tts_node(self, text: Any, model_settings: Any) -> AsyncGenerator[rtc.AudioFrame]:
        async for _ in text:
            raise OSError("no such voice")
        yield rtc.AudioFrame(b"", 16_000, 1, 0)


def speak(talk: Conversation, voice: tts.TTS[Any]) -> None:
    talk.session._tts = voice  # as `AgentSession(tts=...)` sets it
    talk.session.output.audio = Nobody()


@pytest.mark.parametrize("works", [0, 1])
async def test_a_failed_speech_synthesis_is_reported_to_the_caller_and_as_an_event(
    works: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with StandInModel() as server, conversation(server) as talk:
        speak(talk, Broken(works))
        told = await announcer(talk).say(f"{LONG} {LONG}")
        assert told == Announced("not_said", "speech_failed")
        assert talk.events_of(SpeechFailed) == [SpeechFailed("APIConnectionError")]
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("caal_node")]
    assert "text to speech failed: APIConnectionError" in ours
    assert not any("dryer" in line for line in ours)


async def test_a_voice_of_the_owners_that_fails_is_reported_to_the_caller() -> None:
    async with StandInModel() as server, conversation(server, agent=OwnVoice) as talk:
        speak(talk, Recorder())
        told = await announcer(talk).say("Shall I start the dryer?", answer_to="caller")
        assert told == Announced("not_said", "speech_failed")


async def test_an_answer_that_cannot_be_spoken_is_reported_and_the_next_is_heard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "caal_node")
    async with (
        StandInModel(["It is noon."], ["It is one."]) as server,
        conversation(server) as talk,
    ):
        speak(talk, Broken())
        await talk.ask("what time is it?")
        assert talk.events_of(SpeechFailed) == [SpeechFailed("APIConnectionError")]
        speak(talk, Recorder())
        await talk.ask("what time is it?")
        assert len(talk.events_of(SpeechFailed)) == 1
