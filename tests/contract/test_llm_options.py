"""What LiveKit's `chat` can ask of a model holds for ours, whichever way the model is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from livekit.agents import (
    Agent,
    AgentSession,
    APIConnectOptions,
    APIError,
    APITimeoutError,
    llm,
)
from livekit.agents.llm import ChatContext, CollectedResponse, Tool, ToolChoice, function_tool
from livekit.agents.utils import aio
from livekit.plugins import openai

from caal_node import LLM, CaalAgent
from caal_node.core.events import Spoken, ToolCallStarted
from caal_node.models.backends.base import LearnsDialect
from tests.fixtures_models import OllamaModels
from tests.stand_ins.conversation import conversation
from tests.stand_ins.stand_in_model import Asked, Call, Cut, Hang, Refuse, Reply, StandInModel, Step

ONCE: Final = APIConnectOptions(max_retry=0)
IN_TIME: Final = APIConnectOptions(max_retry=0, timeout=0.5)
NAMED: Final[ToolChoice] = {"type": "function", "function": {"name": "set_timer"}}
REAL_S: Final = 300.0
"""For each piece of a real small model's reply, on a machine that does much else."""
REAL_TOKENS: Final = 120
SPEECH: Final = "I would rather talk."
MUSIC: Final = Call("play_music", {"query": "jazz"})
TIMER: Final = Call("set_timer", {"minutes": 5})


@function_tool
async def set_timer(minutes: int) -> str:
    """Start a timer."""
    return f"{minutes}"


@function_tool
async def play_music(query: str) -> str:
    """Play music."""
    return query


TOOLS: Final[list[Tool]] = [set_timer, play_music]

ways = pytest.mark.parametrize("way", ["ollama", "openai", "json", "text", "completions", "over"])
"""Each way of asking: native calls on two APIs, one JSON reply, the text protocol on two endpoints,
and another LiveKit plugin underneath."""
NATIVE: Final = ("ollama", "openai", "over")


@asynccontextmanager
async def asked_by(way: str, server: StandInModel) -> AsyncIterator[LLM]:
    other = openai.LLM(model=server.model, base_url=server.openai_url, api_key="none")
    match way:
        case "over":
            model = LLM.over(other)
        case "ollama" | "json":
            model = LLM(server.model, "ollama", server.url, native_tools=way == "ollama")
        case "completions":
            model = LLM(server.model, "completions", server.openai_url, native_tools=False)
        case _:
            model = LLM(server.model, "openai", server.openai_url, native_tools=way == "openai")
    if isinstance(model.backend, LearnsDialect):
        model.backend.dialect.schema_form = "none"  # It has been found out that it holds to none.
    async with other, model:
        yield model


def written(way: str, *calls: Call) -> Reply:
    """`calls` as a model writes them that is asked in this way."""
    if way in NATIVE:
        return calls
    rows = [{"name": call.name, "arguments": call.arguments} for call in calls]
    if way == "json":
        return [json.dumps({"calls": rows})]
    return ["\n".join(json.dumps({"type": "tool_call", **row}) for row in rows)]


def said(way: str) -> Reply:
    return [json.dumps({"say": SPEECH})] if way == "json" else [SPEECH]


async def reply_of(
    model: LLM, words: str = "hello", options: APIConnectOptions = ONCE, **given: Any
) -> CollectedResponse:
    chat_ctx = ChatContext.empty()
    chat_ctx.add_message(role="user", content=words)
    return await model.chat(chat_ctx=chat_ctx, tools=TOOLS, conn_options=options, **given).collect()


def called(reply: CollectedResponse) -> list[str]:
    return [call.name for call in reply.tool_calls]


def in_words(body: Mapping[str, Any]) -> str:
    return json.dumps(body.get("messages") or body.get("prompt"))


# -- tool_choice ---------------------------------------------------------------------------------


@ways
async def test_required_is_met_although_the_model_speaks_first(way: str) -> None:
    def answer(asked: Asked) -> Reply:
        body = asked.json
        if len(server.chats) == 1:
            return said(way)
        if "format" in body:  # Ollama holds the reply to this schema, which has no speech in it.
            assert "say" not in json.dumps(body["format"])
            return written("json", MUSIC)
        # No server of these holds a reply to a schema: the prompt's end says what is wanted.
        assert "has to be a tool call" in in_words(body)
        return written("text", MUSIC)

    async with StandInModel(answer=answer) as server, asked_by(way, server) as model:
        reply = await reply_of(model, tool_choice="required")
        assert called(reply) == ["play_music"]
        assert reply.text == ""  # what was said in place of the call is not heard
        assert len(server.chats) == 2
        assert model.retry_policy.native == (way in NATIVE)  # that says nothing of its own calls


@ways
async def test_a_reply_that_must_call_and_never_does_is_an_error(way: str) -> None:
    async with StandInModel(answer=lambda _: said(way)) as server, asked_by(way, server) as model:
        with pytest.raises(APIError, match="no call"):
            await reply_of(model, tool_choice="required")
        assert len(server.chats) <= 4


@ways
async def test_a_named_tool_is_the_only_one_that_is_offered(way: str) -> None:
    async with (
        StandInModel(written(way, TIMER)) as server,
        asked_by(way, server) as model,
    ):
        assert called(await reply_of(model, tool_choice=NAMED)) == ["set_timer"]
        (request,) = server.chats
        assert b"set_timer" in request.body
        assert b"play_music" not in request.body


@pytest.mark.parametrize("way", ["openai", "over"])
async def test_a_server_that_has_tool_choice_is_told(way: str) -> None:
    async with StandInModel(written(way, TIMER)) as server, asked_by(way, server) as model:
        await reply_of(model, tool_choice="required", parallel_tool_calls=False)
        body = server.chats[0].json
        assert body["tool_choice"] == "required"
        assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize("field", ["tool_choice", "parallel_tool_calls"])
async def test_a_server_that_refuses_such_a_field_is_asked_without_it_and_held_to_it(
    field: str,
) -> None:
    def answer(asked: Asked) -> Reply:
        if field in asked.json:
            return [Refuse(400, f"'{field}' is not supported")]
        return [TIMER, MUSIC]

    async with StandInModel(answer=answer) as server, asked_by("openai", server) as model:
        for _ in range(2):
            reply = await reply_of(model, tool_choice="required", parallel_tool_calls=False)
            assert called(reply) == ["set_timer"]
        assert len(server.chats) == 3  # it is refused once
        assert model.retry_policy.native


@ways
async def test_none_offers_no_calls_and_makes_none(way: str) -> None:
    async with (
        StandInModel(written(way, MUSIC), [SPEECH], [SPEECH], [SPEECH]) as server,
        asked_by(way, server) as model,
    ):
        reply = await reply_of(model, tool_choice="none")
        assert called(reply) == []
        assert all(chat.json.get("tools") is None for chat in server.chats)


@ways
async def test_auto_leaves_the_model_its_choice(way: str) -> None:
    async with StandInModel(said(way)) as server, asked_by(way, server) as model:
        reply = await reply_of(model, tool_choice="auto")
        assert (called(reply), reply.text) == ([], SPEECH)
        assert "tool_choice" not in server.chats[0].json or way == "over"


async def test_a_name_that_no_tool_has_is_refused_with_those_there_are() -> None:
    async with StandInModel() as server, asked_by("ollama", server) as model:
        gone: ToolChoice = {"type": "function", "function": {"name": "gone"}}
        with pytest.raises(ValueError, match=r"no tool 'gone'; there are: set_timer, play_music"):
            await reply_of(model, tool_choice=gone)


async def test_required_without_tools_means_nothing() -> None:
    async with StandInModel([SPEECH]) as server, asked_by("openai", server) as model:
        stream = model.chat(chat_ctx=ChatContext.empty(), tool_choice="required")
        assert (await stream.collect()).text == SPEECH
        assert "tool_choice" not in server.chats[0].json


# -- parallel_tool_calls -------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("parallel", [False, True])
async def test_one_call_at_a_time_is_one_call(way: str, parallel: bool) -> None:
    both = written(way, TIMER, MUSIC)
    async with StandInModel(both) as server, asked_by(way, server) as model:
        words = "five minutes, and play some jazz"
        reply = await reply_of(model, words, parallel_tool_calls=parallel)
        assert called(reply) == (["set_timer", "play_music"] if parallel else ["set_timer"])


async def test_the_schema_has_room_for_one_call_where_one_is_allowed() -> None:
    async with StandInModel(written("json", TIMER)) as server, asked_by("json", server) as model:
        await reply_of(model, "five minutes", parallel_tool_calls=False)
        calls = server.chats[0].json["format"]["anyOf"][0]["properties"]["calls"]
        assert calls["maxItems"] == 1


# -- extra_kwargs --------------------------------------------------------------------------------


@ways
async def test_extra_kwargs_reach_the_server(way: str) -> None:
    async with StandInModel(said(way)) as server, asked_by(way, server) as model:
        await reply_of(
            model,
            extra_kwargs={"temperature": 0.7, "top_p": 0.5, "seed": 3, "max_tokens": 40},
        )
        body = server.chats[0].json
        sampling = body.get("options", body)
        assert {name: sampling[name] for name in ("temperature", "top_p", "seed")} == {
            "temperature": 0.7,
            "top_p": 0.5,
            "seed": 3,
        }
        # Whoever wraps a plugin gives it its limits.
        limit = sampling.get("num_predict") or sampling.get("max_tokens")
        assert limit == (None if way == "over" else 40)


async def test_what_the_constructor_and_update_options_give_holds_until_chat_says_otherwise() -> (
    None
):
    async with StandInModel(answer=lambda _: [SPEECH]) as server:
        model = LLM(
            server.model,
            "openai",
            server.openai_url,
            native_tools=True,
            tool_choice="none",
            extra_kwargs={"seed": 1},
        )
        async with model:
            await reply_of(model)
            model.update_options(temperature=1.5, max_tokens=9, tool_choice="auto")
            await reply_of(model, extra_kwargs={"seed": 2})
            model.update_options(extra_kwargs={})
            await reply_of(model)
        first, second, third = (chat.json for chat in server.chats)
        assert ("tools" in first, first["seed"]) == (False, 1)
        assert ("tools" in second, second["seed"]) == (True, 2)
        assert (second["temperature"], second["max_tokens"]) == (1.5, 9)
        assert "seed" not in third


async def test_what_no_server_can_be_sent_is_refused() -> None:
    async with StandInModel() as server, asked_by("openai", server) as model:
        with pytest.raises(ValueError, match="extra_headers"):
            await reply_of(model, extra_kwargs={"extra_headers": {"X": "1"}})


# -- conn_options --------------------------------------------------------------------------------


@ways
async def test_a_silent_server_is_given_up_after_the_time_out(way: str) -> None:
    async with StandInModel(answer=lambda _: [Hang()]) as server, asked_by(way, server) as model:
        started = asyncio.get_running_loop().time()
        with pytest.raises(APITimeoutError):
            await reply_of(model, options=IN_TIME)
        assert asyncio.get_running_loop().time() - started < 3


async def test_a_reply_that_stops_is_given_up_too() -> None:
    async with (
        StandInModel(answer=lambda _: ["I would", Hang()]) as server,
        asked_by("openai", server) as model,
    ):
        with pytest.raises(APITimeoutError):
            await reply_of(model, options=IN_TIME)


async def test_finding_out_how_a_model_is_asked_is_within_the_time_out() -> None:
    async with (
        StandInModel(answer=lambda _: [Hang()]) as server,
        LLM(server.model, "ollama", server.url, native_tools=None) as model,
    ):
        with pytest.raises(APITimeoutError):
            await reply_of(model, options=IN_TIME)


@pytest.mark.parametrize(("status", "requests"), [(503, 3), (429, 3), (404, 1), (401, 1)])
async def test_retries_are_those_of_livekit(status: int, requests: int) -> None:
    refusal: Reply = [Refuse(status, "not now")]
    async with (
        StandInModel(answer=lambda _: refusal) as server,
        asked_by("openai", server) as model,
    ):
        twice = APIConnectOptions(max_retry=2, retry_interval=0.01)
        with pytest.raises(APIError):
            await reply_of(model, options=twice)
        assert len(server.chats) == requests


async def test_a_time_out_is_tried_again_as_often_as_was_asked() -> None:
    async with (
        StandInModel([Hang()], ["Here I am."]) as server,
        asked_by("openai", server) as model,
    ):
        options = APIConnectOptions(max_retry=1, retry_interval=0.01, timeout=0.5)
        assert (await reply_of(model, options=options)).text == "Here I am."


# -- calls that cannot be made -------------------------------------------------------------------

LOUDER: Final = Call("set_volume", {"volume": 30})


@ways
async def test_a_call_of_no_tool_in_every_way_of_asking_is_livekits_to_answer_and_no_error(
    way: str,
) -> None:
    def answer(_: Asked) -> Reply:
        return [json.dumps({"name": LOUDER.name, "arguments": LOUDER.arguments})]

    async with StandInModel(answer=answer) as server, asked_by(way, server) as model:
        reply = await reply_of(model, "set the volume to 30")
        assert called(reply) == ["set_volume"]
        assert reply.text == ""
        assert len(server.chats) <= 4


async def test_an_ordinary_agent_goes_on_after_a_call_of_no_tool() -> None:
    async with (
        StandInModel(*[[LOUDER]] * 4, answer=lambda _: ["I have no such tool."]) as server,
        asked_by("ollama", server) as model,
        AgentSession[None](llm=model) as session,
    ):
        await session.start(Agent(instructions="Be brief.", tools=[*TOOLS]))
        result = await session.run(user_input="set the volume to 30")
        said = [event.item for event in result.events if event.type == "message"]
        assert [item.text_content for item in said] == ["I have no such tool."]


# -- LiveKit's FallbackAdapter -------------------------------------------------------------------

NOBODY: Final = "http://127.0.0.1:9/v1"
SLACK_S: Final = 0.5
"""By how much a busy machine may make one of two like runs longer."""
TRIES: Final = 3


async def fallen_back_after(first: llm.LLM, second: llm.LLM) -> float:
    """Seconds until the second of two models has answered."""
    adapter = llm.FallbackAdapter([first, second], attempt_timeout=1)
    started = asyncio.get_running_loop().time()
    chat_ctx = ChatContext.empty()
    chat_ctx.add_message(role="user", content="hello")
    async with first, second:
        reply = await adapter.chat(chat_ctx=chat_ctx, tools=TOOLS).collect()
        took = asyncio.get_running_loop().time() - started
        assert reply.text == "Good morning."
        recovering = [status.recovering_task for status in adapter._status]  # pyright: ignore[reportPrivateUsage]
        await aio.cancel_and_wait(*filter(None, recovering))
    return took


@pytest.mark.parametrize(
    "trouble",
    [None, Hang(), Refuse(500, "broken"), Refuse(503, "busy"), Refuse(429, "wait"), Cut()],
    ids=["nobody there", "silent", "500", "503", "429", "hangs up"],
)
async def test_livekits_fallback_goes_on_as_fast_as_with_its_own_plugin(
    trouble: Step | None,
) -> None:
    async with (
        StandInModel(answer=lambda _: [trouble or Hang()]) as broken,
        StandInModel(answer=lambda _: ["Good morning."]) as well,
    ):
        address = broken.openai_url if trouble else NOBODY

        def ours(url: str) -> llm.LLM:
            return LLM("stand-in", "openai", url)

        def theirs(url: str) -> llm.LLM:
            return openai.LLM(model="stand-in", base_url=url, api_key="none")

        for _ in range(TRIES):  # another process may hold one of them up
            plain = await fallen_back_after(theirs(address), theirs(well.openai_url))
            beside = await fallen_back_after(ours(address), ours(well.openai_url))
            print(f"LiveKit's plugin {plain:.3f} s, ours {beside:.3f} s")
            if beside < plain + SLACK_S:
                return
    pytest.fail(f"never as fast in {TRIES} tries")


# -- in an agent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", NAMED])
async def test_an_agents_reply_can_be_made_to_call(choice: ToolChoice) -> None:
    class Kitchen(CaalAgent):
        @function_tool
        async def set_timer(self, minutes: int) -> str:
            """Start a timer."""
            return f"{minutes} minutes"

    async with (
        StandInModel([SPEECH], written("json", TIMER), ["It runs."]) as server,
        conversation(server, agent=Kitchen) as talk,
    ):
        await talk.session.generate_reply(user_input="tea", tool_choice=choice)
        assert [event.tool for event in talk.events_of(ToolCallStarted)] == ["set_timer"]
        assert [event.text for event in talk.events_of(Spoken)] == ["It runs."]
        assert "format" not in server.chats[2].json  # with the result it may speak again


# -- on real servers -----------------------------------------------------------------------------


async def made_to_call(model: LLM) -> None:
    """Asks for a call where a small model would only talk, and for one tool where another fits."""
    options = APIConnectOptions(max_retry=0, timeout=REAL_S)
    async with model:
        greeted = await reply_of(model, "hello, how are you?", options, tool_choice="required")
        assert (len(greeted.tool_calls) > 0, greeted.text) == (True, "")
        named = await reply_of(model, "play some jazz", options, tool_choice=NAMED)
        assert set(called(named)) == {"set_timer"}


@pytest.mark.ollama
async def test_a_real_ollama_calls_where_it_must(ollama: OllamaModels) -> None:
    await made_to_call(LLM(ollama.with_tools, "ollama", ollama.url, max_tokens=REAL_TOKENS))


@pytest.mark.model
async def test_a_real_llama_cpp_calls_where_it_must(llama: str) -> None:
    await made_to_call(LLM("small", "openai", f"{llama}/v1", max_tokens=REAL_TOKENS))
