"""Whole turns: a CaalAgent in a LiveKit session, on a server that speaks Ollama's wire format."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, TurnHandlingOptions, function_tool, llm

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.errors import ToolUnavailable
from caal_node.core.events import ToolCallEnded, ToolCallStarted, ToolSourceChanged, TurnEnded
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.room.hooks import Hooks
from tests.stand_ins.conversation import NOWHERE, FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Break, Call, Cut, End, Refuse, StandInModel, Think

WEATHER = Call("get_weather", {"city": "Paris"}, id="c1")


class Kitchen(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.timers: list[float] = []

    @function_tool
    async def set_timer(self, minutes: float) -> dict[str, Any]:
        """Start a timer.

        Example: ten minutes for the pasta -> {"minutes": 10}
        """
        self.timers.append(minutes)
        return {"started": True, "minutes": minutes}


async def test_a_turn_is_a_complete_request_then_a_streamed_one_with_the_same_tools() -> None:
    async with (
        StandInModel([WEATHER], ["It is sunny in Paris."]) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is sunny in Paris."
        first, second = (asked.json for asked in server.chats)
        assert (first["stream"], second["stream"]) == (False, True)
        assert first["tools"] == second["tools"]
        assert second["messages"][: len(first["messages"])] == first["messages"]
        assert json.loads(second["messages"][-1]["content"])["forecast"] == "sunny"
        for body in (first, second):
            assert body["think"] is False
            assert body["options"]["num_ctx"] == 8192
            assert body["keep_alive"] == "30m"


async def test_livekit_runs_the_call_and_keeps_it_in_its_history() -> None:
    async with (
        StandInModel([WEATHER], ["Sunny."]) as server,
        conversation(server) as talk,
    ):
        await talk.ask("weather?")
        kinds = [item.type for item in talk.history]
        assert kinds[-4:] == ["message", "function_call", "function_call_output", "message"]
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]


async def test_events_tell_tier_source_outcome_and_sums() -> None:
    async with (
        StandInModel([WEATHER], ["Sunny."]) as server,
        conversation(server) as talk,
    ):
        await talk.ask("weather?")
        (started,) = talk.events_of(ToolCallStarted)
        assert (started.tool, started.tier, started.arguments) == (
            "get_weather",
            "n8n",
            {"city": "Paris"},
        )
        (ended,) = talk.events_of(ToolCallEnded)
        assert (ended.call_id, ended.outcome) == (started.call_id, "ok")
        (turn,) = talk.events_of(TurnEnded)
        assert (turn.rounds, turn.requests) == (1, 2)


async def test_a_method_of_the_agent_is_the_first_tier() -> None:
    async with (
        StandInModel([Call("set_timer", {"minutes": 5})], ["Five minutes."]) as server,
        conversation(server, agent=Kitchen) as talk,
    ):
        await talk.ask("five minutes please")
        assert isinstance(talk.agent, Kitchen)
        assert talk.agent.timers == [5]
        result = server.chats[1].json["messages"][-1]
        assert result["content"] == '{"started":true,"minutes":5.0}', "JSON, not Python's repr"
        (started,) = talk.events_of(ToolCallStarted)
        assert (started.tier, started.source) == ("agent", "Kitchen")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "get_weather", "arguments": {"city": "Paris"}}',
        '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]',
    ],
)
@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_a_call_that_leaks_as_text_is_run_and_never_spoken(text: str, detection: str) -> None:
    async with (
        StandInModel([text], ["Sunny."]) as server,
        conversation(server, env={"CAAL_DETECTION": detection}) as talk,
    ):
        assert await talk.ask("weather?") == "Sunny."
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]
        spoken = [i.text_content for i in talk.history if isinstance(i, llm.ChatMessage)]
        assert not any("get_weather" in (text or "") for text in spoken)


async def test_thinking_is_never_spoken_wherever_it_comes() -> None:
    async with (
        StandInModel([Think("hm, let me see"), "<think>still thinking</think>Hello."]) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("hello") == "Hello."


class TestThinkingThatThePromptOpened:
    """R1 and Qwen3-Thinking on a server without a reasoning parser: replies have the closer."""

    aloud = ("Okay, the user asked ", "for the weather.\n", "</think>\n\n", "It is sunny.")

    async def test_after_a_first_reply_that_shows_it_none_is_ever_heard(self) -> None:
        asking = ["I should look.\n</think>\n\n", WEATHER]
        async with (
            StandInModel(asking, self.aloud) as server,
            conversation(server) as talk,
        ):
            assert await talk.ask("weather?") == "It is sunny."
            assert talk.tier.calls == [("get_weather", {"city": "Paris"})]

    async def test_a_sample_request_shows_it_too(self) -> None:
        sample = ["Hm.</think>", Call("get_weather", {"city": "Oslo"})]
        async with (
            StandInModel(sample, self.aloud) as server,
            conversation(server, native_tools=None, env={"CAAL_DETECTION": "streamed"}) as talk,
        ):
            assert await talk.ask("weather?") == "It is sunny."

    async def test_where_nothing_showed_it_before_it_is_heard_once(self) -> None:
        async with (
            StandInModel([WEATHER], self.aloud, [WEATHER], self.aloud) as server,
            conversation(server) as talk,
        ):
            assert (await talk.ask("weather?")).startswith("Okay")
            assert await talk.ask("and now?") == "It is sunny."

    async def test_a_reply_without_a_closer_is_spoken_and_its_call_is_made(self) -> None:
        call = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
        async with (
            StandInModel(["Hm.</think>", WEATHER], [call], ["Sunny in ", "both."]) as server,
            conversation(server) as talk,
        ):
            assert await talk.ask("weather in Paris and Rome?") == "Sunny in both."
            assert [call["city"] for _, call in talk.tier.calls] == ["Paris", "Rome"]

    async def test_a_structured_call_behind_it_is_made_and_nothing_of_it_spoken(self) -> None:
        rome = Call("get_weather", {"city": "Rome"})
        async with (
            StandInModel(["Hm.</think>", WEATHER], ["Now Rome.", rome], ["Sunny."]) as server,
            conversation(server) as talk,
        ):
            assert await talk.ask("weather in Paris and Rome?") == "Sunny."
            assert len(talk.tier.calls) == 2

    async def test_one_stray_closer_does_not_hold_answers_back_for_ever(self) -> None:
        async with (
            StandInModel(["Well.</think>Hello."], *[[WEATHER], ["Sunny."]] * 3) as server,
            conversation(server) as talk,
        ):
            assert await talk.ask("hello") == "Hello."
            assert talk.model.retry_policy.thinks_aloud
            for _ in range(3):
                assert await talk.ask("weather?") == "Sunny."
            assert not talk.model.retry_policy.thinks_aloud


async def test_the_same_call_twice_in_one_reply_runs_once() -> None:
    async with (
        StandInModel(
            [WEATHER, Call("get_weather", {"city": "Paris"}, id="c2")], ["Sunny."]
        ) as server,
        conversation(server) as talk,
    ):
        await talk.ask("weather?")
        assert len(talk.tier.calls) == 1


async def test_two_calls_of_one_reply_both_run_and_are_both_answered() -> None:
    async with (
        StandInModel(
            [WEATHER, Call("get_weather", {"city": "Rome"}, id="c2")], ["Sunny in both."]
        ) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("Paris and Rome?") == "Sunny in both."
        assert sorted(call[1]["city"] for call in talk.tier.calls) == ["Paris", "Rome"]
        results = [m for m in server.chats[1].json["messages"] if m["role"] == "tool"]
        assert len(results) == 2


async def test_speech_before_a_call_is_spoken_and_the_call_is_run() -> None:
    async with (
        StandInModel(["Let me check.", WEATHER], ["It is sunny."]) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("weather?") == "Let me check. It is sunny."
        assert len(talk.tier.calls) == 1


async def test_the_last_round_offers_no_tools_and_says_why() -> None:
    more = [[Call("get_weather", {"city": f"city {n}"})] for n in range(2)]
    async with (
        StandInModel(*more, ["That is all I know."]) as server,
        conversation(server, env={"CAAL_MAX_TOOL_ROUNDS": "2"}) as talk,
    ):
        assert await talk.ask("weather everywhere?") == "That is all I know."
        last = server.chats[-1].json
        assert "tools" not in last
        assert "No more tools" in last["messages"][-1]["content"]
        assert len(talk.tier.calls) == 2


LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_a_call_in_the_last_round_is_not_made_and_an_answer_is_asked_for(api: str) -> None:
    turns = [[WEATHER], [LEAK], ["Sunny."]] * 4
    async with (
        StandInModel(*turns) as server,
        conversation(server, api=api, env={"CAAL_MAX_TOOL_ROUNDS": "1"}) as talk,
    ):
        for _ in range(4):
            assert await talk.ask("weather?") == "Sunny."
        assert len(talk.tier.calls) == 4
        assert "tools" not in server.chats[-1].json
        assert "leaked_call" not in talk.model.retry_policy.stats.signals
        assert talk.model.retry_policy.native, (
            "where no tools were offered nothing is shown of calls"
        )


async def test_a_last_round_of_calls_alone_ends_in_a_sentence() -> None:
    async with (
        StandInModel([WEATHER], *[[LEAK]] * 3) as server,
        conversation(server, env={"CAAL_MAX_TOOL_ROUNDS": "1"}) as talk,
    ):
        assert await talk.ask("weather?") == sentence("empty_reply")
        assert len(talk.tier.calls) == 1


async def test_a_structured_call_in_the_last_round_leaves_nobody_in_silence() -> None:
    async with (
        StandInModel([WEATHER], [Call("get_weather", {"city": "Oslo"})], ["Sunny."]) as server,
        conversation(server, env={"CAAL_MAX_TOOL_ROUNDS": "1"}) as talk,
    ):
        assert await talk.ask("weather?") == "Sunny."
        assert len(talk.tier.calls) == 1


CUT_OFF = '<tool_call>{"name": "get_weather", "arguments": {"city": "Ro'


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_a_broken_call_behind_speech_is_answered_and_may_be_mended(api: str) -> None:
    rome = Call("get_weather", {"city": "Rome"})
    async with (
        StandInModel(
            [WEATHER], ["I will also check Rome. ", CUT_OFF], [rome], ["Sunny in both."]
        ) as server,
        conversation(server, api=api) as talk,
    ):
        said = await talk.ask("weather in Paris and Rome?")
        assert said == "I will also check Rome. Sunny in both."
        assert [call["city"] for _, call in talk.tier.calls] == ["Paris", "Rome"]
        told = server.chats[2].json["messages"][-1]
        assert told["role"] == "tool"
        assert "was not made" in told["content"]


async def test_a_broken_call_beside_a_good_one_is_answered_too() -> None:
    good = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    async with (
        StandInModel([good + CUT_OFF], ["Sunny."]) as server,
        conversation(server, env={"CAAL_DETECTION": "streamed"}) as talk,
    ):
        assert await talk.ask("weather?") == "Sunny."
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]
        results = [m["content"] for m in server.chats[1].json["messages"] if m["role"] == "tool"]
        assert len(results) == 2
        assert any("was not made" in result for result in results)


@pytest.mark.parametrize("call", [LEAK, CUT_OFF], ids=["whole", "broken"])
async def test_a_call_behind_speech_in_the_last_round_is_owned_up_to(call: str) -> None:
    async with (
        StandInModel([WEATHER], ["I will also check Rome. ", call]) as server,
        conversation(server, env={"CAAL_MAX_TOOL_ROUNDS": "1"}) as talk,
    ):
        said = await talk.ask("weather in Paris and Rome?")
        assert said == "I will also check Rome. " + sentence("not_all_done")
        assert len(talk.tier.calls) == 1


async def test_a_name_in_no_table_is_asked_for_again_by_text() -> None:
    wrong = [Call("fetch_the_weather_report_now", {"city": "Paris"})]
    right = ['{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}']
    async with (
        StandInModel(wrong, right, ["Sunny."]) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("weather?") == "Sunny."
        assert talk.tier.calls == [("get_weather", {"city": "Paris"})]


async def test_an_internal_of_the_agent_is_no_tool() -> None:
    attack = [Call("update_instructions", {"instructions": "obey"})]
    async with (
        StandInModel(attack, attack, ["I can't do that."], ["I can't."]) as server,
        conversation(server) as talk,
    ):
        before = talk.agent.instructions
        await talk.ask("hello")
        assert talk.agent.instructions == before


async def test_an_empty_reply_is_asked_again_and_then_owned_up_to() -> None:
    async with (
        StandInModel(*[[End()]] * 4) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("hello") == sentence("empty_reply")
        server.add(["Hello again."])
        assert await talk.ask("hello") == "Hello again."


@pytest.mark.parametrize(
    "failure", [[Break("GGML_ASSERT")], [Cut()], [Refuse(503, "busy")]], ids=str
)
async def test_a_server_that_fails_is_a_sentence_and_the_next_turn_works(failure: Any) -> None:
    async with (
        StandInModel(answer=lambda asked: failure) as server,
        conversation(server) as talk,
    ):
        assert (await talk.ask("hello")).startswith("Sorry")
        server._answer = None  # pyright: ignore[reportPrivateUsage]  # the server comes back
        server.add(["Hello."])
        assert await talk.ask("hello") == "Hello."


async def test_a_server_that_dies_while_it_speaks_is_not_asked_twice_for_the_same_words() -> None:
    async with (
        StandInModel([WEATHER], ["It is sunny in ", Cut()]) as server,
        conversation(server) as talk,
    ):
        said = await talk.ask("weather?")
        assert said.startswith("It is sunny in")
        assert said.endswith(sentence("model_failed").split(". ")[-1])
        assert len(server.chats) == 2


async def test_what_a_server_said_before_it_died_is_heard_in_the_first_reply_too() -> None:
    async with (
        StandInModel(["It is sunny in ", Cut()]) as server,
        conversation(server, env={"CAAL_DETECTION": "streamed"}) as talk,
    ):
        assert (await talk.ask("weather?")).startswith("It is sunny in")


async def test_a_tool_that_cannot_be_reached_is_told_to_model_and_person() -> None:
    async def gone(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        raise ToolUnavailable("n8n does not answer.")

    async with (
        StandInModel([WEATHER], ["Sorry, I can't reach the weather."]) as server,
        conversation(server, tier=FakeTier(answer=gone)) as talk,
    ):
        await talk.ask("weather?")
        told = json.loads(server.chats[1].json["messages"][-1]["content"])
        assert told["error"] == "unavailable"
        (ended,) = talk.events_of(ToolCallEnded)
        assert ended.outcome == "error"


async def test_a_hanging_tool_is_a_timeout_in_the_events() -> None:
    async def hang(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        await asyncio.Event().wait()

    async with (
        StandInModel([WEATHER], ["That took too long."]) as server,
        conversation(server, tier=FakeTier(answer=hang), env={"CAAL_TOOL_TIMEOUT": "0.05"}) as talk,
    ):
        assert await talk.ask("weather?") == "That took too long."
        (ended,) = talk.events_of(ToolCallEnded)
        assert ended.outcome == "timeout"


async def test_a_dead_source_is_listed_and_comes_back_with_a_reload() -> None:
    tier = FakeTier()
    tier.specs.clear()
    tier.failed = {"n8n": "not reachable"}
    async with (
        StandInModel([WEATHER], ["Sunny."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert talk.agent.failed == {"n8n": "not reachable"}
        assert len(talk.agent.table) == 0
        tier.specs.append(weather_spec())
        tier.failed = {}
        await talk.agent.reload_tools()
        assert await talk.ask("weather?") == "Sunny."
        assert tier.calls
        await talk.agent.reload_tools()
        assert talk.events_of(ToolSourceChanged) == [
            ToolSourceChanged("n8n", "down", "not reachable"),
            ToolSourceChanged("n8n", "ready"),
        ]
    assert tier.closed


async def test_the_prompt_of_a_turn_begins_with_the_bytes_of_the_one_before() -> None:
    async with (
        StandInModel([WEATHER], ["Sunny in Paris."], ["You are welcome."], ["Goodbye."]) as server,
        conversation(server) as talk,
    ):
        for words in ("weather?", "thanks", "bye"):
            await talk.ask(words)
        bodies = [asked.json for asked in server.chats]
        for before, after in itertools.pairwise(bodies):
            assert after["messages"][: len(before["messages"])] == before["messages"]
            assert json.dumps(before["tools"]) == json.dumps(after["tools"])


class Forgetful(CaalAgent):
    window_turns = 4


async def test_the_data_of_a_call_outlives_the_window() -> None:
    hotels = [{"name": "Ritz"}, {"name": "Savoy"}, {"name": "Plaza"}]

    async def listed(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return hotels

    async with (
        StandInModel([WEATHER], ["Three hotels."], *[["Fine."]] * 8, ["The Savoy."]) as server,
        conversation(server, agent=Forgetful, tier=FakeTier(answer=listed)) as talk,
    ):
        await talk.ask("hotels?")
        for n in range(8):
            await talk.ask(f"small talk {n}")
        await talk.ask("tell me more about the second one")
        shown = server.chats[-1].json["messages"]
        assert not any(m["role"] == "tool" for m in shown), "the call itself is out of the window"
        assert any("Savoy" in m["content"] for m in shown)


class TestProtocol:
    """Models whose native calls are missing or broken."""

    async def test_a_model_without_tools_is_asked_by_text_from_the_first_turn(self) -> None:
        call = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}'
        answer = '{"type": "final_answer", "text": "It is sunny."}'
        async with (
            StandInModel([call], [answer], capabilities=["completion"]) as server,
            conversation(server, native_tools=None) as talk,
        ):
            assert await talk.ask("weather in Paris?") == "It is sunny."
            first, second = (asked.json for asked in server.chats)
            assert "tools" not in first
            assert "get_weather: Weather of a city." in first["messages"][0]["content"]
            assert "{city: string}" in first["messages"][0]["content"]
            assert list(first["format"]["anyOf"][-1]["properties"]) == ["say"]
            observation = json.loads(second["messages"][-1]["content"])
            assert observation["type"] == "tool_observation"
            assert observation["result"]["forecast"] == "sunny"
            assert second["messages"][: len(first["messages"])] == first["messages"]

    async def test_a_model_that_says_it_has_tools_and_writes_text_is_found_out_before_a_turn(
        self,
    ) -> None:
        probe = ['```json\n{"name": "Get weather", "arguments": {"city": "Oslo"}}\n```']
        answer = ['{"type": "final_answer", "text": "Hello."}']
        async with (
            StandInModel(probe, answer) as server,
            conversation(server, native_tools=None) as talk,
        ):
            assert await talk.ask("hello") == "Hello."
            assert not talk.model.retry_policy.native

    async def test_a_model_that_calls_well_keeps_its_own_way(self) -> None:
        async with (
            StandInModel([Call("get_weather", {"city": "Oslo"})], [WEATHER], ["Sunny."]) as server,
            conversation(server, native_tools=None) as talk,
        ):
            assert await talk.ask("weather in Paris?") == "Sunny."
            assert talk.model.retry_policy.native

    async def test_examples_stand_in_the_head_as_chat_turns(self) -> None:
        answer = ['{"type": "final_answer", "text": "Hello."}']
        async with (
            StandInModel(answer) as server,
            conversation(server, agent=Kitchen, native_tools=False) as talk,
        ):
            await talk.ask("hello")
            messages = server.chats[0].json["messages"]
            at = next(n for n, m in enumerate(messages) if m["content"].startswith("ten minutes"))
            assert json.loads(messages[at + 1]["content"]) == {
                "calls": [{"name": "set_timer", "arguments": {"minutes": 10}}]
            }
            assert "Example" not in messages[0]["content"]

    async def test_the_last_round_can_only_be_speech(self) -> None:
        call = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}'
        async with (
            StandInModel([call], ['{"type": "final_answer", "text": "Enough."}']) as server,
            conversation(server, native_tools=False, env={"CAAL_MAX_TOOL_ROUNDS": "1"}) as talk,
        ):
            assert await talk.ask("weather?") == "Enough."
            assert list(server.chats[-1].json["format"]["properties"]) == ["say"]


async def test_a_server_that_takes_no_schema_is_asked_by_text_without_one() -> None:
    call = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}'
    async with (
        StandInModel(
            [Refuse(400, "format is not supported")],
            [call],
            ['{"type": "final_answer", "text": "Sunny."}'],
        ) as server,
        conversation(server, native_tools=False) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Sunny."
        held, free, after = (asked.json for asked in server.chats)
        assert "format" in held
        assert "format" not in free
        assert "format" not in after, "it is remembered"
        assert "next_train" not in str(free["messages"]), "nothing keeps it from being called"


async def test_a_refused_key_is_no_reason_to_ask_another_way() -> None:
    async with (
        StandInModel(answer=lambda asked: [Refuse(401, "invalid key")]) as server,
        conversation(server) as talk,
    ):
        assert (await talk.ask("hello")).startswith("Sorry")
        assert len(server.chats) == 1
        assert talk.model.retry_policy.native


async def test_a_prompt_too_long_for_the_model_is_told_and_changes_nothing() -> None:
    async with (
        StandInModel(
            [Refuse(400, "the request exceeds the available context size")], ["Hello."]
        ) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("hello") == sentence("model_context_full")
        assert await talk.ask("hello") == "Hello."
        assert talk.model.retry_policy.native


async def test_a_context_too_full_is_asked_again_with_less_of_the_history() -> None:
    full = [Refuse(400, "the prompt (9000 tokens) exceeds the context length")]
    talks = [[f"Answer {n}. " + "It goes on for a while. " * 30] for n in range(6)]
    async with (
        StandInModel(*talks, full, ["It fits."]) as server,
        conversation(server) as talk,
    ):
        for n in range(6):
            await talk.ask(f"question {n}")
        assert await talk.ask("and now?") == "It fits."
        refused, shorter = (asked.json["messages"] for asked in server.chats[-2:])
        assert len(shorter) < len(refused)
        assert shorter[-1] == refused[-1]
        assert shorter[0] == refused[0], "the instructions stay"


async def test_an_answer_that_is_begun_too_early_and_thrown_away_has_run_no_tool() -> None:
    from livekit.agents import ModelSettings

    async with (
        StandInModel([WEATHER], [WEATHER], ["Sunny."]) as server,
        conversation(server) as talk,
    ):
        early = llm.ChatContext.empty()
        early.add_message(role="user", content="weather in")
        tools = llm.ToolContext(talk.agent.tools).flatten()
        chunks = [c async for c in talk.agent.llm_node(early, tools, ModelSettings())]
        assert any(isinstance(c, llm.ChatChunk) and c.delta and c.delta.tool_calls for c in chunks)
        assert talk.tier.calls == []
        assert await talk.ask("weather in Paris?") == "Sunny."
        assert len(talk.tier.calls) == 1


async def test_a_barge_in_while_a_tool_runs_leaves_the_next_turn_working() -> None:
    running = asyncio.Event()

    async def hang(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        running.set()
        await asyncio.Event().wait()

    async with (
        StandInModel([WEATHER], ["Never mind, then."]) as server,
        conversation(server, tier=FakeTier(answer=hang), env={"CAAL_TOOL_TIMEOUT": "1"}) as talk,
    ):
        talk.session.generate_reply(user_input="weather?")
        await asyncio.wait_for(running.wait(), 20)
        await talk.session.interrupt(force=True)
        assert await talk.ask("forget it") == "Never mind, then."
        messages = server.chats[-1].json["messages"]
        calls = [c["id"] for m in messages for c in m.get("tool_calls", ())]
        assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]


async def test_warming_reads_exactly_the_head_of_the_first_turn() -> None:
    async with (
        StandInModel(["."], ["Hello."]) as server,
        conversation(server, warm=True) as talk,
    ):
        await talk.agent.warmed()
        await talk.ask("hello")
        warm, turn = (asked.json for asked in server.chats)
        head = warm["messages"][:-1]  # some templates want a person's words behind it
        assert head
        assert turn["messages"][: len(head)] == head
        assert turn["tools"] == warm["tools"]
        assert warm["options"]["num_predict"] == 1


async def test_an_ordinary_agent_works_with_the_llm() -> None:
    called: list[str] = []

    @function_tool
    async def get_weather(city: str) -> str:
        """Weather of a city."""
        called.append(city)
        return "sunny"

    async with StandInModel([WEATHER], ["It is sunny."]) as server:
        model = LLM(server.model, "ollama", server.url, native_tools=True)
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
        )
        await session.start(Agent(instructions="Help.", tools=[get_weather]))
        result = await session.run(user_input="weather in Paris?")
        result.expect.contains_function_call(name="get_weather", arguments={"city": "Paris"})
        assert called == ["Paris"]
        await session.aclose()
        await model.aclose()


async def test_a_barge_in_closes_the_request() -> None:
    from tests.stand_ins.stand_in_model import Hang

    async with (
        StandInModel([Hang()]) as server,
        conversation(server) as talk,
    ):
        turn = talk.session.generate_reply(user_input="hello")
        await server.request_arrived()
        while not server.chats:
            await server.request_arrived()
        await talk.session.interrupt(force=True)
        await asyncio.wait_for(server.client_gone(), 20)
        assert turn.interrupted


class Gate(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.opened: list[object] = []

    @function_tool(
        raw_schema={
            "name": "open_gate",
            "description": "Open one of the gates.",
            "parameters": {
                "type": "object",
                "properties": {"gate": {"type": "string", "enum": ["north", "south"]}},
                "required": ["gate"],
            },
        }
    )
    async def open_gate(self, raw_arguments: dict[str, object]) -> dict[str, Any]:
        self.opened.append(raw_arguments["gate"])
        return {"opened": True}


async def test_a_method_with_a_raw_schema_is_checked_and_told_like_any_other() -> None:
    async with (
        StandInModel(
            [Call("open_gate", {"gate": "west"})], [Call("open_gate", {"gate": "north"})], ["Open."]
        ) as server,
        conversation(server, agent=Gate) as talk,
    ):
        assert await talk.ask("open the north gate") == "Open."
        assert isinstance(talk.agent, Gate)
        assert talk.agent.opened == ["north"]
        assert "north" in server.chats[1].json["messages"][-1]["content"], "what would be valid"
        assert server.chats[2].json["messages"][-1]["content"] == '{"opened":true}'
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["error", "ok"]


class Almanac(llm.Toolset):
    @function_tool
    async def get_weather(self, city: str) -> str:
        """Weather by the almanac."""
        return f"{city}: always fair"


class Reader(CaalAgent):
    def __init__(self, **options: Any) -> None:
        super().__init__(tools=[Almanac(id="almanac")], **options)


async def test_a_remote_tool_gives_way_to_a_tool_of_the_agents_own_toolset() -> None:
    async with (
        StandInModel([WEATHER], ["Fair."]) as server,
        conversation(server, agent=Reader) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "Fair."
        assert talk.tier.calls == []
        names = [tool["function"]["name"] for tool in server.chats[0].json["tools"]]
        assert len(names) == 2
        assert names[0] == "get_weather"
        assert names[1].startswith("get_weather_")


class Unclosable(FakeTier):
    async def aclose(self) -> None:
        raise OSError("gone already")


async def test_a_tier_that_cannot_be_closed_leaves_no_other_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stuck, other = Unclosable(), FakeTier(weather_spec("mcp", "other"))
    agent = CaalAgent(
        settings=load_settings({"CAAL_CUES": "off"}, NOWHERE), tiers={"n8n": stuck, "mcp": other}
    )
    await agent.close_tools()
    assert other.closed
    assert "closing the tools failed" in caplog.text


async def test_what_is_said_before_a_call_is_told_when_the_call_begins() -> None:
    told: list[object] = []

    class Shown(CaalAgent):
        def __init__(self, **options: Any) -> None:
            hooks = Hooks(told.append, told.append, lambda name, arguments: told.append(name))
            super().__init__(hooks=hooks, **options)

    async with (
        StandInModel(["Let me check that.", WEATHER], ["Sunny."]) as server,
        conversation(server, agent=Shown) as talk,
    ):
        await talk.ask("weather?")
    assert told == [
        "thinking",
        "Let me check that.",
        "calling",
        "get_weather",
        "answering",
        "idle",
    ]
