"""A trace of an agent's turns has the time of each request."""

from __future__ import annotations

from pathlib import Path

from livekit.agents import AgentSession, TurnHandlingOptions, llm
from livekit.plugins import openai

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.models.fallback import FallbackLLM
from caal_node.models.llm import LLM
from caal_node.telemetry.turn_times import read_trace, turns_of
from tests.stand_ins.conversation import NOWHERE, FakeTier, conversation
from tests.stand_ins.recorded_spans import kept_provider
from tests.stand_ins.stand_in_model import Call, Refuse, StandInModel


async def test_each_request_of_a_turn_is_in_the_trace_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    replies = ([Call("get_weather", {"city": "Paris"})], ["Sunny in Paris."], ["You are welcome."])
    with kept_provider():
        async with (
            StandInModel(*replies) as server,
            conversation(server, env={"CAAL_TRACE": str(path)}) as talk,
        ):
            await talk.ask("weather in Paris?")
            await talk.ask("thanks")
        # The turns are there when the conversation has ended, before the process does.
        assert len(turns_of(read_trace(path))) == 2
    with_tool, without = turns_of(read_trace(path))
    assert [request.outcome for request in with_tool.requests] == ["ok", "ok"]
    for request in (*with_tool.requests, *without.requests):
        assert request.first_s is not None
        assert request.begin_s <= request.first_s <= request.end_s
        assert request.prompt_tokens
    (call,) = with_tool.calls
    first, second = with_tool.requests
    assert first.end_s <= call.begin_s + 0.001
    assert call.end_s is not None
    assert call.end_s <= second.begin_s + 0.001
    assert [len(without.requests), len(without.calls)] == [1, 0]
    assert "Paris" not in path.read_text(encoding="utf-8")


async def test_a_request_that_failed_stands_beside_the_next_models(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with StandInModel([Refuse(500)]) as first, StandInModel(["Hello."]) as second:
        members = [
            LLM(each.model, "ollama", each.url, native_tools=True) for each in (first, second)
        ]
        await one_turn(FallbackLLM(members), path)
    (turn,) = turns_of(read_trace(path))
    # LiveKit also tries the first model again behind the scenes.
    outcomes = [request.outcome for request in turn.requests]
    assert (outcomes[0], outcomes.count("ok")) == ("error", 1)


async def test_requests_to_a_model_of_another_plugin_are_in_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with StandInModel(["Hello."]) as server:
        other = openai.LLM(model=server.model, base_url=server.openai_url, api_key="none")
        await one_turn(other, path)
    (turn,) = turns_of(read_trace(path))
    assert [request.outcome for request in turn.requests] == ["ok"]
    assert turn.requests[0].prompt_tokens


async def one_turn(model: llm.LLM, trace: Path) -> None:
    settings = load_settings({"CAAL_CUES": "off", "CAAL_TRACE": str(trace)}, NOWHERE)
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
    )
    with kept_provider():
        agent = CaalAgent(settings=settings, tiers={"n8n": FakeTier()}, warm=False)
        await session.start(agent)
        try:
            await session.run(user_input="hello")
        finally:
            await session.aclose()
            await model.aclose()
