"""LiveKit's judges, evals and metrics work with our model as with a model of its own plugins."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from livekit.agents import Agent, AgentSession, RunContext, function_tool, llm
from livekit.agents.evals import (
    JudgeGroup,
    accuracy_judge,
    coherence_judge,
    conciseness_judge,
    handoff_judge,
    relevancy_judge,
    safety_judge,
    task_completion_judge,
    tool_use_judge,
)
from livekit.agents.metrics import LLMMetrics

from caal_node import LLM, CaalAgent
from caal_node.testing import plain_settings
from tests.stand_ins.stand_in_model import PROMPT_TOKENS, Asked, Call, Reply, StandInModel

JUDGES: Final = (
    accuracy_judge,
    coherence_judge,
    conciseness_judge,
    handoff_judge,
    relevancy_judge,
    safety_judge,
    task_completion_judge,
    tool_use_judge,
)
VERDICT: Final = {"verdict": "pass", "reasoning": "It says what the tool said."}
OPINION: Final = "I find that the agent did well."


class Talker:
    """A model that would rather talk than call, as small ones do, until it has to."""

    def __init__(self, call: str, arguments: dict[str, Any]) -> None:
        self._rows = [{"name": call, "arguments": arguments}]

    def __call__(self, asked: Asked) -> Reply:
        if "format" in asked.json:  # a schema without room for speech
            return [json.dumps({"calls": self._rows})]
        if "has to be a tool call" in asked.body.decode():
            return [json.dumps({"type": "tool_call", **self._rows[0]})]
        return [OPINION]


def model_on(server: StandInModel, way: str) -> LLM:
    api: Any = "openai" if way == "text" else "ollama"
    url = server.openai_url if api == "openai" else server.url
    return LLM(server.model, api, url, native_tools=way == "native")


ways = pytest.mark.parametrize("way", ["native", "json", "text"])


@ways
async def test_every_judge_gives_a_verdict_although_the_model_would_rather_talk(way: str) -> None:
    chat = llm.ChatContext.empty()
    chat.add_message(role="user", content="How warm is it in Paris?")
    chat.items.append(llm.FunctionCall(call_id="1", name="get_weather", arguments="{}"))
    output = llm.FunctionCallOutput(call_id="1", name="get_weather", output="21", is_error=False)
    chat.items.append(output)
    chat.add_message(role="assistant", content="It is 21 degrees.")
    async with (
        StandInModel(answer=Talker("submit_verdict", VERDICT)) as server,
        model_on(server, way) as model,
    ):
        result = await JudgeGroup(llm=model, judges=[judge() for judge in JUDGES]).evaluate(chat)
        assert len(result.judgments) == len(JUDGES)
        assert result.all_passed
        assert result.judgments["accuracy"].reasoning == VERDICT["reasoning"]
        assert json.loads(server.chats[0].body).get("options", {}).get("temperature", 0.0) == 0.0


@ways
async def test_what_an_agent_said_is_judged(way: str) -> None:
    judged = {"success": True, "reason": "It greets."}
    async with (
        StandInModel(["Hello there."]) as speaking,
        StandInModel(answer=Talker("check_intent", judged)) as judging,
        model_on(speaking, "native") as speaker,
        model_on(judging, way) as judge,
        AgentSession[None](llm=speaker) as session,
    ):
        await session.start(Agent(instructions="You help."))
        result = await session.run(user_input="hello")
        await result.expect.next_event().is_message().judge(judge, intent="greets the person")


class Kelly(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="You are Kelly.")

    @function_tool
    async def lookup_weather(self, location: str) -> str:
        """The weather somewhere."""
        return f"sunny in {location}"

    @function_tool
    async def talk_to_echo(self, context: RunContext[Any]) -> Agent:
        """Let the person speak with Echo."""
        await self.session.say("One moment.")
        return Echo()


class Echo(CaalAgent):
    """The conversation goes on with an agent of ours."""

    def __init__(self) -> None:
        super().__init__(settings=plain_settings(), tiers={}, warm=False)

    async def on_enter(self) -> None:
        self.session.generate_reply(user_input="say hello")


async def test_a_run_with_a_call_and_a_hand_over_has_the_events_that_livekit_expects() -> None:
    async with (
        StandInModel(
            [Call("lookup_weather", {"location": "Paris"})],
            ["It is sunny."],
            [Call("talk_to_echo")],
            ["Hello, I am Echo."],
        ) as server,
        model_on(server, "native") as model,
        AgentSession[None](llm=model) as session,
    ):
        await session.start(Kelly())
        expect = (await session.run(user_input="weather in Paris?")).expect
        expect.next_event().is_function_call(name="lookup_weather", arguments={"location": "Paris"})
        expect.next_event().is_function_call_output(output="sunny in Paris")
        expect.next_event().is_message(role="assistant")
        expect.no_more_events()

        expect = (await session.run(user_input="may I speak to Echo?")).expect
        expect.next_event().is_function_call(name="talk_to_echo")
        expect.next_event().is_message(role="assistant")
        expect.next_event().is_function_call_output()
        expect.next_event().is_agent_handoff(new_agent_type=Echo)
        expect.next_event().is_message(role="assistant")
        expect.no_more_events()


async def test_metrics_name_the_model_and_count_what_every_request_took() -> None:
    collected: list[LLMMetrics] = []

    @function_tool
    async def get_time() -> str:
        """The time."""
        return "noon"

    async with (
        StandInModel(answer=Talker("get_time", {})) as server,
        model_on(server, "native") as model,
    ):
        model.on("metrics_collected", collected.append)
        chat = llm.ChatContext.empty()
        chat.add_message(role="user", content="hello")
        await model.chat(chat_ctx=chat, tools=[get_time], tool_choice="required").collect()
        (metrics,) = collected
        assert len(server.chats) == 2
        assert metrics.prompt_tokens == 2 * PROMPT_TOKENS
        assert metrics.total_tokens == metrics.prompt_tokens + metrics.completion_tokens
        assert 0 < metrics.ttft <= metrics.duration
        assert metrics.label == model.label == "caal_node.models.llm.LLM"
        assert metrics.metadata is not None
        named = (metrics.metadata.model_name, metrics.metadata.model_provider)
        assert named == (model.model, model.provider) == ("stand-in", "ollama")


async def test_prewarming_asks_once_and_ends_with_the_model() -> None:
    async with StandInModel([Call("get_weather", {"city": "Oslo"})]) as server:
        model = LLM(server.model, "ollama", server.url, native_tools=None)
        model.prewarm()
        model.prewarm()
        while not server.chats:
            await server.request_arrived()
        await model.find_strategy()  # what was found out is not asked again
        await model.aclose()
        assert len(server.chats) == 1
        assert model.retry_policy.native
