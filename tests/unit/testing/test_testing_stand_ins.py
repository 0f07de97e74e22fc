"""The stand-ins that people test their own agents with do what they say."""

from __future__ import annotations

import pytest
from livekit import rtc
from livekit.agents import function_tool

from caal_node.agent import CaalAgent
from caal_node.core.errors import ModelMissing
from caal_node.core.events import ToolCallEnded, UserSaid
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedSTT,
    ScriptedToolSource,
    ScriptedTTS,
    plain_settings,
)


class Kitchen(CaalAgent):
    """An agent as somebody might write it."""

    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a kitchen timer."""
        return f"The timer runs for {minutes:g} minutes."


def kitchen(**options: object) -> Kitchen:
    return Kitchen(settings=plain_settings(), tiers={}, warm=False, **options)  # type: ignore[arg-type]


async def test_a_call_and_the_answer_are_in_the_turns_record() -> None:
    model = ScriptedModel([ScriptedCall("set_timer", {"minutes": 5})], "It runs.")
    async with AgentConversation(kitchen(), model) as conversation:
        turn = await conversation.say("five minutes for the eggs")
    assert turn.spoken == "It runs."
    (call,) = turn.calls
    assert (call.tool, call.tier, call.source) == ("set_timer", "agent", "Kitchen")
    assert (call.arguments, call.outcome) == ({"minutes": 5}, "ok")
    assert model.replies_left == 0
    assert [len(request.tools) for request in model.requests] == [1, 1]


async def test_a_call_that_the_model_writes_as_text_is_run() -> None:
    written = '<tool_call>{"name": "set_timer", "arguments": {"minutes": 2}}</tool_call>'
    async with AgentConversation(kitchen(), ScriptedModel(written, "Two it is.")) as conversation:
        turn = await conversation.say("two minutes")
    assert [call.outcome for call in turn.calls] == ["ok"]
    assert turn.spoken == "Two it is."


async def test_a_model_that_fails_is_a_sentence_and_the_next_turn_works() -> None:
    model = ScriptedModel(ModelMissing("nobody is there"), "Here I am.")
    async with AgentConversation(kitchen(), model) as conversation:
        failed = await conversation.say("hello")
        assert failed.spoken
        assert "nobody" not in failed.spoken
        assert (await conversation.say("and now")).spoken == "Here I am."


async def test_a_scripted_source_stands_in_for_a_remote_tier() -> None:
    async def answer(spec: ToolSpec, arguments: object) -> object:
        return {"forecast": "sunny"}

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    spec = ToolSpec("n8n", "n8n", "weather", "weather", "Weather of a city.", schema)
    source = ScriptedToolSource(spec, answer=answer)
    agent = CaalAgent(settings=plain_settings(), tiers={"n8n": source}, warm=False)
    model = ScriptedModel([ScriptedCall("weather", {"city": "Oslo"})], "Sunny.")
    async with AgentConversation(agent, model) as conversation:
        turn = await conversation.say("how is the weather in Oslo")
        assert conversation.events_of(UserSaid)[0].text == "how is the weather in Oslo"
        assert len(conversation.events_of(ToolCallEnded)) == 1
        assert len(conversation.history) >= 4
    assert source.calls == [("weather", {"city": "Oslo"})]
    assert turn.calls[0].tier == "n8n"
    assert source.closed


async def test_a_request_beyond_the_script_is_no_silent_success() -> None:
    model = ScriptedModel()
    with pytest.raises(AssertionError, match="once more than"):
        async for _ in model.backend.ask(None):  # type: ignore[arg-type]
            pass


async def test_scripted_ears_hear_what_was_written_down_and_then_nothing() -> None:
    ears = ScriptedSTT("turn on the light")
    sound = rtc.AudioFrame(bytes(320), 16_000, 1, 160)
    heard = [(await ears.recognize(sound)).alternatives[0].text for _ in range(2)]
    assert heard == ["turn on the light", ""]


async def test_a_scripted_voice_is_silence_of_the_words_length_and_keeps_them() -> None:
    voice = ScriptedTTS()
    async with voice.synthesize("Good morning.") as stream:
        frames = [audio.frame async for audio in stream]
    assert voice.spoken == ["Good morning."]
    assert sum(frame.duration for frame in frames) == pytest.approx(13 * 0.06, abs=0.05)
    assert not any(any(frame.data) for frame in frames)


def test_plain_settings_read_nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_MODEL", "somebody-elses")
    assert plain_settings().model == "qwen3:8b"
    assert plain_settings(CAAL_DETECTION="streamed").detection == "streamed"
