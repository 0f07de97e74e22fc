"""Where it is certain that no call follows, a reply is heard while it is still being written; a
call is never heard, and never lost.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.question import Question
from caal_node.models.reply_attempt import ReplyAttempt
from caal_node.models.strategies import (
    CallStrategy,
    JsonReplyStrategy,
    NativeStrategy,
    TextProtocolStrategy,
)
from caal_node.reply_parser import TextDelta, ToolCallEnd
from tests.stand_ins.conversation import FakeTier, conversation
from tests.stand_ins.stand_in_model import Call, StandInModel

TIMER = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "description": "Set a timer.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer"}},
            "required": ["minutes"],
        },
    },
}
WHOLE = Question(
    (SystemItem("You help."), UserItem("a timer of 5 minutes, or what is noon?")),
    PromptTools((TIMER,)),
    stream=False,
)
CALL = '{"calls": [{"name": "set_timer", "arguments": {"minutes": 5}}]}'


class Writing:
    """A backend that writes one reply in pieces, and notes when each is asked for."""

    model, address = "writing", "http://writing"

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces
        self.written = 0

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True, schema=True)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        for piece in self._pieces:
            self.written += 1
            yield TextChunk(piece)
        yield ReplyDone("stop", Usage(1, 1, 0))

    async def aclose(self) -> None:
        pass


async def heard_of(
    pieces: Sequence[str], strategy: CallStrategy, question: Question = WHOLE
) -> tuple[list[tuple[int, str]], list[Any]]:
    """What was heard, each with the number of pieces written by then, and the calls."""
    backend = Writing(pieces)
    attempt = ReplyAttempt(backend, strategy, question)
    heard: list[tuple[int, str]] = []
    calls: list[Any] = []

    def take(event: Any) -> None:
        if isinstance(event, TextDelta):
            heard.append((backend.written, event.text))
        elif isinstance(event, ToolCallEnd):
            calls.append((event.name, dict(event.arguments)))

    async for event in attempt.run():
        take(event)
    for event in attempt.rest():
        take(event)
    return heard, calls


async def test_speech_is_heard_from_the_key_on() -> None:
    pieces = ['{"', 'say": "', "It is ", "noon.", " Bye.", '"}']
    heard, _ = await heard_of(pieces, JsonReplyStrategy())
    assert heard[0] == (3, "It is ")
    assert "".join(text for _, text in heard) == "It is noon. Bye."


async def test_speech_in_place_of_a_call_that_was_doubted_is_heard_at_once() -> None:
    pieces = ['{"say"', ': "It is ', "noon.", '"}']
    heard, _ = await heard_of(pieces, JsonReplyStrategy(speech_only=True))
    assert heard[0][0] == 2


@pytest.mark.parametrize(
    ("strategy", "pieces", "question"),
    [
        (NativeStrategy(), ["It is ", "noon. ", "Bye."], WHOLE),
        (TextProtocolStrategy(), ["It is ", "noon. ", "Bye."], WHOLE),
        # The server has not held it to the schema, so anything may follow.
        (JsonReplyStrategy(), ["It is ", "noon. ", "Bye."], WHOLE),
        (JsonReplyStrategy(), ['{"say', '": "It', ' is noon."}'], replace(WHOLE, must_call=True)),
    ],
    ids=["native", "text", "no schema", "a call is wanted"],
)
async def test_elsewhere_the_whole_reply_is_understood_first(
    strategy: CallStrategy, pieces: Sequence[str], question: Question
) -> None:
    heard, _ = await heard_of(pieces, strategy, question)
    assert {written for written, _ in heard} <= {len(pieces)}


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=12)))
    edges = [0, *places, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges) if a < b]


@given(st.data(), st.text(min_size=1, max_size=80))
def test_however_it_is_cut_the_same_is_heard_as_in_a_stream(data: st.DataObject, text: str) -> None:
    pieces = data.draw(cut(json.dumps({"say": text})))
    heard, calls = asyncio.run(heard_of(pieces, JsonReplyStrategy()))
    streamed, _ = asyncio.run(heard_of(pieces, JsonReplyStrategy(), replace(WHOLE, stream=True)))
    assert "".join(text for _, text in heard) == "".join(text for _, text in streamed)
    assert calls == []


@given(st.data())
def test_however_it_is_cut_a_call_is_made_and_never_heard(data: st.DataObject) -> None:
    heard, calls = asyncio.run(heard_of(data.draw(cut(CALL)), JsonReplyStrategy()))
    assert heard == []
    assert calls == [("set_timer", {"minutes": 5})]


@given(st.data())
def test_a_call_behind_speech_that_no_schema_held_is_still_made(data: st.DataObject) -> None:
    pieces = data.draw(cut('{"say": "One moment."}\n' + CALL))
    heard, calls = asyncio.run(heard_of(pieces, JsonReplyStrategy()))
    assert "".join(text for _, text in heard).strip() == "One moment."
    assert calls == [("set_timer", {"minutes": 5})]


async def test_an_agent_without_tools_streams_its_first_reply() -> None:
    async with (
        StandInModel(["It is ", "noon."]) as server,
        conversation(server, tier=NoTools()) as talk,
    ):
        assert await talk.ask("what is noon?") == "It is noon."
        assert server.chats[0].json["stream"] is True


async def test_an_agent_with_tools_still_asks_for_a_whole_reply() -> None:
    async with (
        StandInModel([Call("get_weather", {"city": "Paris"})], ["It is sunny."]) as server,
        conversation(server) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is sunny."
        assert [chat.json["stream"] for chat in server.chats] == [False, True]


class NoTools(FakeTier):
    async def discover(self) -> Any:
        return replace(await super().discover(), specs=())
