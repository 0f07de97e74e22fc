"""Calls that stand on nothing, by every way of asking: left out, and spoken about instead."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import function_tool, llm

from caal_node.agent import CaalAgent
from caal_node.config.setting_tables import Checks
from caal_node.config.settings import Settings
from caal_node.context.token_estimate import PromptTools
from caal_node.core.errors import ConfigError
from caal_node.core.items import AssistantItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import Example
from caal_node.grounding.call_grounds import CallGrounds, CallSigns
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.llm import LLM
from caal_node.models.model_connection import ModelConnection
from caal_node.models.question import Question
from caal_node.models.retry_policy import is_small
from caal_node.models.strategies.tool_relevance import NUMBERS, TIMES
from caal_node.reply_parser import Event, Reply, summarise
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings

MAIL: Final[Any] = {
    "type": "function",
    "function": {
        "name": "check_mail",
        "description": "Tell the person of unread mail.",
        "parameters": {"type": "object", "properties": {}},
    },
}
WEATHER: Final[Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather or the forecast of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "name of the city"}},
            "required": ["city"],
        },
    },
}


def _tool(name: str, description: str, **parameters: Any) -> Any:
    about = {"type": "object", "properties": parameters, "required": list(parameters)}
    function = {"name": name, "description": description, "parameters": about}
    return {"type": "function", "function": function}


TOOLS: Final = PromptTools(
    (MAIL, WEATHER), {"get_weather": (Example("how warm is it in Rome", {"city": "Rome"}),)}
)
SYSTEM: Final = SystemItem("You help.")
HAMLET: Final = "who wrote Hamlet"


def question(said: str, **more: Any) -> Question:
    return Question((SYSTEM, UserItem(said)), TOOLS, stream=False, **more)


class Server:
    """A server that gives `replies` in order, each a text or structured calls."""

    address = "test://"

    def __init__(
        self, *replies: str | Sequence[NativeCall], schema: bool = True, model: str = "qwen3:8b"
    ) -> None:
        self.model = model
        self.requests: list[BackendRequest] = []
        self._replies = list(replies)
        self._schema = schema

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True, schema=self._schema)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.requests.append(request)
        reply = self._replies.pop(0)
        if isinstance(reply, str):
            yield TextChunk(reply)
        else:
            for call in reply:
                yield call
        yield ReplyDone("stop", Usage(10, 10, 0))

    async def aclose(self) -> None: ...


async def heard(server: Server, asked: Question, *, native: bool) -> tuple[Reply, ModelConnection]:
    connection = ModelConnection(server, native)
    parts = [part async for part in connection.ask(asked)]
    return summarise(part for part in parts if isinstance(part, Event)), connection


def call(name: str, **arguments: Any) -> NativeCall:
    return NativeCall("1", name, json.dumps(arguments))


def written(name: str, **arguments: Any) -> str:
    return json.dumps({"calls": [{"name": name, "arguments": arguments}]})


def line(name: str, **arguments: Any) -> str:
    return json.dumps({"type": "tool_call", "name": name, "arguments": arguments})


WAYS: Final[dict[str, tuple[bool, bool, Any, str]]] = {
    "native": (True, True, [call("get_weather", city="London")], "Shakespeare did."),
    "json_reply": (
        False,
        True,
        written("get_weather", city="London"),
        '{"say": "Shakespeare did."}',
    ),
    "jsonl": (
        False,
        False,
        line("get_weather", city="London"),
        '{"type": "final_answer", "text": "Shakespeare did."}',
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_needless_call_is_not_made_and_one_request_asks_for_speech(way: str) -> None:
    native, schema, first, second = WAYS[way]
    server = Server(first, second, schema=schema)
    reply, connection = await heard(server, question(HAMLET), native=native)
    assert (reply.calls, reply.text) == ([], "Shakespeare did.")
    assert len(server.requests) == 2
    stats = connection.retry_policy.stats
    assert dict(stats.signals) == {"needless": 1}
    assert stats.native is native, "a needless call says nothing of how the model calls"


@pytest.mark.parametrize("way", WAYS)
async def test_the_prompt_for_speech_begins_as_the_first_one_with_the_same_tools(way: str) -> None:
    native, schema, first, second = WAYS[way]
    server = Server(first, second, schema=schema)
    await heard(server, question(HAMLET), native=native)
    asked, again = server.requests
    assert again.items[:-1] == asked.items[:-1]
    assert isinstance(again.items[-1], UserItem)
    assert isinstance(asked.items[-1], UserItem)
    assert again.items[-1].text.startswith(asked.items[-1].text)
    assert again.tools == asked.tools


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_that_is_meant_costs_no_further_request(way: str) -> None:
    native, schema, first, _ = WAYS[way]
    server = Server(first, schema=schema)
    reply, _ = await heard(server, question("how warm is it in London"), native=native)
    assert [made.name for made in reply.calls] == ["get_weather"]


@pytest.mark.parametrize("way", WAYS)
async def test_every_call_is_made_where_the_judge_is_off(way: str) -> None:
    native, schema, first, _ = WAYS[way]
    server = Server(first, schema=schema)
    asked = question(HAMLET, judges_calls=False)
    reply, _ = await heard(server, asked, native=native)
    assert [made.name for made in reply.calls] == ["get_weather"]


@pytest.mark.parametrize("way", ["native", "jsonl"])
async def test_a_model_that_calls_again_is_not_asked_a_third_time(way: str) -> None:
    native, schema, first, _ = WAYS[way]
    server = Server(first, first, schema=schema)
    reply, _ = await heard(server, question(HAMLET), native=native)
    assert (reply.calls, reply.text) == ([], sentence("no_tool_for_that"))


SWITCH: Final = PromptTools(
    (
        _tool(
            "set_light",
            "Switch the lights of a room on or off.",
            room={"type": "string"},
            on={"type": "boolean"},
        ),
        _tool("set_timer", "Start a countdown.", minutes={"type": "number"}),
        WEATHER,
    )
)


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("uh kill the lights in the hallway", call("set_light", room="hallway", on=False)),
        ("wake me from my nap in half an hour", call("set_timer", minutes=30)),
    ],
)
async def test_a_model_that_calls_again_with_words_that_were_said_is_believed(
    said: str, made: NativeCall
) -> None:
    server = Server([made], [made], model="qwen2.5:1.5b")
    asked = Question((SYSTEM, UserItem(said)), SWITCH, stream=False)
    reply, _ = await heard(server, asked, native=True)
    assert [(one.name, one.arguments) for one in reply.calls] == [
        (made.name, json.loads(made.arguments))
    ]
    assert reply.text == ""


async def test_a_call_that_has_to_be_made_is_not_judged() -> None:
    server = Server([call("check_mail")])
    reply, _ = await heard(server, question(HAMLET, must_call=True), native=True)
    assert [made.name for made in reply.calls] == ["check_mail"]


async def test_a_needless_call_beside_a_meant_one_is_left_out_alone() -> None:
    server = Server([call("check_mail"), call("get_weather", city="London")], model="a:1b")
    reply, _ = await heard(server, question("have I got new mail"), native=True)
    assert [made.name for made in reply.calls] == ["check_mail"]


@pytest.mark.parametrize("native", [True, False])
async def test_a_place_that_nobody_named_is_asked_for_without_a_request(native: bool) -> None:
    first: Any = [call("get_weather", city="London")]
    reply = first if native else written("get_weather", city="London")
    heard_now, _ = await heard(
        Server(reply, model="llama3.2:1b"), question("is it going to rain"), native=native
    )
    assert heard_now.calls == []
    assert heard_now.text == "Please tell me the name of the city first."


_ROOM: Final[Any] = {"type": "string"}
HEATING: Final = _tool(
    "set_temperature",
    "Set the heating of a room to a temperature.",
    room=_ROOM,
    degrees={"type": "number", "description": "degrees Celsius"},
)
LAMP: Final = _tool(
    "set_light", "Switch a lamp.", percent={"type": "integer"}, state={"enum": ["on", "off"]}
)
HOME: Final = PromptTools((HEATING, LAMP, WEATHER))


def at_home(said: str) -> Question:
    return Question((SYSTEM, UserItem(said)), HOME, stream=False)


def allowed(request: BackendRequest) -> set[str]:
    return {name for name in HOME.names if f'"{name}"' in json.dumps(request.schema)}


@pytest.mark.parametrize("room", ["Gdansk", "living room"])
async def test_a_question_is_not_asked_for_a_figure_but_the_model_without_that_tool(
    room: str,
) -> None:
    server = Server(
        written("set_temperature", room=room, degrees=21), written("get_weather", city="Gdansk")
    )
    reply, _ = await heard(server, at_home("What's the temperature in Gdansk?"), native=False)
    assert [(made.name, made.arguments) for made in reply.calls] == [
        ("get_weather", {"city": "Gdansk"})
    ]
    assert reply.text == ""
    first, second = server.requests
    assert allowed(first) == set(HOME.names)
    assert allowed(second) == set(HOME.names) - {"set_temperature"}
    assert first.items == second.items


async def test_a_model_that_goes_on_to_want_a_figure_is_asked_for_speech() -> None:
    server = Server(
        written("set_temperature", room="Gdansk", degrees=21),
        written("set_light", percent=40, state="on"),
        json.dumps({"say": "I don't know."}),
    )
    asked = at_home("Hi, what's the light and the temperature in Gdansk?")
    reply, connection = await heard(server, asked, native=False)
    assert (reply.calls, reply.text) == ([], "I don't know.")
    assert allowed(server.requests[-1]) == set()
    assert dict(connection.retry_policy.stats.signals) == {"unwanted": 2}


@pytest.mark.parametrize(
    ("said", "call_", "asked"),
    [
        ("set the heating please", ("set_temperature", {"room": "attic", "degrees": 9}), "degrees"),
        ("make the attic warm please", ("set_temperature", {"room": "attic", "degrees": 9}), "deg"),
        ("switch the lamp on please", ("set_light", {"percent": 9, "state": "on"}), "percent"),
    ],
)
async def test_what_a_call_that_was_meant_lacks_is_asked_for(
    said: str, call_: tuple[str, dict[str, Any]], asked: str
) -> None:
    server = Server(written(call_[0], **call_[1]))
    reply, _ = await heard(server, at_home(said), native=False)
    assert reply.calls == []
    assert reply.text.startswith("Please tell me the ")
    assert asked in reply.text


NOTES: Final = PromptTools(
    (
        _tool("add_note", "Write down a note.", text={"type": "string"}),
        _tool("find_note", "Find what was noted.", about={"type": "string"}),
    )
)
BIRTHDAY: Final = "Anna's birthday is on March 15th"


def noted(said: str, *earlier: Item) -> Question:
    return Question((SYSTEM, *earlier, UserItem(said)), NOTES, stream=False)


async def test_a_question_that_would_write_a_figure_nobody_said_is_asked_without_that_tool() -> (
    None
):
    server = Server(
        written("add_note", text=BIRTHDAY), written("find_note", about="Anna's birthday")
    )
    asked = noted("What did I note about Anna's birthday?")
    reply, _ = await heard(server, asked, native=False)
    assert [made.name for made in reply.calls] == ["find_note"]


@pytest.mark.parametrize("model", ["qwen3:8b", "qwen2.5:0.5b"])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("said", ["what did I note about the plumber", "what's in my notes"])
async def test_a_question_writes_nothing_and_the_model_is_asked_once_more(
    said: str, native: bool, model: str
) -> None:
    add, find = ("add_note", {"text": "the plumber"}), ("find_note", {"about": "plumber"})
    replies: list[Any] = [
        [call(name, **given)] if native else written(name, **given) for name, given in (add, find)
    ]
    server = Server(*replies, model=model)
    reply, connection = await heard(server, noted(said), native=native)
    assert [made.name for made in reply.calls] == ["find_note"]
    assert dict(connection.retry_policy.stats.signals) == {"unwanted": 1}
    first, second = server.requests
    assert second.items[: len(first.items)] == first.items
    if native:
        assert "only asks" in str(second.items[-1])
        assert second.tools == first.tools


@pytest.mark.parametrize(
    "items",
    [
        (UserItem("note the plumber"), AssistantItem("For when?"), UserItem("what about seven?")),
        (UserItem("note the plumber"), AssistantItem("Done."), UserItem("is it noted for seven")),
        (UserItem("how late is it? " * 30 + "And note that the plumber comes at seven."),),
    ],
)
async def test_words_that_may_want_more_than_they_ask_write(items: tuple[Item, ...]) -> None:
    made: Any = [call("add_note", text="the plumber comes at seven")]
    asked = Question((SYSTEM, *items), NOTES, stream=False)
    found, _ = await heard(Server(made), asked, native=True)
    assert [one.name for one in found.calls] == ["add_note"]


@pytest.mark.parametrize("native", [True, False])
async def test_a_question_that_ends_in_an_order_writes(native: bool) -> None:
    made: Any = {"text": "the plumber comes at nine"}
    reply: Any = [call("add_note", **made)] if native else written("add_note", **made)
    said = "did I note that the plumber comes at nine, um, just note it"
    found, _ = await heard(Server(reply), noted(said), native=native)
    assert [one.name for one in found.calls] == ["add_note"]


@pytest.mark.parametrize("model", ["qwen3:8b", "qwen2.5:0.5b"])
@pytest.mark.parametrize("native", [True, False])
async def test_a_figure_that_would_be_written_is_asked_for(native: bool, model: str) -> None:
    made: Any = [call("add_note", text=BIRTHDAY)]
    server = Server(made if native else written("add_note", text=BIRTHDAY), model=model)
    reply, _ = await heard(server, noted("please note Anna's birthday"), native=native)
    assert (reply.calls, reply.text) == (
        [],
        "Please tell me the text first.",
    )


EGGS: Final = UserItem("We have three eggs.")


@pytest.mark.parametrize(
    ("said", "earlier", "text"),
    [
        ("note Anna's birthday", (EGGS,), BIRTHDAY),
        ("note Anna's birthday", (ResultItem("1", "count", '{"count": 3}'),), BIRTHDAY),
        ("note the dentist", (), "Dentist on Monday"),
        ("note the dentist", (EGGS,), "dentist at 10:00 am"),
        ("note the dentist", (EGGS,), "2026-03-15"),
        ("note that we need three eggs", (), "Buy 3 eggs on Monday"),
        ("note the meeting on the budget", (), "Meeting with Sarah about the budget"),
    ],
)
async def test_a_date_or_a_name_is_asked_for_where_only_other_things_were_said(
    said: str, earlier: tuple[Item, ...], text: str
) -> None:
    server = Server([call("add_note", text=text)])
    reply, _ = await heard(server, noted(said, *earlier), native=True)
    assert (reply.calls, reply.text) == (
        [],
        "Please tell me the text first.",
    )


BOOK: Final = _tool(
    "book_table",
    "Book a table at a restaurant.",
    restaurant={"type": "string"},
    time={"type": "string"},
    people={"type": "number"},
)
SHOWN: Final = Example(
    "a table for three at Chez Nous at eight",
    {"restaurant": "Chez Nous", "time": "20:00", "people": 3},
)


def booking(said: str) -> Question:
    BOOK["function"]["parameters"]["required"] = ["restaurant", "time"]
    tools = PromptTools((BOOK,), {"book_table": (SHOWN,)})
    return Question((SYSTEM, UserItem(said)), tools, stream=False)


async def test_what_a_small_model_has_out_of_an_example_is_asked_for() -> None:
    made = call("book_table", restaurant="Chaz Nous", time="20:00", people=3)
    server = Server([made], model="qwen2.5:0.5b")
    reply, _ = await heard(server, booking("Book a table for tonight at seven."), native=True)
    assert (reply.calls, reply.text) == (
        [],
        "Please tell me the restaurant first.",
    )


@pytest.mark.parametrize(
    "said",
    [
        "a table for three at Chez Nous at eight",
        "book chaz nous for eight o'clock, we are three",
        "Book us in at Chez Nous for eight.",
    ],
)
async def test_what_an_example_shows_and_the_person_says_is_passed_on(said: str) -> None:
    made = call("book_table", restaurant="Chez Nous", time="20:00", people=3)
    server = Server([made], model="qwen2.5:0.5b")
    reply, _ = await heard(server, booking(said), native=True)
    assert [one.arguments["restaurant"] for one in reply.calls] == ["Chez Nous"]


async def test_a_small_model_s_wrong_time_gives_way_to_the_one_that_was_said() -> None:
    made = call("book_table", restaurant="Lotus Hof", time="17:00", people=4)
    server = Server([made], model="qwen2.5:0.5b")
    asked = booking("Reserve Lotus Hof at half past seven for four of us.")
    reply, _ = await heard(server, asked, native=True)
    assert [one.arguments["time"] for one in reply.calls] == ["19:30"]


async def test_a_date_that_nobody_said_is_left_out_where_a_call_needs_none() -> None:
    event = _tool("add_event", "Add an event.", title={"type": "string"}, day={"type": "string"})
    event["function"]["parameters"]["required"] = ["title"]
    server = Server([call("add_event", title="Anna's birthday", day="2026-03-15")])
    said = UserItem("add an event for Anna's birthday")
    asked = Question((SYSTEM, said), PromptTools((event,)), stream=False)
    reply, _ = await heard(server, asked, native=True)
    assert [made.arguments for made in reply.calls] == [{"title": "Anna's birthday"}]


@pytest.mark.parametrize(
    ("said", "earlier", "text"),
    [
        ("note that Anna's birthday is on March 15th", (), BIRTHDAY),
        ("note Anna's birthday", (UserItem("it's in two weeks"),), BIRTHDAY),
        ("note Anna's birthday", (ResultItem("1", "look", "2026-03-15"),), BIRTHDAY),
        ("note that she comes at quarter to six", (EGGS,), "She comes at 17:45"),
        ("note to ask katarina for the keys", (), "ask Catarina for the keys"),
        ("note to call my father", (), "call Dad and ask"),
        ("note to see the doc about my knee", (), "see the Doctor about my knee"),
        ("note to buy it in Oslo", (), "buy it in Oslo, Norway"),
        ("note that we watch it on the television", (), "Watch it on the TV"),
        ("note that Anna's birthday is in the middle of March", (), BIRTHDAY),
        ("note that the bin goes out at half past seven", (), "The bin goes out at 7:30"),
        ("note that I owe Bob two dozen eggs", (), "I owe Bob 24 eggs"),
        ("note the plumber's number", (UserItem("He said 555 0148."),), "Plumber: 555 0148"),
        ("note the code", (ResultItem("1", "get_code", "code: 7741"),), "The code is 7741"),
        ("note the big plane", (), "B52 bomber"),
        ("note that I like tea", (), "I like tea"),
    ],
)
async def test_what_follows_from_what_was_said_is_written(
    said: str, earlier: tuple[Item, ...], text: str
) -> None:
    server = Server([call("add_note", text=text)])
    reply, _ = await heard(server, noted(said, *earlier), native=True)
    assert [made.arguments for made in reply.calls] == [{"text": text}]


_STATED: Final = (
    *("note", "Anna", "Dr.", "Lee", "3", "half", "past", "seven", "17:45", "2026-03-15", "May"),
    *("4th", "Monday,", "at", "two dozen", "1,5", "k", "noon", "in", "20 %", "twenty one", "0123"),
)


@given(st.lists(st.sampled_from(_STATED) | st.text(max_size=6)).map(" ".join))
def test_whatever_was_said_word_for_word_may_be_written(said: str) -> None:
    grounds = CallGrounds([UserItem(said)], "en", TIMES, NUMBERS, lambda name: 1.0)
    text = CallSigns(NOTES.schemas[0], {"text": said}, trusted=True)
    assert grounds.invented(text) == ()


async def test_a_figure_that_only_looks_something_up_is_no_harm() -> None:
    server = Server([call("find_note", about="Anna's birthday March 15th")])
    reply, _ = await heard(server, noted("find the note on Anna's birthday"), native=True)
    assert [made.name for made in reply.calls] == ["find_note"]


async def test_a_model_that_calls_well_asks_for_the_place_itself() -> None:
    server = Server([call("get_weather", city="London")], "For which city?")
    reply, _ = await heard(server, question("is it going to rain"), native=True)
    assert (reply.calls, reply.text) == ([], "For which city?")


async def test_a_model_that_calls_twice_for_a_place_that_nobody_named_ends_in_a_question() -> None:
    first = [call("get_weather", city="London")]
    server = Server(first, first)
    reply, _ = await heard(server, question("is it going to rain"), native=True)
    assert (reply.calls, len(server.requests)) == ([], 2)
    assert reply.text == "Please tell me the name of the city first."


async def test_a_model_that_asks_and_calls_again_is_heard_asking() -> None:
    first = [call("get_weather", city="London")]
    again = '{"type": "tool_call", "name": "get_weather", "arguments": {"city": "London"}}'
    server = Server(first, f"For which city?\n{again}")
    reply, _ = await heard(server, question("is it going to rain"), native=True)
    assert (reply.calls, reply.text.strip()) == ([], "For which city?")


async def test_a_streamed_needless_call_is_not_made_either() -> None:
    server = Server([call("get_weather", city="London")], "Shakespeare did.")
    asked = replace(question(HAMLET), stream=True)
    reply, _ = await heard(server, asked, native=True)
    assert (reply.calls, reply.text) == ([], "Shakespeare did.")


async def test_a_small_model_is_believed_less_whichever_way_it_calls() -> None:
    order = [call("check_mail")]
    small = Server(order, "I can't do that.", model="llama3.2:1b")
    reply, _ = await heard(small, question("order me a pizza"), native=True)
    assert reply.calls == []
    large = Server(order)
    reply, _ = await heard(large, question("order me a pizza"), native=True)
    assert [made.name for made in reply.calls] == ["check_mail"]


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("llama3.2:1b", True),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m", True),
        ("smollm2:360m", True),
        ("phi-3B", True),
        ("qwen3:8b", False),
        ("qwen3:30b-a3b", False),
        ("llama3.1:405b", False),
        ("gpt-4.1-mini", False),
        ("mistral", False),
    ],
)
def test_a_name_says_whether_a_model_is_small(name: str, small: bool) -> None:
    assert is_small(name) is small


@pytest.mark.parametrize("name", ["jarvis", "qwen3:8b", "qwen2.5:0.5b"])
def test_a_known_number_of_weights_counts_more_than_a_name(name: str) -> None:
    assert is_small(name, 3_212_749_888)
    assert not is_small(name, 8_030_261_312)


def test_the_setting_switches_the_judge() -> None:
    assert plain_settings().checks == Checks()
    assert not plain_settings(CAAL_CHECKS="off").checks.needless_calls
    assert plain_settings(CAAL_CHECKS="claims, facts").checks == Checks(
        hedges=False, needless_calls=False, references=False
    )
    assert plain_settings(CAAL_CHECKS="-claims, -facts").checks == Checks(claims=False, facts=False)
    for wrong in ("ask", "claims,-facts", "-ask"):
        with pytest.raises(ConfigError, match=f"'{wrong}' does not fit; write on, off, names of"):
            plain_settings(CAAL_CHECKS=wrong)


def test_the_setting_reaches_the_question_of_an_ordinary_agent() -> None:
    for value in (True, False):
        settings = Settings(checks=Checks(needless_calls=value))
        model = LLM("qwen3:8b", settings=settings)
        asked = model.question(llm.ChatContext.empty(), [])
        assert asked.judges_calls is value


class _Mailbox(CaalAgent):
    def __init__(self, **values: str) -> None:
        super().__init__(settings=plain_settings(**values), tiers={}, instructions="Help.")
        self.checked = 0

    @function_tool
    async def check_mail(self, sender: str) -> str:
        """Tell the person of unread mail."""
        self.checked += 1
        return "no mail"


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_in_a_conversation_a_needless_call_runs_nothing_and_is_answered(
    detection: str,
) -> None:
    agent = _Mailbox(CAAL_DETECTION=detection)
    model = ScriptedModel([ScriptedCall("check_mail", {"sender": "Bob"})], "Shakespeare did.")
    async with AgentConversation(agent, model) as conversation:
        turn = await conversation.say(HAMLET)
    assert (turn.spoken, turn.calls, agent.checked) == ("Shakespeare did.", (), 0)


async def test_in_a_conversation_every_call_runs_where_the_setting_is_off() -> None:
    agent = _Mailbox(CAAL_CHECKS="off")
    model = ScriptedModel([ScriptedCall("check_mail", {"sender": "Bob"})], "There is no mail.")
    async with AgentConversation(agent, model) as conversation:
        await conversation.say(HAMLET)
    assert agent.checked == 1
