"""Ways of asking: what stands in the prompt, how it grows, and what a reply may hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.config.setting_tables import TextLimits
from caal_node.context.schemas import catalogue
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.core.tool_spec import Example
from caal_node.models.backends.base import GeneratedToken, ReplyDone, TextChunk, Usage
from caal_node.models.backends.tool_calls import to_messages
from caal_node.models.question import Question
from caal_node.models.retry_policy import repaired
from caal_node.models.strategies import (
    CallStrategy,
    JsonReplyStrategy,
    PlainStrategy,
    TextProtocolStrategy,
)
from caal_node.models.strategies.base import may_call
from caal_node.models.strategies.prompt import (
    EXAMPLE_TOKENS,
    STYLES,
    OneObjectStyle,
    outline,
    protocol_prompt,
)
from caal_node.models.strategies.text_protocol import line_schema, reply_schema
from caal_node.reply_parser import (
    BrokenCall,
    TextDelta,
    UnknownCall,
    parse_reply,
    summarise,
)


def tool(name: str, description: str = "", required: tuple[str, ...] = (), **props: Any) -> Any:
    parameters = {"type": "object", "properties": props, "required": list(required)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TIMER: Final = tool(
    "set_timer",
    "Start a timer.",
    ("minutes",),
    minutes={"type": "number", "description": "how long"},
    label={"type": "string"},
)
MUSIC: Final = tool("play_music", "Play a song or an artist.", ("query",), query={"type": "string"})
LIGHT: Final = tool(
    "set_light",
    "Switch a lamp.",
    ("room", "state"),
    room={"type": "string"},
    state={"enum": ["on", "off"]},
)
TOOLS: Final = (TIMER, MUSIC, LIGHT)
EXAMPLES: Final = {
    "set_timer": (Example("ten minutes for the pasta", {"minutes": 10, "label": "pasta"}),),
    "play_music": (Example("put on some jazz", {"query": "jazz"}),),
}
SYSTEM: Final = SystemItem("You help.")


def question(*items: Item, **given_: Any) -> Question:
    return Question((SYSTEM, *items), PromptTools(TOOLS, EXAMPLES), **given_)


strategies = pytest.mark.parametrize(
    "strategy",
    [
        JsonReplyStrategy(),
        TextProtocolStrategy(),
        TextProtocolStrategy(constrain=True),
        TextProtocolStrategy("xml"),
        TextProtocolStrategy("markdown-json"),
    ],
    ids=["json_reply", "jsonl", "jsonl+schema", "xml", "markdown-json"],
)


# -- the prompt only grows -------------------------------------------------------------------

_words = st.text(max_size=20)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _turn(draw: st.DrawFn) -> list[list[Item]]:
    """One turn as the requests see it: each list is what is new at that request."""
    rounds: list[list[Item]] = [[UserItem(draw(_words))]]
    for number in range(draw(st.integers(0, 3))):
        names = draw(st.lists(st.sampled_from(["set_timer", "play_music"]), min_size=1, max_size=3))
        ids = [f"c{number}_{n}" for n in range(len(names))]
        new: list[Item] = [
            CallItem(i, name, json.dumps({"minutes": draw(st.integers(0, 9))}))
            for i, name in zip(ids, names, strict=True)
        ]
        new += [
            ResultItem(i, name, json.dumps(draw(_values)), is_error=draw(st.booleans()))
            for i, name in zip(ids, names, strict=True)
        ]
        rounds.append(new)
    return rounds


def _sent(strategy: CallStrategy, items: list[Item]) -> list[Any]:
    request = strategy.request(question(*items))
    return to_messages(request.items, lambda call, index: {}, lambda result: {})


@strategies
@given(turns=st.lists(st.tuples(_turn(), _words), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_request_is_the_beginning_of_the_next_one(
    strategy: CallStrategy, turns: list[tuple[list[list[Item]], str]]
) -> None:
    items: list[Item] = []
    before: list[Any] = []
    for rounds, answer in turns:
        for new in rounds:
            items += new
            sent = _sent(strategy, items)
            assert sent[: len(before)] == before
            before = sent
        items.append(AssistantItem(answer))


@strategies
def test_the_head_does_not_depend_on_what_is_asked(strategy: CallStrategy) -> None:
    first = strategy.request(question(UserItem("five minutes please"))).items
    other = strategy.request(question(UserItem("play jazz and dim the lights"))).items
    assert first[:-1] == other[:-1]


def test_a_repair_stands_at_the_end_and_says_what_is_valid() -> None:
    asked = question(UserItem("wake me"))
    told = repaired(asked, [UnknownCall("alarm", ("set_timer",)), BrokenCall("1", "x", "cut off")])
    assert told.items[: len(asked.items)] == asked.items
    for strategy in (JsonReplyStrategy(), TextProtocolStrategy()):
        before, after = strategy.request(asked).items, strategy.request(told).items
        assert after[: len(before)] == before
        last = after[-1]
        assert isinstance(last, UserItem)
        assert "set_timer" in last.text
        assert "cut off" in last.text


def test_without_problems_the_same_question_is_asked() -> None:
    asked = question(UserItem("wake me"))
    assert repaired(asked, []) is asked


# -- the head --------------------------------------------------------------------------------


def test_the_catalogue_has_name_two_lines_and_schema() -> None:
    nested = tool(
        "order",
        "Order things. " + "It goes on and on about how it works. " * 20,
        ("lines",),
        lines={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["sku"],
            },
        },
        gift={"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        pace={"enum": ["slow", "fast"], "description": "how fast"},
    )
    (name, schema) = catalogue([nested]).split("\n")
    assert name.startswith("- order: Order things.")
    assert len(name) < 200
    assert schema.strip() == (
        '{lines: [{sku: string, count?: integer}], gift?: boolean|null, pace?: "slow"|"fast" '
        "(how fast)}"
    )


@given(_values)
def test_no_schema_breaks_the_catalogue(schema: Any) -> None:
    odd = tool("odd", "", x=schema)
    assert catalogue([odd]).startswith("- odd")
    line_schema([odd])
    reply_schema([odd])


def test_examples_are_chat_turns_one_round_of_each_tool_before_the_second() -> None:
    many = {
        name: tuple(Example(f"{name} {n}", {}) for n in range(9))
        for name in ("set_timer", "play_music")
    }
    asked = replace(question(UserItem("hi")), tools=PromptTools(TOOLS, many))
    said = [
        item.text
        for item in TextProtocolStrategy().request(asked).items
        if isinstance(item, UserItem)
    ]
    shown = [text for text in said if text.startswith(("set_timer", "play_music"))]
    assert shown == [f"{name} {n}" for n in range(3) for name in ("set_timer", "play_music")]


def test_many_tools_share_the_room_for_examples() -> None:
    tools = tuple(tool(f"tool_{n}") for n in range(200))
    examples = {f"tool_{n}": (Example("words " * 10, {}),) * 3 for n in range(200)}
    asked = Question((SYSTEM, UserItem("hi")), PromptTools(tools, examples))
    items = protocol_prompt(asked, STYLES["jsonl"], may_call=True, with_dialogues=False)
    from caal_node.context.token_estimate import items_tokens

    assert items_tokens(items[1:-1]) < EXAMPLE_TOKENS + 300
    assert len(items) > 20


def test_dialogues_with_tools_of_no_table_are_shown_only_under_a_schema() -> None:
    asked = question(UserItem("hi"))
    assert "next_train" in str(JsonReplyStrategy().request(asked).items)
    assert "next_train" in str(TextProtocolStrategy(constrain=True).request(asked).items)
    for free in (
        TextProtocolStrategy(),
        TextProtocolStrategy("xml"),
        TextProtocolStrategy("markdown-json"),
    ):
        assert "next_train" not in str(free.request(asked).items)
        assert free.request(asked).schema is None


@pytest.mark.parametrize(
    "style", [*STYLES.values(), OneObjectStyle()], ids=lambda s: type(s).__name__
)
def test_what_a_style_writes_is_understood(style: Any) -> None:
    calls = [("set_timer", {"minutes": 5}), ("play_music", {"query": 'say "hi"\n{ok}'})]
    reply = parse_reply(style.calls(calls), list(TOOLS))
    assert [(call.name, call.arguments) for call in reply.calls] == calls
    assert parse_reply(style.speech("It is 5 o'clock."), list(TOOLS)).text == "It is 5 o'clock."


# -- limits ----------------------------------------------------------------------------------


def _round(n: int, calls: int = 1) -> list[Item]:
    made: list[Item] = [CallItem(f"{n}.{c}", "set_timer", "{}") for c in range(calls)]
    return [*made, *(ResultItem(f"{n}.{c}", "set_timer", "1") for c in range(calls))]


def _rounds(count: int) -> list[Item]:
    return [item for n in range(count) for item in _round(n)]


def test_a_turn_ends_after_so_many_replies() -> None:
    go, limits = UserItem("go"), TextLimits(replies=8)
    for items, may in (
        ((go, *_rounds(7)), True),
        ((go, *_rounds(8)), False),
        ((go, *_rounds(8), UserItem("again")), True),
    ):
        assert may_call(Question(items, limits=limits)) is may


def test_after_the_limits_only_speech_is_in_reach() -> None:
    request = JsonReplyStrategy().request(question(UserItem("go"), *_rounds(8)))
    assert request.schema == reply_schema(())
    last = request.items[-1]
    assert isinstance(last, UserItem)
    assert "No more tools" in last.text


def _read(strategy: CallStrategy, asked: Question, *pieces: str) -> list[Any]:
    reader = strategy.reader(asked)
    return [e for piece in pieces for e in reader.feed(TextChunk(piece))] + reader.finish()


def test_a_long_list_is_told_by_its_structure_and_its_ids() -> None:
    rows = [{"id": n, "name": f"hotel {n}", "about": "x" * 200} for n in range(200)]
    told = outline(rows, 1_000)
    assert len(json.dumps(told)) <= 1_000
    assert told["count"] == 200
    assert told["fields"] == ["id", "name", "about"]
    assert told["ids"][:3] == [0, 1, 2]
    assert "hotel 0" in told["first"]
    wrapped = outline({"total": 200, "hotels": rows}, 1_000)
    assert wrapped["total"] == 200
    assert wrapped["hotels"]["count"] == 200


@given(_values, st.integers(200, 2_000))
def test_an_outline_fits_and_what_fits_is_unchanged(value: Any, room: int) -> None:
    told = outline([value] * 40, room)
    assert len(json.dumps(told, ensure_ascii=False)) <= room + 2
    if len(json.dumps(value, ensure_ascii=False)) <= room:
        assert outline(value, room) == value


# -- the JSON reply ----------------------------------------------------------------------------


def _names(schema: Any) -> list[str]:
    calls = schema["anyOf"][0]["properties"]["calls"]["items"]["anyOf"]
    return [call["properties"]["name"]["const"] for call in calls]


UNSEEN: Final = (
    "what was the plumber's phone number again, I wrote it down",
    "put on some relaxing jazz in the kitchen",
    "that's way too loud, turn it down a bit",
    "how late is it in Tokyo",
    "set a timer for five minutes and play some jazz",
    "yes",
)


@pytest.mark.parametrize("said", UNSEEN)
@pytest.mark.parametrize("after", [(), tuple(_round(1))], ids=["first", "after a result"])
def test_the_grammar_allows_every_tool_of_the_prompt(said: str, after: tuple[Item, ...]) -> None:
    others = (
        tool("add_note", "Write down a note.", text={"type": "string"}),
        tool("find_note", "Search in what was noted.", query={"type": "string"}),
        tool("set_volume", "Volume of the speaker.", percent={"type": "integer"}),
        tool("get_weather", "How it is outside in a city.", city={"type": "string"}),
        tool("world_clock", "Hours and minutes at a place.", place={"type": "string"}),
    )
    tools = PromptTools((*TOOLS, *others), EXAMPLES)
    request = JsonReplyStrategy().request(Question((SYSTEM, UserItem(said), *after), tools))
    assert _names(request.schema) == list(tools.names)
    schema: Any = request.schema
    two = said.startswith("set a timer") and not after
    assert schema["anyOf"][0]["properties"]["calls"]["minItems"] == 1 + two
    assert schema["anyOf"][1]["properties"].keys() == {"say"}


def test_speech_goes_out_as_it_is_generated() -> None:
    reader = JsonReplyStrategy().reader(question(UserItem("hi"), *_round(1)))
    heard = [
        "".join(e.text for e in reader.feed(TextChunk(piece)) if isinstance(e, TextDelta))
        for piece in ('{"say": "', "It ", "is ", "su", "nny", '."}')
    ]
    assert heard[1:5] == ["It ", "is ", "su", "nny"]


def _odds(calls: float, say: float, chosen: str) -> TextChunk:
    tops = (("calls", calls), ("say", say))
    return TextChunk(f'{{"{chosen}', (GeneratedToken('{"', ()), GeneratedToken(chosen, tops)))


@pytest.mark.parametrize(
    ("calls", "say", "chosen", "doubt"),
    [(-0.1, -9.0, "calls", None), (-0.6, -0.8, "calls", "unsure"), (-9.0, -0.1, "say", None)],
)
def test_a_call_that_the_model_holds_for_unlikely_is_doubted(
    calls: float, say: float, chosen: str, doubt: str | None
) -> None:
    strategy = JsonReplyStrategy(call_threshold=7.0)
    reader = strategy.reader(question(UserItem("hello")))
    reader.feed(_odds(calls, say, chosen))
    assert reader.doubt == doubt


def test_a_server_without_odds_is_believed() -> None:
    reader = JsonReplyStrategy().reader(question(UserItem("set a timer for 5 minutes")))
    reader.feed(TextChunk('{"calls": [{"name": "set_timer", "arguments": {"minutes": 5}}]}'))
    assert reader.doubt is None


def test_a_required_number_that_nobody_said_is_asked_for() -> None:
    reply = '{"calls": [{"name": "set_timer", "arguments": {"minutes": 5}}]}'
    events = _read(JsonReplyStrategy(), question(UserItem("set a timer please")), reply)
    assert events == [TextDelta("For that I still need to know how long.")]


def test_a_call_that_can_be_made_is_made_beside_one_that_cannot() -> None:
    reply = (
        '{"calls": [{"name": "set_timer", "arguments": {"minutes": 5}}, '
        '{"name": "play_music", "arguments": {"query": "soul"}}]}'
    )
    told = summarise(
        _read(JsonReplyStrategy(), question(UserItem("set a timer and play soul")), reply)
    )
    assert [call.name for call in told.calls] == ["play_music"]
    assert told.text == ""


def test_asking_again_after_a_doubt_changes_the_grammar_alone() -> None:
    asked = question(UserItem("hello"))
    spoken = JsonReplyStrategy(speech_only=True).request(asked)
    assert spoken.schema == reply_schema(())
    assert spoken.items == JsonReplyStrategy().request(asked).items


def test_plain_shows_results_as_words_where_the_template_has_no_place_for_them() -> None:
    items = PlainStrategy(as_text=True).request(question(UserItem("go"), *_round(1))).items
    assert not any(isinstance(item, CallItem | ResultItem) for item in items)
    assert items[-1] == UserItem("(set_timer: 1)", "")


def test_the_end_of_a_reply_is_no_event() -> None:
    assert (
        JsonReplyStrategy().reader(question(UserItem("x"))).feed(ReplyDone("stop", Usage())) == []
    )


def test_a_grammar_is_asked_for_as_many_arguments_as_it_can_hold() -> None:
    properties = {f"parameter_{n}": {"type": "string"} for n in range(2_000)}
    function = {"name": "wide", "parameters": {"type": "object", "properties": properties}}
    written = json.dumps(reply_schema([{"type": "function", "function": function}]))
    assert "parameter_1" not in written
    assert '"wide"' in written


FREE: Any = {
    "type": "function",
    "function": {
        "name": "feed_hens",
        "description": "Feeds the hens.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": True},
    },
}


def test_a_tool_that_takes_anything_shows_it_as_text_and_in_the_grammar() -> None:
    assert catalogue([FREE]).endswith("{any arguments}")
    schema = json.dumps(reply_schema([FREE]))
    assert '"arguments": {"type": "object"}' in schema


@pytest.mark.parametrize(
    "given", [{"city": "Oslo"}, {"name": "Anna", "input": "x"}, {"input": {"a": 1}}]
)
def test_what_a_tool_that_takes_anything_is_given_stays_unchanged(given: dict[str, Any]) -> None:
    reply = json.dumps({"name": "feed_hens", "arguments": given})
    (call,) = parse_reply(f"<tool_call>{reply}</tool_call>", [FREE]).calls
    assert call.arguments == given
