"""What a person would hear of replies that are no speech: objects, lists, tags, code that calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.reply_parser import BrokenCall, Reply, SpokenReplyParser, UnspokenData, summarise
from tests.stand_ins.reply_examples import joined

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def _tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    _tool("set_timer", ("minutes",), minutes=WHOLE, label=TEXT),
    _tool("get_weather", ("city",), city=TEXT, days=WHOLE),
    _tool("list_albums"),
    _tool("make_note", ("text",), text=TEXT),
    _tool("turn_on", ("entity",), entity=TEXT),
    _tool("turn_off", ("entity",), entity=TEXT),
]
SIZES = (1, 2, 3, 7, 1_000)
BEFORE = ("", "Sure, one moment.\n", "Sure, one moment.\n\n")


def heard(text: str, size: int = 1_000, tools: list[dict[str, Any]] = TOOLS) -> Reply:
    parser = SpokenReplyParser(tools)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    events += parser.finish()
    assert parser.finish() == []
    whole = SpokenReplyParser(tools)
    assert joined(events) == joined([*whole.feed(text), *whole.finish()])
    return summarise(events)


FIVE: tuple[str, dict[str, Any]] = ("set_timer", {"minutes": 5})
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    '{"name": "list_albums"}': ("list_albums", {}),
    '```json\n{"name": "list_albums"}\n```': ("list_albums", {}),
    '[{"name": "list_albums"}]': ("list_albums", {}),
    "{'name': 'get_weather', 'arguments': {'city': 'Paris'}}": ("get_weather", {"city": "Paris"}),
    "{'name': 'get_weather', 'city': 'Paris'}": ("get_weather", {"city": "Paris"}),
    '{"city": "Paris"}': ("get_weather", {"city": "Paris"}),
    '{"minutes": 5}': FIVE,
    '{"name": "set_timer", // five\n "arguments": {"minutes": 5}}': FIVE,
    '{"name": "set_timer", /* five */ "arguments": {"minutes": 5}}': FIVE,
    '{name: "set_timer", arguments: {minutes: 5}}': FIVE,
    "{name: 'set_timer', arguments: {minutes: 5}}": FIVE,
    "{“name”: “set_timer”, “arguments”: {“minutes”: 5}}": FIVE,
    "{‘name’: ‘set_timer’, ‘arguments’: {‘minutes’: 5}}": FIVE,
    '{"tool":"set_timer","minutes":5}': FIVE,
    '{"name": "set_timer", "minutes": 5}': FIVE,
    '{"tool_name":"set_timer","tool_args":{"minutes":5}}': FIVE,
    '{"call": "set_timer", "with": {"minutes": 5}}': FIVE,
    '{"command": "set_timer", "args": {"minutes": 5}}': FIVE,
    '{"id": "set_timer", "params": {"minutes": 5}}': FIVE,
    '{"method": "set_timer", "params": {"minutes": 5}}': FIVE,
    '{"intent": "set_timer", "slots": {"minutes": 5}}': FIVE,
    '{"thought": "They want tea.", "tool": "set_timer", "minutes": 5}': FIVE,
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
    ' "params": {"name": "set_timer", "arguments": {"minutes": 5}}}': FIVE,
    '["set_timer", {"minutes": 5}]': FIVE,
    '{"name": "set_timer"; "arguments": {"minutes": 5}}': FIVE,
    'functions.set_timer({"minutes": 5})': FIVE,
    "functions.set_timer(minutes=5)": FIVE,
    "tools.set_timer(minutes=5)": FIVE,
    "print(set_timer(minutes=5))": FIVE,
    "await set_timer(minutes=5)": FIVE,
    'call set_timer({"minutes": 5})': FIVE,
    "`set_timer(minutes=5)`": FIVE,
    "set_timer {minutes: 5}": FIVE,
    "set_timer: {'minutes': 5}": FIVE,
    '[set_timer] {"minutes": 5}': FIVE,
    '[TOOL] set_timer {"minutes": 5}': FIVE,
    'Tool: set_timer\nArguments: {"minutes": 5}': FIVE,
    'tool_call: {"name": "set_timer", "arguments": {"minutes": 5}}': FIVE,
    'json\n{"name": "set_timer", "arguments": {"minutes": 5}}': FIVE,
    "<set_timer>5</set_timer>": FIVE,
    "<set_timer minutes=5></set_timer>": FIVE,
    "<set_timer>\n<minutes>5</minutes>\n</set_timer>": FIVE,
    '<tool name="set_timer"><minutes>5</minutes></tool>': FIVE,
    '[Calling tool: set_timer({"minutes": 5})]': FIVE,
    '[set_timer({"minutes": 5})]': FIVE,
    "tool_code = set_timer(minutes=5)": FIVE,
    "result = set_timer(minutes=5)": FIVE,
    'functions.set_timer:0{"minutes": 5}': FIVE,
    'functions.set_timer:12 {"minutes": 5}': FIVE,
}
"""Replies that small models wrote in place of a call, and what they mean."""


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", CALLS)
def test_a_call_in_any_dress_is_made_and_not_spoken(text: str, size: int, before: str) -> None:
    name, arguments = CALLS[text]
    reply = heard(before + text, size)
    assert reply.text.strip() == before.strip()
    assert [(call.name, call.arguments) for call in reply.calls] == [(name, arguments)]
    assert reply.problems == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("behind", ["", " Done.", "</make_note>", "</make_note> Done."])
def test_an_object_behind_a_tools_tag_is_its_call_after_a_sentence(behind: str, size: int) -> None:
    reply = heard(f'Sure. <make_note>{{"text": "milk"}}{behind}', size)
    assert reply.text.split() == ["Sure.", *behind.replace("</make_note>", "").split()]
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("make_note", {"text": "milk"})
    ]
    assert reply.problems == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("inner", ['{"text": "mi', '{"tex": "milk"}'])
def test_what_a_tools_tag_holds_that_it_does_not_take_is_reported(inner: str, size: int) -> None:
    reply = heard(f"Sure. <make_note>{inner}", size)
    assert (reply.text.strip(), reply.calls, len(reply.problems)) == ("Sure.", [], 1)


@pytest.mark.parametrize("size", SIZES)
def test_a_lone_closer_calls_nothing(size: int) -> None:
    assert heard("Done.\n</list_albums>", size) == Reply(text="Done.\n")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("before", ["", "Sure.", "Setting a timer now "])
def test_kimis_calls_are_read_without_its_special_tokens(before: str, size: int) -> None:
    text = 'functions.set_timer:0{"minutes": 5}functions.make_note:1{"text": "tea"}'
    reply = heard(before + text, size)
    assert reply.text.strip() == before.strip()
    assert [call.arguments for call in reply.calls] == [{"minutes": 5}, {"text": "tea"}]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "header", ["<|channel|>analysis", "<|channel|>commentary <|constrain|>json"]
)
def test_the_rest_of_a_header_that_the_prompt_began_may_name_its_channel(
    header: str, size: int
) -> None:
    reply = heard(f' to=functions.set_timer{header}<|message|>{{"minutes": 5}}', size)
    assert (reply.text, reply.problems) == ("", [])
    assert [(call.name, call.arguments) for call in reply.calls] == [FIVE]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("inner", ['{"text": "mi', '{"tex": "milk"}'])
def test_kimis_call_that_cannot_be_made_is_reported(inner: str, size: int) -> None:
    reply = heard(f"Sure. functions.make_note:0{inner}", size)
    assert (reply.text.strip(), reply.calls, len(reply.problems)) == ("Sure.", [], 1)


@pytest.mark.parametrize("size", SIZES)
def test_kimis_call_of_no_tool_is_not_spoken(size: int) -> None:
    reply = heard('Sure. functions.open_door:0{"door": "front"}', size)
    assert (reply.text.strip(), reply.calls) == ("Sure.", [])
    assert reply.problems == [UnspokenData()]


@pytest.mark.parametrize("size", SIZES)
def test_of_a_cut_list_only_what_it_calls_is_reported(size: int) -> None:
    text = "[{'name': 'make_note', 'arguments': {'text': 'list_albums, make_note"
    assert [one.name for one in heard(text, size).problems if isinstance(one, BrokenCall)] == [
        "make_note"
    ]


@pytest.mark.parametrize("size", SIZES)
def test_several_calls_with_an_object_each_are_one_list(size: int) -> None:
    reply = heard('[set_timer({"minutes": 5}), make_note({"text": "tea"})]', size)
    assert [call.name for call in reply.calls] == ["set_timer", "make_note"]


@pytest.mark.parametrize("size", SIZES)
def test_of_a_cut_list_in_pythons_quotes_every_call_is_reported_and_none_is_made(size: int) -> None:
    text = (
        "[{'name': 'list_albums', 'arguments': {}}, {'name': 'make_note', 'arguments': {'text': 'a"
    )
    for end in range(text.index("make_note") + len("make_note"), len(text)):
        reply = heard(text[:end], size)
        assert (reply.text, reply.calls) == ("", [])
        named = [one.name for one in reply.problems if isinstance(one, BrokenCall)]
        assert named == ["list_albums", "make_note"]


THINKING = [
    "<think>{}</thinking>",
    "<thinking>{}</think>",
    "<THINK>{}</think>",
    "<thought>{}</think>",
    "<reasoning>{}</think>",
    "<think>{}</reasoning>",
    "<seed:think>{}</think>",
    "<analysis>{}</think>",
    "<analysis>{}</Analysis>",
    "<analysis>{}</analysis>",
    "<reflection>\n{}\n</reflection>\n",
    "<scratchpad>\n{}\n</scratchpad>\n",
    "<Thoughts>{}</Thoughts>\n",
]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("block", THINKING)
def test_thinking_is_not_spoken_whatever_its_tag(block: str, size: int, before: str) -> None:
    reply = heard(before + block.format("Tea takes five minutes.") + "It is noon.", size)
    assert reply.text.split() == [*before.split(), "It", "is", "noon."]
    assert reply.reasoning == "Tea takes five minutes."
    assert (reply.calls, reply.problems) == ([], [])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "thought",
    [
        "<think>a<thinking>b</thinking>c</think>",
        "<thinking>a<reflection>b</reflection>c</thinking>",
        "<think>a<reasoning>b</reasoning>c</think>",
        "<analysis>a<think>b</think>c</analysis>",
    ],
)
def test_thinking_inside_thinking_ends_with_the_outer_one(thought: str, size: int) -> None:
    assert heard(f"{thought}It is noon.", size).text == "It is noon."


SPOKEN = [
    '{"response": "It is noon."}',
    '{"answer": "It is noon."}',
    '{"message": "It is noon."}',
    "{'speech': 'It is noon.'}",
    '{"role": "assistant", "content": "It is noon."}',
    '{"type": "answer", "reply": "It is noon."}',
    '```json\n{"response": "It is noon."}\n```',
    "<say>It is noon.</say>",
    '<voice name="Ann">It is <b>noon</b>.</voice>',
]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", SPOKEN)
def test_the_words_of_an_object_that_holds_only_them_are_spoken(
    text: str, size: int, before: str
) -> None:
    reply = heard(before + text, size)
    assert reply.text.split() == [*before.split(), "It", "is", "noon."]
    assert (reply.calls, reply.problems) == ([], [])


DATA = [
    '{"temp": 21}',
    '{"name": "Bob", "age": 3}',
    '{"name": "Bob"}\n{"name": "Ann"}',
    '{\n  "temp": 21,\n  "sky": ["blue"]\n}',
    '```json\n{"temp": 21}\n```',
    '```\n["milk", "eggs"]\n```',
    '["milk", "eggs"]',
    "['milk', 'eggs']",
    "[1, 2]",
    '[{"id": 5}]',
    "[]",
    "{}",
    '{"text": "It is noon."}',  # What `make_note` takes, or an answer: nobody knows.
    '{"entity": "lamp"}',  # Two tools take it.
    '{"minutes": "soon"}',
    '{"temp": 21',
    '"arguments": {"minutes": 5}}',
    ', "arguments": {"minutes": 5}}',
    '{"type": "tool',
    '<weather city="Paris"/>',
    "<minutes>5</minutes>",
]
UNKNOWN = ['invalid_tool:0 {"city": "Paris"}', 'home.turn_up({"room": "hall"})', 'a_b {"c": {}}']


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", DATA)
def test_data_is_not_spoken_and_the_model_is_told(text: str, size: int, before: str) -> None:
    reply = heard(before + text, size)
    assert reply.text.strip() == before.strip()
    assert reply.calls == []
    markup = text.endswith("/>") and before
    assert [type(problem) for problem in reply.problems] == ([] if markup else [UnspokenData])


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_object_behind_what_must_be_a_name_is_not_spoken_where_it_comes_whole(text: str) -> None:
    reply = heard(text)
    assert (reply.text, reply.calls, len(reply.problems)) == ("", [], 1)


@pytest.mark.parametrize("size", SIZES)
def test_data_behind_words_in_the_same_line_is_not_spoken(size: int) -> None:
    reply = heard('Here it is: {"temp": 21}', size)
    assert (reply.text.strip(), len(reply.problems)) == ("Here it is:", 1)


@pytest.mark.parametrize("size", SIZES)
def test_words_behind_data_are_spoken(size: int) -> None:
    reply = heard('{"temp": 21\nIt is warm.', size)
    assert (reply.text.strip(), len(reply.problems)) == ("It is warm.", 1)


def test_data_beside_a_call_is_left_out_without_a_word_to_the_model() -> None:
    call = '{"name": "set_timer", "arguments": {"minutes": 5}}'
    for text in (f'{{"temp": 21}}\n{call}', f'{call}\n{{"temp": 21}}'):
        reply = heard(text)
        assert (reply.text.strip(), len(reply.calls), reply.problems) == ("", 1, [])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("data", ['{"temp": 21}', '{"temp": ', "[1, 2]", "<b>", "Well."])
def test_data_in_thinking_is_nothing_that_the_model_is_told_of(data: str, size: int) -> None:
    reply = heard(f"{data}</think>Hello there.", size)
    assert (reply.text, reply.calls, reply.problems) == ("Hello there.", [], [])


def test_a_call_that_names_its_tool_and_cannot_be_read_is_a_broken_one() -> None:
    for text in (
        '{"name"="set_timer", "arguments"={"minutes"=5}}',
        '{"type":"tool","name":"set_timer","arguments":{"minutes":5}\n{"type":"tool',
        'functions.set_timer({"minutes": ',
        '{"tool": "set_timer", "hours": 5}',
        "set_timer(minutes=total + 1)",
    ):
        reply = heard(text)
        assert (reply.text, reply.calls) == ("", [])
        assert [p.name for p in reply.problems if not isinstance(p, UnspokenData)] == ["set_timer"]


HONEST = [
    'The JSON is {"a": 1}, which I cannot read out.',
    'In JSON an object looks like this: {"a": 1}.',
    "[laughs] Sure, I will.",
    "[laughs]",
    "<3 you too, I love you <3",
    "<b>Note</b> that it rains.",
    "<sigh> Well, fine.",
    "- milk\n- eggs\n- [x] bread",
    "{1, 2, 3} is a set of three numbers.",
    "{name} is a placeholder, {smiles} is none.",
    "{{ template }} and {% block %}",
    '"Hello," she said, and left.',
    '"Fire and Ice" is a poem.',
    '"Stop": that is what the sign says.',
    "[1] Berlin, [2] Paris",
    "[Berlin](https://example.org) is large.",
    "Sure! [1, 2] are the numbers.",
    "Use `set_timer` for that; `git status` shows it.",
    '```python\nprint("hi")\n{1: 2}\n```\nThat is it.',
    "5 < 6 and 7 > 3.",
    "Call me at five. Action: we should go. Tool time!",
    "Call me at five.",
    "print is a function.",
    "API stands for something.",
    "Run (fast) home.",
    "set_timer is a tool of mine.",
    "set_timer(minutes=5) is how I would do it.",
    "Use list_albums when you like.",
    "list_albums (all of them)",
    "List: [a, b]",
    "Name: Bob\nAge: 3",
    "I have set it } for you.",
    "1. {one}\n2. [two]",
    "[Verse 1]\nHello my love",
    "Json is a format.",
    "x = {1: 2}",
    "Put it between the <analysis> and the </analysis> tag.",
    "Calling all cars: it is noon.",
    "Analysis: it rains. Reflection: it pours.",
    "Result: two to one.",
    "The garden has two functions. Both are fun.",
    "It is fu",
    "Look at functions.set_timer:0",
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", HONEST)
def test_honest_speech_is_spoken_as_it_is(text: str, size: int) -> None:
    reply = heard(text, size)
    assert (reply.text, reply.calls, reply.problems) == (text, [], [])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
data = st.dictionaries(st.text(min_size=1, max_size=8), values, min_size=1, max_size=4) | st.lists(
    values, max_size=4
)


@given(data, st.sampled_from([json.dumps, repr]), st.sampled_from(BEFORE), st.integers(1, 9))
def test_no_object_and_no_list_is_ever_spoken(
    value: Any, write: Any, before: str, size: int
) -> None:
    reply = heard(before + write(value), size)
    assert (reply.text.strip(), reply.calls) == (before.strip(), [])


@given(st.text(st.sampled_from("ab. ,:;!?'-\n()0")), st.integers(1, 9))
def test_text_without_brackets_quotes_and_names_passes_at_once(text: str, size: int) -> None:
    parser = SpokenReplyParser(TOOLS)
    said = ""
    for at in range(0, len(text), size):
        said += summarise(parser.feed(text[at : at + size])).text
    assert text.startswith(said.rstrip())
    # What white space ends may still be held, and one word that begins as a tool's name does.
    assert len(text.rstrip()) - len(said.rstrip()) <= size + len("ab")


@given(st.text(st.sampled_from('{}[]<>"`/:,ab1 \n='), max_size=60), st.integers(1, 9))
def test_pieces_change_nothing(text: str, size: int) -> None:
    heard(text, size)


@pytest.mark.parametrize("size", [64, 1_024])
@pytest.mark.parametrize("opener", ['{"a": ', "[[", '{"a": "', "```json\n{", "<set_timer>"])
def test_what_never_ends_is_not_spoken_however_long_it_is(opener: str, size: int) -> None:
    reply = heard(opener + '"b", 1 ' * 4_000, size)
    assert reply.text.strip() == ""
    assert len(reply.problems) == 1


@pytest.mark.parametrize(
    "text",
    [
        "{response: call " + "[call " * 1_300 + "}",
        '{"a": ' * 1_600,
        "{a: " + "[" * 5_000,
        "<a>" * 2_500,
    ],
)
def test_what_nests_as_deep_as_it_may_be_long_is_read(text: str) -> None:
    assert heard(text).calls == []


def test_without_tools_a_reply_is_what_it_is() -> None:
    assert heard('{"temp": 21}', tools=[]).text == '{"temp": 21}'
