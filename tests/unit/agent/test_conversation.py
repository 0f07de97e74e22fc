"""A conversation without a room: what `say` gives, what happens on the way, and how it ends."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from livekit.agents import Agent, RunContext, function_tool

from caal_node import LLM, CaalAgent, Conversation, Hooks
from caal_node.core.errors import ModelMissing
from caal_node.core.events import Event, Spoken, TurnEnded, UserSaid
from caal_node.core.items import UserItem
from caal_node.testing import ScriptedCall, ScriptedModel, plain_settings
from tests.stand_ins.stand_in_model import Call, Hang, StandInModel

OFFLINE: dict[str, Any] = {"settings": plain_settings(), "tiers": {}, "warm": False}


class Kitchen(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**OFFLINE, **options})
        self.free = asyncio.Event()

    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a kitchen timer."""
        if minutes < 0:
            raise ValueError("no such time")
        return f"The timer runs for {minutes:g} minutes."

    @function_tool
    async def hang(self) -> str:
        """Hang."""
        await self.free.wait()
        return ""

    @function_tool
    async def hand_over(self, context: RunContext[Any]) -> Agent:
        """Hand over."""
        return Other(instructions="x")


class Other(Agent):
    async def on_enter(self) -> None:
        await self.session.say("Other here.")


async def test_a_reply_has_the_text_the_calls_with_their_outcomes_and_the_trace() -> None:
    calls = [ScriptedCall("set_timer", {"minutes": n}) for n in (5, -1)]
    model = ScriptedModel([*calls], "One runs.", "You are welcome.")
    async with Conversation(Kitchen(), model) as conversation:
        reply = await conversation.say("five minutes, and minus one")
        assert reply.text == reply.spoken == "One runs."
        done, failed = reply.calls
        assert (done.tool, done.arguments, done.outcome) == ("set_timer", {"minutes": 5}, "ok")
        assert done.result == "The timer runs for 5 minutes."
        assert failed.outcome == "error"
        assert done.duration_ms is not None
        assert isinstance(reply.events[0], UserSaid)
        assert Spoken("One runs.") in reply.events
        assert isinstance(reply.events[-1], TurnEnded)
        after = await conversation.say("thanks")
        assert (after.text, after.calls) == ("You are welcome.", ())
        assert len(conversation.history) >= 6


async def test_the_agents_hooks_and_events_come_on_the_way() -> None:
    seen: list[object] = []

    def called(name: str, arguments: Mapping[str, Any]) -> None:
        seen.append((name, dict(arguments)))

    agent = Kitchen(hooks=Hooks(on_status=seen.append, on_tool_call=called))
    model = ScriptedModel([ScriptedCall("set_timer", {"minutes": 1})], "Done.")
    async with Conversation(agent, model) as conversation:
        await conversation.say("one minute")
    expected: list[object] = ["thinking", "calling", ("set_timer", {"minutes": 1})]
    assert seen == [*expected, "answering", "idle"]


async def test_async_hooks_and_listeners_are_awaited_in_order_before_the_reply() -> None:
    log: list[str] = []

    async def status(phase: str) -> None:
        await asyncio.sleep(0.03 if phase == "thinking" else 0)
        log.append(phase)

    def called(name: str, arguments: Mapping[str, Any]) -> None:
        log.append(name)

    async def heard(event: Event) -> None:
        await asyncio.sleep(0.01)
        if isinstance(event, Spoken):
            raise ValueError("one that fails stops no other")
        trace.append(event)

    trace: list[Event] = []
    agent = Kitchen(hooks=Hooks(on_status=status, on_tool_call=called), on_event=heard)
    model = ScriptedModel([ScriptedCall("set_timer", {"minutes": 1})], "Done.")
    async with Conversation(agent, model) as conversation:
        reply = await conversation.say("one minute")
    assert log == ["thinking", "calling", "set_timer", "answering", "idle"]
    assert trace == [event for event in reply.events if not isinstance(event, Spoken)]


async def test_it_opens_with_the_first_words_and_needs_no_block() -> None:
    conversation = Conversation(model=ScriptedModel("Hello."), **OFFLINE)
    with pytest.raises(RuntimeError, match="not open"):
        _ = conversation.history
    assert (await conversation.say("hello")).text == "Hello."
    await conversation.aclose()
    await conversation.aclose()
    assert conversation.history, "it can be kept"
    with pytest.raises(RuntimeError, match="over"):
        await conversation.say("are you there")


async def test_what_is_said_on_entering_is_the_greeting_and_in_no_reply() -> None:
    class Polite(Kitchen):
        async def on_enter(self) -> None:
            self.session.say("Good morning.")

    async with Conversation(Polite(), ScriptedModel("Fine.")) as conversation:
        assert conversation.greeting.text == "Good morning."
        assert (await conversation.say("how are you")).text == "Fine."


async def test_a_model_that_fails_is_a_sentence() -> None:
    model = ScriptedModel(ModelMissing("nobody is there"), "Here I am.")
    async with Conversation(Kitchen(), model) as conversation:
        assert "nobody" not in (await conversation.say("hello")).text
        assert (await conversation.say("hello")).text == "Here I am."


async def test_turns_that_are_asked_for_at_once_come_one_after_the_other() -> None:
    async with Conversation(Kitchen(), ScriptedModel("One.", "Two.")) as conversation:
        replies = await asyncio.gather(conversation.say("a"), conversation.say("b"))
    assert [reply.text for reply in replies] == ["One.", "Two."]


async def test_the_words_of_an_agent_that_took_over_are_in_the_reply() -> None:
    model = ScriptedModel([ScriptedCall("hand_over")], "From the other.")
    async with Conversation(Kitchen(), model) as conversation:
        assert "Other here." in (await conversation.say("let me talk to the other")).text
        assert (await conversation.say("hello")).text == "From the other."


@pytest.mark.parametrize("way", ["deadline", "cancelled", "interrupted"])
async def test_a_turn_that_is_broken_off_leaves_the_next_one_working(way: str) -> None:
    deaf: list[Any] = [Hang()]
    async with StandInModel(deaf, ["Here again."], ["Here again."]) as server:
        model = LLM(server.model, "ollama", server.url, native_tools=True)
        async with Conversation(Kitchen(), model, turn_s=0.5 if way == "deadline" else 20) as talk:
            turn = asyncio.create_task(talk.say("hello"))
            await server.request_arrived()
            while not server.chats:
                await server.request_arrived()
            if way == "deadline":
                with pytest.raises(TimeoutError):
                    await turn
            elif way == "cancelled":
                turn.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await turn
            else:
                await talk.interrupt()
                assert (await turn).text == ""
            await asyncio.wait_for(server.client_gone(), 20)
            assert (await talk.say("and now")).text == "Here again."
        await model.aclose()


async def test_a_tool_that_never_ends_does_not_keep_it_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("caal_node.conversation.END_S", 0.2)
    agent = Kitchen()
    conversation = Conversation(agent, ScriptedModel([ScriptedCall("hang")]), turn_s=0.2)
    with pytest.raises(TimeoutError):
        await conversation.say("hang")
    await conversation.aclose()
    assert "does not end" in caplog.text
    agent.free.set()


async def test_without_a_model_it_asks_that_of_the_settings_and_closes_it() -> None:
    sample = [Call("get_weather", {"city": "Oslo"})]
    async with StandInModel(sample, ["Hello."]) as server:
        settings = plain_settings(OLLAMA_HOST=server.url, CAAL_MODEL=server.model)
        async with Conversation(settings=settings, tiers={}, warm=False) as conversation:
            assert (await conversation.say("hello")).text
        assert server.chats


async def test_what_a_program_knows_is_read_in_the_next_turn_and_outlives_the_window() -> None:
    model = ScriptedModel(*["Yes."] * 9)

    class Forgetful(Kitchen):
        window_turns = 4

    agent = Forgetful(settings=plain_settings())
    async with Conversation(agent, model) as conversation:
        await conversation.say("hello")
        agent.tool_data.add("doorbell", {"seen": "a parcel"})
        for n in range(8):
            await conversation.say(f"question {n}")
    seen = [[item.text for item in r.items if isinstance(item, UserItem)] for r in model.requests]
    assert not any("a parcel" in text for text in seen[0])
    assert ["a parcel" in text for text in seen[1]] == [False, True, False], "before the words"
    for before, after in itertools.pairwise(seen[:4]):
        assert after[: len(before)] == before, "the prompt only grows"
    assert "hello" not in seen[-1], "the window was cut"
    assert sum("a parcel" in text for text in seen[-1]) == 1


def test_options_beside_an_agent_are_refused() -> None:
    with pytest.raises(TypeError, match="hooks"):
        Conversation(Kitchen(), hooks=Hooks())
