"""Somebody takes back what they asked for, or corrects it, before it has been done.

The stories say when somebody speaks and when there are words, as LiveKit does in a room; the time
for which words are waited for is virtual.
"""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# LiveKit sets the state of whoever speaks by a private method, and so do these stories.

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import pytest
from livekit.agents import llm
from livekit.agents.stt import SpeechData, SpeechEvent, SpeechEventType

from caal_node.core.errors import SpokenOver
from caal_node.core.events import ToolCallEnded
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Effect, ToolSpec
from caal_node.room.hearing import LONGEST_S, WORDS_S
from caal_node.tools.call_scheduler import SPOKEN_OVER, TAKEN_BACK
from tests.stand_ins.conversation import Conversation, FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, Reply, StandInModel
from tests.stand_ins.virtual_clock import VirtualClock

ASKED: Final = (
    "turn on the kitchen light, then the bedroom light, and find the lamps of the kitchen"
)
KITCHEN: Final = Call("set_light", {"room": "kitchen", "state": "on"}, id="c1")
BEDROOM: Final = Call("set_light", {"room": "bedroom", "state": "on"}, id="c2")
FIND: Final = Call("find_lamps", {"room": "kitchen", "state": "on"}, id="c3")
NEVER_MIND: Final = "Never mind."
PATIENCE_S: Final = 10.0
A_WHILE_S: Final = 0.3
"""Real seconds in which a call that is not held up would have been made."""


def light(name: str, effect: Effect) -> ToolSpec:
    texts = {key: {"type": "string"} for key in ("room", "state")}
    schema = {"type": "object", "properties": texts, "required": list(texts)}
    return ToolSpec("n8n", "n8n", name, name, "Lights of a room.", schema, effect=effect)


class House(FakeTier):
    """Lights whose switching and finding takes as long as a story wants."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.done: list[str] = []

        async def work(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            await self.may_end.wait()
            self.done.append(f"{spec.name} {arguments['room']}")
            return {"done": True}

        super().__init__(light("set_light", "write"), light("find_lamps", "read"), answer=work)

    @property
    def begun(self) -> list[str]:
        return [f"{name} {arguments['room']}" for name, arguments in self.calls]


class Story:
    """A conversation in which somebody can speak while the model or a tool is at work."""

    def __init__(self, talk: Conversation, house: House, server: StandInModel) -> None:
        self.talk, self.house, self.server = talk, house, server
        self.clock = VirtualClock()
        self.hearing: Any = talk.agent._services.hearing
        self.hearing._clock = self.clock

    def begins(self) -> None:
        self.talk.session._update_user_state("speaking")

    def falls_silent(self) -> None:
        self.talk.session._update_user_state("listening")

    async def words(self, words: str) -> None:
        """Speech to text has the words: LiveKit breaks the reply off, and they are a turn."""

        async def stt_node(*_: Any) -> AsyncGenerator[SpeechEvent]:
            said = SpeechData(cast("Any", "en"), words)
            yield SpeechEvent(SpeechEventType.FINAL_TRANSCRIPT, alternatives=[said])

        async for _ in self.hearing.of_node(stt_node)(None, None):
            self.talk.session.interrupt()

    def asks(self, words: str = ASKED) -> None:
        self.talk.session.generate_reply(user_input=words)

    async def until(self, what: Sequence[str], *, begun: bool = False) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while list(what) != (self.house.begun if begun else self.house.done):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def ended(self, calls: int) -> list[str]:
        """Return how so many calls ended."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.talk.events_of(ToolCallEnded)) < calls:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return [event.outcome for event in self.talk.events_of(ToolCallEnded)]

    async def replied(self) -> None:
        """Wait until the model has said what the calls of the first reply are."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.server.chats:
                await self.server.request_arrived()
        await asyncio.sleep(A_WHILE_S)

    async def shown(self) -> str:
        """Return all that the model is shown in the next turn."""
        await self.talk.ask("thanks")
        return str(self.server.chats[-1].json["messages"])


@asynccontextmanager
async def story(*replies: Reply, **env: str) -> AsyncGenerator[Story]:
    house = House()
    fine = ["Fine."], ["Fine."], ["Fine."], ["Fine."]
    async with (
        StandInModel(*replies, *fine) as server,
        conversation(server, tier=house, env=env) as talk,
    ):
        yield Story(talk, house, server)


async def test_a_call_is_not_made_while_somebody_speaks_nor_after_their_words() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        assert not told.house.begun
        told.falls_silent()
        await asyncio.sleep(A_WHILE_S)
        assert not told.house.begun, "Whisper still reads"
        await told.words(NEVER_MIND)
        assert await told.ended(1) == ["refused"]
        await told.talk.ask(NEVER_MIND)
        assert SPOKEN_OVER in await told.shown()
        assert not told.house.begun


async def test_a_noise_without_words_only_holds_it_up() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        told.falls_silent()
        await asyncio.sleep(A_WHILE_S)
        assert not told.house.begun
        told.clock.advance(WORDS_S)
        await told.until(["set_light kitchen"])


async def test_a_second_noise_is_waited_for_as_long() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        told.falls_silent()
        told.clock.advance(WORDS_S / 2)
        told.begins()
        told.falls_silent()
        told.clock.advance(WORDS_S / 2)
        await asyncio.sleep(A_WHILE_S)
        assert not told.house.begun
        told.clock.advance(WORDS_S / 2)
        await told.until(["set_light kitchen"])


async def test_a_television_that_never_stops_does_not_hold_it_up_for_good() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        told.clock.advance(LONGEST_S)
        await told.until(["set_light kitchen"])


async def test_talk_of_others_does_not_take_it_back() -> None:
    async with story([KITCHEN], CAAL_ANSWERS="Olly") as told:
        told.asks()
        told.begins()
        await told.replied()
        told.falls_silent()
        await told.words("he told her mother about the wedding")
        await told.until(["set_light kitchen"])


async def test_words_before_the_silence_as_of_a_streaming_recogniser_count_too() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        await told.words(NEVER_MIND)
        assert not told.house.begun
        told.falls_silent()
        told.clock.advance(0.0)
        assert await told.ended(1) == ["refused"]


async def test_a_correction_after_a_false_end_of_turn_is_carried_out_in_its_place() -> None:
    async with story([KITCHEN], [BEDROOM]) as told:
        told.asks("turn on the light in the kitchen")
        told.begins()
        await told.replied()
        told.falls_silent()
        await told.words("No wait, the bedroom light.")
        await told.ended(1)
        await told.talk.ask("No wait, the bedroom light.")
        assert told.house.done == ["set_light bedroom"]
        second = str(told.server.chats[1].json["messages"])
        assert "light in the kitchen" in second, "the model reads the former words too"


async def test_what_was_done_before_the_correction_is_shown_and_not_done_again() -> None:
    async with story([KITCHEN], ["Done."], [BEDROOM]) as told:
        await told.talk.ask("turn on the light in the kitchen")
        await told.talk.ask("No wait, the bedroom light.")
        assert told.house.done == ["set_light kitchen", "set_light bedroom"]
        assert "done" in str(told.server.chats[2].json["messages"])


async def test_a_call_that_only_reads_waits_for_nobody() -> None:
    async with story([FIND]) as told:
        told.asks()
        told.begins()
        await told.until(["find_lamps kitchen"])


@pytest.mark.parametrize("words", [NEVER_MIND, "stop", "Forget it."])
async def test_a_reading_call_ends_when_it_is_taken_back(words: str) -> None:
    async with story([FIND]) as told:
        told.house.may_end.clear()
        told.asks()
        await told.until(["find_lamps kitchen"], begun=True)
        told.talk.session.interrupt()
        await told.talk.ask(words)
        assert await told.ended(1) == ["refused"]
        assert not told.house.done
        assert TAKEN_BACK in await told.shown()


async def test_a_writing_call_that_has_begun_goes_on_and_one_behind_it_is_not_made() -> None:
    async with story([KITCHEN, BEDROOM]) as told:
        told.house.may_end.clear()
        told.asks()
        await told.until(["set_light kitchen"], begun=True)
        told.talk.session.interrupt()
        await told.talk.ask(NEVER_MIND)
        told.house.may_end.set()
        assert sorted(await told.ended(2)) == ["ok", "refused"]
        assert told.house.done == ["set_light kitchen"]


async def test_other_words_take_nothing_back() -> None:
    async with story([KITCHEN, BEDROOM, FIND]) as told:
        told.house.may_end.clear()
        told.asks()
        await told.until(["set_light kitchen"], begun=True)
        told.talk.session.interrupt()
        await told.talk.ask("what time is it?")
        told.house.may_end.set()
        assert await told.ended(3) == ["ok", "ok", "ok"]
        assert sorted(told.house.done)[1:] == ["set_light bedroom", "set_light kitchen"]


async def test_cancelling_a_call_that_waits_for_words_leaves_nothing_behind() -> None:
    async with story([KITCHEN]) as told:
        told.asks()
        told.begins()
        await told.replied()
        told.talk.agent.cancel_calls()
        assert await told.ended(1) == ["cancelled"]
        told.falls_silent()
        told.clock.advance(WORDS_S)
        await asyncio.sleep(A_WHILE_S)
        assert not told.house.begun


async def test_what_is_taken_back_in_one_breath_asks_no_model_and_calls_nothing() -> None:
    async with story([KITCHEN]) as told:
        words = "Turn on the kitchen light. Never mind."
        said = llm.ChatMessage(role="user", content=[words], transcript_confidence=0.9)
        await told.talk.session.generate_reply(user_input=said)
        assert not told.server.chats
        assert not told.house.begun
        assert told.talk.agent.chat_ctx.items[-1].text_content == sentence("taken_back")  # type: ignore[union-attr]


def test_nothing_is_said_of_what_was_taken_back() -> None:
    assert SpokenOver.spoken == ""
