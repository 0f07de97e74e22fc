"""What a person says is read by the model's server while they still speak, and never too much."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from livekit.agents import AgentSession, UserInputTranscribedEvent
from livekit.agents.llm import ChatMessage
from livekit.agents.voice.events import ConversationItemAddedEvent

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.errors import ModelUnreachable
from caal_node.room.read_ahead import NOT_YET_SAID, READS_MOST, ReadAhead
from tests.stand_ins.conversation import NOWHERE, Conversation, conversation
from tests.stand_ins.stand_in_model import Asked, Hang, Reply, StandInModel

LONG = [
    "could",
    "you",
    "tell",
    "me",
    "what",
    "the",
    "weather",
    "is",
    "going",
    "to",
    "be",
    "like",
    "in",
    "Oslo",
    "tomorrow",
]


class Server:
    """Reads one prompt at a time, until the test lets it end."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.running = 0
        self.cut_next = False
        self._ends = asyncio.Event()

    async def read(self, words: str) -> None:
        self.asked.append(words)
        self.running += 1
        assert self.running == 1
        try:
            await self._ends.wait()
            self._ends.clear()
        except asyncio.CancelledError:
            self.cancelled.append(words)
            raise
        finally:
            self.running -= 1

    def is_cut_behind(self, answer: str) -> bool:
        return self.cut_next

    async def end(self) -> None:
        self._ends.set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def reading() -> AsyncGenerator[tuple[Server, ReadAhead, AgentSession[Any]]]:
    server, session = Server(), AgentSession[Any](vad=None)
    ahead = ReadAhead(server, session)
    try:
        yield server, ahead, session
    finally:
        await ahead.aclose()


async def test_the_first_words_are_read_at_once_and_then_every_few() -> None:
    async with reading() as (server, ahead, _):
        for count in range(1, len(LONG) + 1):
            ahead.heard(" ".join(LONG[:count]), is_final=False)
            await settled()
            await server.end()
    assert [len(words.split()) for words in server.asked] == [1, 5, 9, 13]


async def test_one_request_runs_at_a_time_and_the_newest_words_follow() -> None:
    async with reading() as (server, ahead, _):
        for count in (2, 7, 11):
            ahead.heard(" ".join(LONG[:count]), is_final=False)
            await settled()
        assert server.asked == ["could you"]
        await server.end()
        assert server.asked == ["could you", " ".join(LONG[:11])]


async def test_words_that_turn_out_otherwise_are_dropped_at_once() -> None:
    async with reading() as (server, ahead, _):
        ahead.heard("good you", is_final=False)
        await settled()
        ahead.heard("could you tell", is_final=False)
        await settled()
        assert server.cancelled == ["good you"]
        assert server.asked == ["good you", "could you tell"]


async def test_the_turns_own_request_ends_it_and_nothing_is_read_beside_a_reply() -> None:
    async with reading() as (server, ahead, _):
        ahead.heard("could you", is_final=False)
        await settled()
        ahead.request_begins()
        await settled()
        assert server.cancelled == ["could you"]
        ahead.heard(" ".join(LONG), is_final=False)
        await settled()
        assert len(server.asked) == 1
        ahead.reply_over()
        ahead.heard(" ".join(LONG), is_final=False)
        await settled()
        assert server.asked[1:] == [" ".join(LONG)]


async def test_a_turn_in_several_segments_is_read_as_one() -> None:
    async with reading() as (server, ahead, session):
        ahead.heard("Turn on the light.", is_final=True)
        await settled()
        await server.end()
        ahead.heard("and then tell me the time", is_final=False)
        await settled()
        assert server.asked[-1] == "Turn on the light. and then tell me the time"
        message = ChatMessage(role="user", content=["Turn on the light. And then."])
        session.emit("conversation_item_added", ConversationItemAddedEvent(item=message))
        ahead.heard("Thank you", is_final=False)
        await settled()
        assert server.asked[-1] == "Thank you"


async def test_a_turn_has_so_many_requests_at_most() -> None:
    async with reading() as (server, ahead, _):
        for count in range(1, 200):
            ahead.heard(" ".join(["so"] * count), is_final=False)
            await settled()
            await server.end()
    assert len(server.asked) == READS_MOST


def speaks(session: AgentSession[Any], words: str) -> None:
    message = ChatMessage(role="assistant", content=[words])
    session.emit("conversation_item_added", ConversationItemAddedEvent(item=message))


async def test_what_a_cut_leaves_is_read_behind_the_answer_and_no_more() -> None:
    async with reading() as (server, ahead, session):
        speaks(session, "It is noon.")
        await settled()
        assert server.asked == []
        server.cut_next = True
        speaks(session, "It is noon.")
        await settled()
        assert server.asked == [NOT_YET_SAID]
        ahead.request_begins()
        await settled()
        assert server.cancelled == [NOT_YET_SAID]


async def test_words_that_come_while_a_cut_is_read_are_read_next() -> None:
    async with reading() as (server, ahead, session):
        server.cut_next = True
        speaks(session, "It is noon.")
        await settled()
        ahead.heard("could you", is_final=False)
        await settled()
        assert server.asked == [NOT_YET_SAID, "could you"]


async def test_nothing_begins_once_it_is_closed() -> None:
    async with reading() as (server, ahead, _):
        ahead.heard("could you", is_final=False)
        await settled()
        await ahead.aclose()
        ahead.heard("could you tell me what it is", is_final=False)
        await settled()
        assert server.asked == server.cancelled == ["could you"]


async def test_a_server_that_fails_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Server):
        async def read(self, words: str) -> None:
            raise ModelUnreachable("no")

    ahead = ReadAhead(Failing(), AgentSession[Any](vad=None))
    ahead.heard("could you", is_final=False)
    await settled()
    await ahead.aclose()
    assert not caplog.records


def interim(talk: Conversation, words: str) -> None:
    event = UserInputTranscribedEvent(transcript=words, is_final=False)
    talk.session.emit("user_input_transcribed", event)


async def until_asked(server: StandInModel, count: int) -> None:
    async with asyncio.timeout(5):
        while len(server.chats) < count:
            await server.request_arrived()


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_what_is_read_is_the_beginning_of_the_turns_request(api: str) -> None:
    async with (
        StandInModel(["It is noon."], ["x"], ["Yes."]) as server,
        conversation(server, api=api, env={"CAAL_READ_AHEAD": "on"}) as talk,
    ):
        await talk.ask("What time is it?")
        interim(talk, "and is it dry")
        await until_asked(server, 2)
        await talk.ask("and is it dry in Oslo?")
        read, asked = (chat.json for chat in server.chats[1:])
        assert read["messages"][:-1] == asked["messages"][:-1]
        assert asked["messages"][-1]["content"].startswith(read["messages"][-1]["content"])
        assert read.get("tools") == asked.get("tools")
        assert (read.get("max_tokens") or read["options"]["num_predict"]) == 1


async def test_the_turns_request_closes_what_is_still_being_read() -> None:
    async with (
        StandInModel([Hang()], ["Yes."]) as server,
        conversation(server, env={"CAAL_READ_AHEAD": "on"}) as talk,
    ):
        interim(talk, "is it dry")
        await until_asked(server, 1)
        assert await talk.ask("is it dry in Oslo?") == "Yes."
        async with asyncio.timeout(5):
            await server.client_gone()


async def test_it_is_off_unless_it_is_turned_on() -> None:
    async with StandInModel(["Yes."]) as server, conversation(server) as talk:
        interim(talk, "is it dry")
        await talk.ask("is it dry in Oslo?")
        assert len(server.chats) == 1


async def test_a_model_of_a_cloud_reads_nothing_in_advance() -> None:
    async with (
        StandInModel(["Yes."], model="large-cloud") as server,
        conversation(server, env={"CAAL_READ_AHEAD": "on"}) as talk,
    ):
        interim(talk, "is it dry")
        await settled()
        assert await talk.ask("is it dry in Oslo?") == "Yes."
        assert len(server.chats) == 1


async def test_a_cut_that_is_coming_is_read_before_the_next_words_by_the_real_request() -> None:
    def answer(_: Asked) -> Reply:
        return ["It is a fine day, and a long answer. " * 12]

    async with (
        StandInModel(answer=answer) as server,
        conversation(server, env={"CAAL_NUM_CTX": "2048"}) as talk,
    ):
        for number in range(30):
            await talk.ask(f"question {number}")
            await settled()
            ahead = [chat.json for chat in server.chats if chat.json["options"]["num_predict"] == 1]
            if ahead:
                break
        (read,) = ahead
        assert read["messages"][-1]["content"] == NOT_YET_SAID
        await talk.ask("and now?")
        asked = server.chats[-1].json["messages"]
        assert asked[:-1] == read["messages"][:-1]
        assert len(asked) < 2 * number


async def test_an_agent_without_a_model_has_nothing_read(caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings({"CAAL_CUES": "off"}, NOWHERE)
    agent = CaalAgent(settings=settings, tiers={}, warm=False)
    session = AgentSession[Any](vad=None)
    await session.start(agent)
    try:
        speaks(session, "Dinner is ready.")
        await settled()
    finally:
        await session.aclose()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
