"""Each signal of a strategy that fails, over the real wire, and what is tried after it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from caal_node.context.token_estimate import PromptTools
from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelReplyCut,
    ModelReplyData,
    ModelReplyError,
    ModelSilent,
)
from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.core.prompt_files import sentence
from caal_node.models.backends.base import ReplyDone, ServerCall, ServerResult
from caal_node.models.model_connection import ModelConnection
from caal_node.models.model_settings import make_backend
from caal_node.models.question import Question
from caal_node.models.retry_policy import TextStyle
from caal_node.reply_parser import Event, Reply, TextDelta, summarise
from tests.stand_ins.stand_in_model import (
    PROMPT_TOKENS,
    Break,
    Call,
    Cut,
    End,
    Hang,
    Raw,
    Refuse,
    StandInModel,
    Vanish,
    Wait,
)

WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
QUESTION: Final = Question(
    (SystemItem("You help."), UserItem("what is the weather in Paris")),
    PromptTools((WEATHER,)),
    stream=False,
)
CALL: Final = Call("get_weather", {"city": "Paris"})
IN_ONE: Final = '{"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}'
IN_LINES: Final = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Paris"}}'
PEG: Final = "The model produced output that does not match the expected peg-native format: {"

_NO_EVENTS: Final = (ReplyDone, ServerCall, ServerResult)

apis = pytest.mark.parametrize("api", ["ollama", "openai"])


@asynccontextmanager
async def connected(
    server: StandInModel, api: Any, style: TextStyle = "auto", *, native: bool = True
) -> AsyncGenerator[ModelConnection]:
    url = server.url if api == "ollama" else server.openai_url
    connection = ModelConnection(make_backend(server.model, api, url, None), native, style)
    try:
        yield connection
    finally:
        await connection.aclose()


async def asked(model: ModelConnection, question: Question = QUESTION) -> Reply:
    return summarise(await events(model, question))


async def events(model: ModelConnection, question: Question) -> list[Event]:
    async with aclosing(model.ask(question)) as parts:
        return [part async for part in parts if not isinstance(part, _NO_EVENTS)]


def bodies(server: StandInModel) -> list[Any]:
    return [chat.json for chat in server.chats]


def named(reply: Reply) -> list[str]:
    return [call.name for call in reply.calls]


TRANSIENT = {
    "empty": [End()],
    "without_its_end": ["Some words", Vanish()],
    "error_in_mid_stream": ["Some words", Break("GGML_ASSERT(false)")],
}


class TestOnceMore:
    @apis
    @pytest.mark.parametrize("signal", sorted(TRANSIENT))
    async def test_what_may_pass_is_asked_once_more_the_same_way(
        self, api: str, signal: str
    ) -> None:
        async with (
            StandInModel(TRANSIENT[signal], [CALL], llama=True) as server,
            connected(server, api) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            first, again = bodies(server)
            assert first == again
            assert model.retry_policy.native, "it was mended"
            assert sum(model.retry_policy.stats.signals.values()) == 1
            assert model.retry_policy.stats.steps == {"once_more": 1}

    @apis
    async def test_a_streamed_reply_that_broke_off_unspoken_is_asked_once_more(
        self, api: str
    ) -> None:
        async with (
            StandInModel([Break("out of memory")], ["Sunny."], llama=True) as server,
            connected(server, api) as model,
        ):
            assert (await asked(model, replace(QUESTION, stream=True))).text == "Sunny."
            assert model.retry_policy.stats.signals["broke_off"] == 1

    @apis
    async def test_what_was_spoken_is_never_asked_for_twice(self, api: str) -> None:
        async with (
            StandInModel(["It is sunny in ", Vanish()], ["No."], llama=True) as server,
            connected(server, api) as model,
        ):
            heard: list[str] = []

            async def listen() -> None:
                async with aclosing(model.ask(replace(QUESTION, stream=True))) as parts:
                    async for part in parts:
                        if isinstance(part, TextDelta):
                            heard.append(part.text)

            with pytest.raises(ModelReplyError):
                await listen()
            assert "".join(heard).startswith("It is sunny")
            assert len(server.chats) == 1

    @apis
    async def test_an_unknown_name_is_told_with_what_is_valid(self, api: str) -> None:
        wrong = Call("book_hotel", {"city": "Paris"})
        async with (
            StandInModel([wrong], [CALL], llama=True) as server,
            connected(server, api) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            first, again = (body["messages"] for body in bodies(server))
            assert again[: len(first)] == first, "the repair stands at the prompt's end"
            told = json.loads(again[-1]["content"])
            assert told == {"error": "unknown_tool", "valid": ["get_weather"]}
            assert again[-1]["role"] == "tool"

    async def test_a_broken_call_is_told_in_the_text_protocol_too(self) -> None:
        broken = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "Par'
        async with (
            StandInModel([broken], [IN_LINES], capabilities=[]) as server,
            connected(server, "ollama", "jsonl", native=False) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            told = json.loads(bodies(server)[1]["messages"][-1]["content"])
            assert told["type"] == "tool_observation"
            assert told["error"]["error"] == "invalid_call"


CUT_TEXT: Final = '<tool_call>{"name": "get_weather", "arguments": {"city": "Par'
CUT_CALL: Final = replace(CALL, sent=12)
LIMITED: Final = replace(QUESTION, max_tokens=12)
"""A `Call` of the stand-in has 12 tokens."""
streamings = pytest.mark.parametrize("stream", [True, False])


def limits(server: StandInModel) -> list[int]:
    """The most tokens of each reply that was asked for."""
    return [body.get("max_tokens") or body["options"]["num_predict"] for body in bodies(server)]


class TestCutReplies:
    @apis
    @streamings
    async def test_a_call_that_was_cut_is_asked_for_once_more_with_more_room(
        self, api: str, stream: bool
    ) -> None:
        async with (
            StandInModel([CUT_TEXT, End("length")], [CALL], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(LIMITED, stream=stream))
            assert named(reply) == ["get_weather"]
            assert reply.problems == []
            assert limits(server) == [12, 24]
            first, again = bodies(server)
            assert again["messages"] == first["messages"]
            assert model.retry_policy.native
            assert model.retry_policy.stats.steps == {"more_room": 1}

    @pytest.mark.parametrize("style", ["auto", "jsonl", "markdown-json", "xml"])
    async def test_a_call_that_was_asked_for_by_text_gets_more_room_as_well(
        self, style: Any
    ) -> None:
        async with (
            StandInModel([CUT_TEXT, End("length")], [IN_LINES], capabilities=[]) as server,
            connected(server, "ollama", style, native=False) as model,
        ):
            reply = await asked(model, LIMITED)
            assert (named(reply), reply.problems) == (["get_weather"], [])
            assert limits(server) == [12, 24]

    @streamings
    @pytest.mark.parametrize("sent", [0, 1, 12])
    @pytest.mark.parametrize("reason", ["length", "tool_calls", "stop"])
    async def test_a_structured_call_that_was_cut_is_none_whatever_the_reason(
        self, stream: bool, sent: int, reason: str
    ) -> None:
        cut = replace(CALL, sent=sent)
        async with (
            StandInModel([cut, End(reason)], [CALL], llama=True) as server,
            connected(server, "openai") as model,
        ):
            reply = await asked(model, replace(LIMITED, stream=stream))
            assert [call.arguments for call in reply.calls] == [{"city": "Paris"}]
            assert limits(server) == [12, 24]

    @apis
    async def test_a_reply_that_ended_before_it_held_anything_gets_more_room(
        self, api: str
    ) -> None:
        async with (
            StandInModel([End("length")], ["It is sunny."], llama=True) as server,
            connected(server, api) as model,
        ):
            assert (await asked(model, LIMITED)).text == "It is sunny."
            assert limits(server) == [12, 24]

    @apis
    async def test_a_reply_that_is_cut_twice_is_an_error_that_can_be_said(self, api: str) -> None:
        cut = [CUT_TEXT, End("length")]
        async with (
            StandInModel(cut, cut, llama=True) as server,
            connected(server, api) as model,
        ):
            with pytest.raises(ModelReplyCut) as failed:
                await asked(model, LIMITED)
            assert "too long" in sentence(failed.value.spoken)
            assert len(server.chats) == 2

    @apis
    async def test_what_was_said_before_the_cut_is_said_once_and_the_call_follows(
        self, api: str
    ) -> None:
        async with (
            StandInModel(["One moment. ", CUT_TEXT, End("length")], [CALL], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(LIMITED, stream=True))
            assert (reply.text.strip(), named(reply)) == ("One moment.", ["get_weather"])
            assert reply.problems == []
            assert limits(server) == [12, 24]
            again = bodies(server)[1]["messages"]
            assert "One moment." in {message.get("content") for message in again}
            assert "cut off" in again[-1]["content"]

    @apis
    async def test_cut_twice_behind_speech_it_is_said_there(self, api: str) -> None:
        cut = ["One moment. ", CUT_TEXT, End("length")]
        async with (
            StandInModel(cut, [CUT_TEXT, End("length")], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(LIMITED, stream=True))
            assert reply.calls == []
            assert reply.problems == []
            assert reply.text.split() == f"One moment. {sentence('model_cut_off')}".split()

    async def test_a_call_before_the_one_that_was_cut_is_made_and_the_model_is_told(self) -> None:
        reply = [CALL, replace(CUT_CALL, arguments={"city": "Rome"}), End("length")]
        async with (
            StandInModel(reply, llama=True) as server,
            connected(server, "openai") as model,
        ):
            found = await asked(model, replace(LIMITED, stream=True))
            assert [call.arguments for call in found.calls] == [{"city": "Paris"}]
            assert len(found.problems) == 1
            assert len(server.chats) == 1

    @apis
    @streamings
    async def test_speech_that_was_cut_is_spoken_as_it_is(self, api: str, stream: bool) -> None:
        async with (
            StandInModel(["It is sunny and", End("length")], llama=True) as server,
            connected(server, api) as model,
        ):
            assert (await asked(model, replace(LIMITED, stream=stream))).text == "It is sunny and"
            assert len(server.chats) == 1

    @apis
    async def test_there_is_no_more_room_than_the_context_has(self, api: str) -> None:
        server = StandInModel(
            [CUT_TEXT, End("length")],
            [CALL],
            llama=True,
            context_tokens=PROMPT_TOKENS + 20,
        )
        async with server, connected(server, api) as model:
            assert named(await asked(model, LIMITED)) == ["get_weather"]
            assert limits(server) == [12, 20]

    async def test_a_full_context_is_said_at_once(self) -> None:
        server = StandInModel(
            [CUT_CALL, End("length")], llama=True, context_tokens=PROMPT_TOKENS + 12
        )
        async with server, connected(server, "openai") as model:
            with pytest.raises(ModelReplyCut):
                await asked(model, LIMITED)
            assert len(server.chats) == 1

    @apis
    async def test_livekits_own_agent_gets_it_as_words(self, api: str) -> None:
        cut = [CUT_TEXT, End("length")]
        async with (
            StandInModel(cut, cut, llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(LIMITED, tells_unmade=True))
            assert (reply.text, reply.problems) == (sentence("model_cut_off"), [])


DATA: Final = '{"temp": 21, "sky": "blue"}'


class TestData:
    @apis
    @streamings
    async def test_it_is_asked_for_once_more_in_words(self, api: str, stream: bool) -> None:
        async with (
            StandInModel([DATA], ["It is warm."], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(QUESTION, stream=stream))
            assert (reply.text.strip(), reply.problems) == ("It is warm.", [])
            assert "plain words" in bodies(server)[1]["messages"][-1]["content"]
            assert len(server.chats) == 2

    @apis
    async def test_a_call_that_no_reader_of_streams_knows_is_made_at_once(self, api: str) -> None:
        async with (
            StandInModel(['{tool: "get_weather", city: "Paris"}'], llama=True) as server,
            connected(server, api) as model,
        ):
            assert named(await asked(model, QUESTION)) == ["get_weather"]
            assert len(server.chats) == 1

    @apis
    async def test_twice_a_sentence_takes_its_place(self, api: str) -> None:
        async with (
            StandInModel([DATA], ["[1, 2]"], llama=True) as server,
            connected(server, api) as model,
        ):
            with pytest.raises(ModelReplyData):
                await asked(model, QUESTION)
            assert len(server.chats) == 2
        assert sentence(ModelReplyData.spoken).startswith("Sorry")

    @apis
    async def test_livekits_own_agent_gets_it_as_words(self, api: str) -> None:
        async with (
            StandInModel([DATA], [DATA], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(QUESTION, tells_unmade=True))
            assert (reply.text, reply.problems) == (sentence("model_not_words"), [])

    @apis
    async def test_behind_words_that_are_out_the_model_is_told(self, api: str) -> None:
        async with (
            StandInModel(["Here you are.\n", DATA], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(QUESTION, stream=True))
            assert (reply.text.strip(), len(reply.problems)) == ("Here you are.", 1)
            assert len(server.chats) == 1

    @apis
    async def test_where_no_call_may_be_made_it_is_not_heard_either(self, api: str) -> None:
        async with (
            StandInModel([DATA], ["It is warm."], llama=True) as server,
            connected(server, api) as model,
        ):
            reply = await asked(model, replace(QUESTION, may_call=False))
            assert (reply.text.strip(), reply.problems) == ("It is warm.", [])


class TestTextProtocol:
    @apis
    async def test_after_two_failures_tools_are_asked_for_by_text_from_then_on(
        self, api: str
    ) -> None:
        async with (
            StandInModel([End()], [End()], [IN_ONE], [IN_ONE], llama=True) as server,
            connected(server, api) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            assert model.retry_policy.stats.steps == {"once_more": 1, "json_reply": 1}
            assert not model.retry_policy.native
            assert model.retry_policy.first_strategy(QUESTION).name == "json_reply"
            assert "by text worked" in model.retry_policy.stats.reason
            assert named(await asked(model)) == ["get_weather"]
            sent = bodies(server)
            assert len(sent) == 4, "the next turn starts on the step that works"
            assert ["tools" in body for body in sent] == [True, True, False, False]
            assert all(("format" in b) or ("response_format" in b) for b in sent[2:])

    @apis
    @pytest.mark.parametrize(
        ("status", "words", "signal", "requests"),
        [
            (400, "stand-in does not support tools", "refused", 2),
            (500, PEG, "grammar", 3),
            (422, "unexpected field: tools", "refused", 2),
        ],
    )
    async def test_a_refusal_of_tools_goes_on_to_text(
        self, api: str, status: int, words: str, signal: Any, requests: int
    ) -> None:
        refusals = [[Refuse(status, words)]] * (requests - 1)
        async with (
            StandInModel(*refusals, [IN_ONE], llama=True) as server,
            connected(server, api) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            assert model.retry_policy.stats.signals == {signal: requests - 1}
            assert not model.retry_policy.native
            assert len(server.chats) == requests

    async def test_a_server_without_a_schema_is_asked_in_lines(self) -> None:
        async with (
            StandInModel([IN_LINES], llama=False) as server,
            connected(server, "openai", native=False) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            (body,) = bodies(server)
            assert "response_format" not in body
            assert "next_train" not in str(body["messages"]), "nothing keeps it from being called"

    @pytest.mark.parametrize(
        ("style", "reply"),
        [
            ("jsonl", IN_LINES),
            (
                "xml",
                "<tool_call>\n" + IN_LINES.replace('"type": "tool_call", ', "") + "\n</tool_call>",
            ),
            (
                "markdown-json",
                "```json\n" + IN_LINES.replace('"type": "tool_call", ', "") + "\n```",
            ),
        ],
    )
    async def test_each_style_is_asked_for_and_understood(self, style: Any, reply: str) -> None:
        async with (
            StandInModel([reply], capabilities=[]) as server,
            connected(server, "openai", style, native=False) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            head = bodies(server)[0]["messages"][0]["content"]
            marks = {
                "jsonl": '"type": "tool_call"',
                "xml": "<tool_call>",
                "markdown-json": "```json",
            }
            assert marks[style] in head


class TestJsonReply:
    """The constrained reply on the wire: speech streams, odds are read, a doubt ends it."""

    @apis
    async def test_speech_is_passed_on_while_the_server_still_writes(self, api: str) -> None:
        rest = asyncio.Event()
        reply = ['{"say": "It is sunny ', Wait(rest), 'in Paris."}']
        async with (
            StandInModel(reply, llama=True) as server,
            connected(server, api, native=False) as model,
        ):
            heard = ""
            async with aclosing(model.ask(replace(QUESTION, stream=True))) as parts:
                async for part in parts:
                    if isinstance(part, TextDelta):
                        heard += part.text
                        if heard.startswith("It is sunny"):
                            rest.set()
            assert heard == "It is sunny in Paris."

    @apis
    async def test_a_call_that_the_model_doubts_is_ended_and_asked_for_as_speech(
        self, api: str
    ) -> None:
        doubtful = [*_odds(api, ("calls", -0.9), ("say", -0.6)), Hang()]
        async with (
            StandInModel(doubtful, ['{"say": "You are welcome."}'], llama=True) as server,
            connected(server, api, native=False) as model,
        ):
            assert (await asked(model)).text == "You are welcome."
            await server.client_gone()
            first, second = bodies(server)
            assert first["top_logprobs"] == 10
            assert first["messages"] == second["messages"], "the prompt stays"
            assert "calls" not in json.dumps(second.get("format") or second["response_format"])
            assert model.retry_policy.stats.signals == {"unsure": 1}
            assert model.retry_policy.first_strategy(QUESTION).name == "json_reply"

    @apis
    async def test_a_call_that_the_model_is_sure_of_is_made(self, api: str) -> None:
        sure = [*_odds(api, ("calls", -0.01), ("say", -9.0)), IN_ONE.removeprefix('{"calls')]
        async with (
            StandInModel(sure, llama=True) as server,
            connected(server, api, native=False) as model,
        ):
            assert named(await asked(model)) == ["get_weather"]
            assert not model.retry_policy.stats.signals


def _odds(api: str, *top: tuple[str, float]) -> list[Raw]:
    """Two streamed tokens, the reply's beginning and its key, as each server tells their odds."""
    candidates = [{"token": token, "logprob": logprob} for token, logprob in top]
    tokens = [
        {"token": '{"', "logprob": 0.0, "top_logprobs": []},
        {**candidates[0], "top_logprobs": candidates},
    ]
    raw: list[Raw] = []
    for token in tokens:
        if api == "ollama":
            message = {"role": "assistant", "content": token["token"]}
            line = {"message": message, "done": False, "logprobs": [token]}
            raw.append(Raw(json.dumps(line).encode() + b"\n"))
        else:
            choice = {"delta": {"content": token["token"]}, "logprobs": {"content": [token]}}
            raw.append(Raw(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"))
    return raw


class TestPlainAndApology:
    @apis
    async def test_a_plain_reply_comes_before_the_apology(self, api: str) -> None:
        async with (
            StandInModel([End()], [End()], [End()], ["I cannot look."], llama=True) as server,
            connected(server, api) as model,
        ):
            assert (await asked(model)).text == "I cannot look."
            last = bodies(server)[-1]
            assert "tools" not in last
            assert "format" not in last
            assert "response_format" not in last
            assert list(model.retry_policy.stats.steps) == ["once_more", "json_reply", "plain"]

    @apis
    async def test_where_nothing_comes_it_is_an_error_that_can_be_said(self, api: str) -> None:
        async with (
            StandInModel(*[[End()]] * 4, llama=True) as server,
            connected(server, api) as model,
        ):
            with pytest.raises(ModelSilent) as told:
                await asked(model)
            assert told.value.spoken == "empty_reply"
            assert model.retry_policy.stats.steps["apology"] == 1
            assert len(server.chats) == 4

    async def test_plain_replies_come_first_for_a_while_where_only_they_work(self) -> None:
        def answer(request: Any) -> Any:
            body = request.json
            return [End()] if "tools" in body or "format" in body else ["Hello."]

        async with StandInModel(answer=answer) as server, connected(server, "ollama") as model:
            for _ in range(2):
                assert (await asked(model)).text == "Hello."
            before = len(server.chats)
            for _ in range(5):
                assert (await asked(model)).text == "Hello."
            assert len(server.chats) == before + 5
            await asked(model)
            assert len(server.chats) > before + 6, "tools are tried again"

    @pytest.mark.parametrize(
        ("step", "times"),
        # A connection that was kept from an earlier question and is closed is replaced once.
        [(Refuse(401, "key"), 1), (Cut(), 2), (Refuse(503, "busy"), 1)],
    )
    async def test_what_no_way_can_fix_is_not_asked_again(self, step: Any, times: int) -> None:
        async with StandInModel([step], [step]) as server, connected(server, "ollama") as model:
            with pytest.raises(ModelError):
                await asked(model)
            assert len(server.chats) == times
            assert not model.retry_policy.stats.signals
            assert model.retry_policy.native


def _counted(api: str, words: str, tokens: int) -> Raw:
    """A whole reply whose server counted so many tokens of prompt."""
    if api == "ollama":
        message = {"role": "assistant", "content": words}
        line = {"message": message, "done": True, "done_reason": "stop"}
        return Raw(json.dumps({**line, "prompt_eval_count": tokens, "eval_count": 5}).encode())
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": words}}
    usage = {"prompt_tokens": tokens, "completion_tokens": 5}
    return Raw(json.dumps({"choices": [choice], "usage": usage}).encode())


class TestContextCut:
    """A server that drops the oldest messages says nothing; its own count of tokens does."""

    long: Final = replace(
        QUESTION,
        items=(
            SystemItem("You help."),
            *(
                item
                for n in range(40)
                for item in (UserItem(f"tell me about {n} " + "word " * 40), AssistantItem("Well."))
            ),
            UserItem("and now the weather in Paris"),
        ),
    )

    @apis
    async def test_a_count_far_below_the_prompt_is_asked_again_with_less(self, api: str) -> None:
        replies = [[_counted(api, "Who are you?", 720)], [_counted(api, "Sunny.", 650)]]
        async with (
            StandInModel(*replies, llama=True, context_tokens=2048) as server,
            connected(server, api) as model,
        ):
            assert (await asked(model, self.long)).text == "Sunny."
            first, second = (body["messages"] for body in bodies(server))
            assert len(second) < len(first) / 2
            assert second[-1] == first[-1], "the person's words stay"
            assert second[0] == first[0]
            assert model.retry_policy.stats.signals == {"context_cut": 1}
            assert model.retry_policy.native

    @apis
    async def test_the_next_turn_is_shortened_before_it_is_sent(self, api: str) -> None:
        replies = [_counted(api, w, n) for w, n in (("?", 720), ("Sunny.", 650), ("Rainy.", 650))]
        async with (
            StandInModel(*([reply] for reply in replies), llama=True) as server,
            connected(server, api) as model,
        ):
            await asked(model, self.long)
            assert (await asked(model, self.long)).text == "Rainy."
            assert len(server.chats) == 3

    @apis
    async def test_a_prompt_at_the_contexts_end_counts_as_cut(self, api: str) -> None:
        replies = [[_counted(api, "?", 2047)], [_counted(api, "Sunny.", 1500)]]
        async with (
            StandInModel(*replies, llama=True, context_tokens=2048) as server,
            connected(server, api) as model,
        ):
            await model.find_strategy()
            assert (await asked(model, self.long)).text == "Sunny."
            assert model.retry_policy.stats.signals["context_cut"] == 1

    async def test_cut_again_it_is_plain_and_then_said(self) -> None:
        replies = [[_counted("ollama", "?", 2046)] for _ in range(3)]
        async with (
            StandInModel(*replies, context_tokens=2048) as server,
            connected(server, "ollama") as model,
        ):
            await model.find_strategy()
            with pytest.raises(ModelContextFull):
                await asked(model, self.long)
            assert [("tools" in body) for body in bodies(server)] == [True, True, False]

    @apis
    async def test_a_server_that_always_counts_a_few_tokens_takes_nothing_away(
        self, api: str
    ) -> None:
        async with (
            StandInModel(answer=lambda _: [_counted(api, "Sunny.", 5)], llama=True) as server,
            connected(server, api) as model,
        ):
            for _ in range(3):
                assert (await asked(model, self.long)).text == "Sunny."
            sizes = {len(body["messages"]) for body in bodies(server)}
            assert (len(server.chats), len(sizes)) == (3, 1)
            assert not model.retry_policy.stats.signals

    async def test_a_server_that_counts_without_its_cache_is_not_mistrusted_for_long(self) -> None:
        replies = [_counted("ollama", "Sunny.", n) for n in (2600, 60, 70, 65)]
        async with (
            StandInModel(*([reply] for reply in replies)) as server,
            connected(server, "ollama") as model,
        ):
            for _ in replies:
                assert (await asked(model, self.long)).text == "Sunny."
            assert len(server.chats) == 4
            assert not model.retry_policy.stats.signals


async def test_every_step_is_logged_without_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        StandInModel([End()], [End()], [IN_ONE]) as server,
        connected(server, "ollama") as model,
    ):
        with caplog.at_level(logging.INFO, logger="caal_node.models"):
            await asked(model)
        said = [record.getMessage() for record in caplog.records]
        assert [line for line in said if "next step" in line] == [
            "stand-in: next step: once_more",
            "stand-in: next step: json_reply",
        ]
        assert not any("Paris" in line for line in said)
        assert model.retry_policy.stats.signals == {"empty": 2}
