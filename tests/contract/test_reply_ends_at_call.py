"""A reply ends at its call: what a model writes behind one is neither heard, believed nor paid for.

Every reply here would go on for ever behind its call, so a turn ends only if the node ends it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, llm

from caal_node.models.plugin_reply import as_heard
from caal_node.models.question import Question
from tests.stand_ins.conversation import conversation
from tests.stand_ins.stand_in_model import Call, End, Hang, Raw, StandInModel

WEATHER = Call("get_weather", {"city": "Paris"}, id="c1")
PARIS = ("get_weather", {"city": "Paris"})
STREAMED = {"CAAL_DETECTION": "streamed"}
IN_TEXT = {
    "jsonl": '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}',
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
    "react": 'Action: get_weather\nAction Input: {"city": "Paris"}',
    "unknown": '<tool_call>{"name": "sing_a_song", "arguments": {"of": "Paris"}}</tool_call>',
}
INVENTED = {
    "an answer": "\nThere is hail today.",
    "the protocol's own": '\n{"type": "tool_observation", "name": "get_weather", "result": "hail"}',
    "the protocol's own, as XML": '\n<tool_observation name="get_weather" kind="result">\nhail',
    "a result's markers": "\n<tool_response>\n{",
    "an observation": "\nObservation: there is hail today.\n",
    "a final answer": '\n{"type": "final_answer", "text": "There is hail today',
    "another's turn": "\n<|im_start|>user\n",
}


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_a_structured_call_ends_the_request_at_the_first_word_behind_it(api: str) -> None:
    async with (
        StandInModel(
            ["One moment. ", WEATHER, "There is hail today.", Hang()], ["It is 21."]
        ) as server,
        conversation(server, api=api, env=STREAMED) as talk,
    ):
        async with asyncio.timeout(10):
            assert await talk.ask("weather in Paris?") == "One moment. It is 21."
            await server.client_gone()
        assert talk.tier.calls == [PARIS]
        assert "hail" not in server.chats[1].body.decode()


@pytest.mark.parametrize("invented", INVENTED.values(), ids=INVENTED)
@pytest.mark.parametrize("form", ["jsonl", "hermes", "react"])
@pytest.mark.parametrize("env", [{}, STREAMED], ids=["complete", "streamed"])
async def test_a_call_in_text_ends_the_request_whatever_was_made_up_behind_it(
    form: str, invented: str, env: dict[str, str]
) -> None:
    async with (
        StandInModel([IN_TEXT[form] + invented, Hang()], ["It is 21."]) as server,
        conversation(server, native_tools=False, tool_calls="jsonl", env=env) as talk,
    ):
        async with asyncio.timeout(10):
            assert await talk.ask("weather in Paris?") == "It is 21."
            await server.client_gone()
        assert talk.tier.calls == [PARIS]
        assert "hail" not in server.chats[1].body.decode()


async def test_all_calls_of_a_reply_are_made() -> None:
    rome = Call("get_weather", {"city": "Rome"}, id="c2")
    async with (
        StandInModel([WEATHER, "\n\n", rome, " Both are sunny.", Hang()], ["21 and 24."]) as server,
        conversation(server, env=STREAMED) as talk,
    ):
        async with asyncio.timeout(10):
            assert await talk.ask("weather in Paris and Rome?") == "21 and 24."
        assert talk.tier.calls == [PARIS, ("get_weather", {"city": "Rome"})]


async def test_what_stands_behind_a_call_that_cannot_be_made_is_not_heard_either() -> None:
    lie = [IN_TEXT["unknown"] + " It is done.", Hang()]
    async with (
        StandInModel(lie, [WEATHER], ["It is 21."]) as server,
        conversation(server, env=STREAMED) as talk,
    ):
        async with asyncio.timeout(10):
            assert await talk.ask("weather in Paris?") == "It is 21."
        assert talk.tier.calls == [PARIS]


async def test_another_livekit_model_is_held_to_it_too() -> None:
    class Scripted(llm.LLMStream):
        async def _run(self) -> None:
            made = llm.FunctionToolCall(name="f", arguments="{}", call_id="c1")
            for said, calls in (("One moment.", []), ("", [made]), ("It is done.", [])):
                delta = llm.ChoiceDelta(role="assistant", content=said, tool_calls=calls)
                self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))
            await asyncio.Event().wait()

    class Model(llm.LLM[Any]):
        def chat(self, **given: Any) -> llm.LLMStream:
            raise NotImplementedError

    options = DEFAULT_API_CONNECT_OPTIONS
    stream = Scripted(Model(), chat_ctx=llm.ChatContext.empty(), tools=[], conn_options=options)
    said, calls = "", list[str]()
    async with asyncio.timeout(10), as_heard(stream, Question(())) as chunks:
        async for chunk in chunks:
            assert chunk.delta is not None
            said += chunk.delta.content or ""
            calls += [call.name for call in chunk.delta.tool_calls]
    assert (said, calls) == ("One moment.", ["f"])


# -- a server on /v1 that runs calls by itself, and says so nowhere ------------------------------


def _tool_message(content: str) -> Raw:
    delta = {"role": "tool", "tool_call_id": "c1", "content": content}
    return Raw(f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode())


def _finish(reason: str) -> Raw:
    choice: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": reason}
    return Raw(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


@pytest.mark.parametrize(
    "reply",
    [
        [WEATHER, _finish("tool_calls"), "It is 21.", End()],
        [WEATHER, _tool_message("21 C"), "It is 21.", End()],
        [WEATHER, _finish("tool_calls"), _tool_message("21 C"), "It is 21.", End()],
    ],
    ids=["words behind the end", "a tool's message", "both"],
)
async def test_a_silent_run_is_seen_by_what_no_model_can_write(reply: list[Any]) -> None:
    async with (
        StandInModel(reply, reply) as server,
        conversation(server, api="openai", env=STREAMED) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is 21."
        assert await talk.ask("and now?") == "It is 21."
        assert talk.tier.calls == []
        assert len(server.chats) == 2


@pytest.mark.parametrize("env", [{}, STREAMED], ids=["complete", "streamed"])
async def test_a_setting_settles_what_cannot_be_seen(env: dict[str, str]) -> None:
    async with (
        StandInModel([WEATHER, "It is 21.", End()], [WEATHER, End()], ["It is 22."]) as server,
        conversation(server, api="openai", env=env, tool_calls="server") as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is 21."
        assert talk.tier.calls == []
        assert await talk.ask("and now?") == "It is 22."  # This call is ours to run.
        assert talk.tier.calls == [PARIS]
