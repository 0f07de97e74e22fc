"""Calls that a marker broke: they are neither made nor spoken, and what is no part of them is.

And what a marker leaves behind elsewhere: read again as a reply, what was spoken means the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from caal_node.reply_parser import (
    BrokenCall,
    Event,
    Reply,
    ReplyParser,
    TextDelta,
    parse_reply,
    summarise,
)
from caal_node.reply_parser.formats import MARKERS
from tests.stand_ins.reply_examples import TOOLS

TIME = '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
SET: tuple[str, dict[str, Any]] = ("set_timer", {"minutes": 5})
GET: tuple[str, dict[str, Any]] = ("get_time", {})

# (reply, what is spoken, white space aside): `get_time` is called, and the broken call is told.
AROUND_A_CALL = [
    ('{"name": "set_%s timer", "arguments": {"minutes": 5}}', ""),
    ('{"name": "set_%s_timer", "arguments": {"minutes": 5}} It is noon.', "It is noon."),
    ('Now. {"name": "a%sb", "arguments": {"x": {"y": [1, 2]}}}', "Now."),
    ('{"na%sme": 1', None),
    ('[{"name": "set_%stimer", "arguments": {"minutes": 5}}, {"name": "b"}]\nWell.', "Well."),
    ('{"calls": [{"name": "set_%stimer", "arguments": {"minutes": 5}}]}', ""),
    ('{"type": "function", "function": {"name": "set_%stimer", "arguments": {}}}', ""),
    ('{"name": "set_timer2", "argu%sments": {"minutes": 5}}', ""),
    ('{"name": "set_%stimer", "arguments": {"minutes":', ""),
    ('{\n  "name": "set_%stimer",\n  "arguments": {\n    "minutes": 5\n  }\n}\nDone.', "Done."),
    ('```json\n{"name": "set_%stimer", "arguments": {"minutes": 5}}\n```\nDone.', "Done."),
    ('```json\n[{"name": "set_%stimer", "arguments": {"minutes": 5}}]\n```', ""),
    ('<tools>{"name": "set_%stimer", "arguments": {"minutes": 5}}</tools> Done.', "Done."),
    ('set_timer(minutes=5, %slabel="tea")', ""),
    ('set_timer(minutes=5, %slabel="tea")\nDone.', "Done."),
    ("[set_timer(%sminutes=5)] All is set.", "All is set."),
    ('{"name": "set_%s I have looked at the clock.', "I have looked at the clock."),
    ('{"name": "set_%s\nIt is noon.', "It is noon."),
    ('{"name": "set_%s 现在是中午。', "现在是中午。"),
    ('{"name": "set_%s{"name": "set_%stimer", "arguments": {"minutes": 5}}', ""),
    ('<set_timer minutes="5" label="a %s tea"/>', ""),
    ('<set_timer %sminutes="5">\nDone.', "Done."),
]
BROKEN = [(text.replace("%s", TIME), said) for text, said in AROUND_A_CALL if said is not None]

# Spoken as they stand, but for the markers: JSON that was asked for, samples, prose.
SPEECH = [
    ('{"name": "Bob", "token": "<|im_start|>"}', '{"name": "Bob", "token": " – "}'),
    ('{"name": "Bob", "age": 7 <|end|>', '{"name": "Bob", "age": 7'),
    ('{"city": "Par<|end|>is" now}', '{"city": "Par – is" now}'),
    ('As in {"name": "x<|end|>y" 5} above.', 'As in {"name": "x – y" 5} above.'),
    ('For example, {"name": "x<|end|>y" 5}.', 'For example, {"name": "x – y" 5}.'),
    ('```python\nset_timer(f"<tool_call>{x}")\n```', '```python\nset_timer(f" {x}")\n```'),
    ('[\n{"name": "Bob" ; "age": 7},\n{"a": 1}]', '[\n{"name": "Bob" ; "age": 7},\n{"a": 1}]'),
    ('set_timer(label="<|x|>") would do.', 'set_timer(label=" – ") would do.'),
]

# Each was speech that closed up into a call, or into other speech, once its markers were left out.
LEFT_BEHIND = [
    'An exampl<|tool call begin|>e of it:\n{"name":"set_timer","arguments":{"minutes":5}}',
    "For example,</think> [open_door(side='left')]\n",
    "Well, then.</think> [open_door(side='left')]\n",
    'Action: <param name="set_timer\nAction Input: {"minutes": 5}',
    'Action: set_timer\n<|tool▁call▁begin|>Action Input: {"minutes": 5}>get_time',
    f'Action: set_timer\n{TIME}Action Input: {{"minutes": 5}}',
    f'set_timer\n{TIME}\n{{"minutes": 5}}',
    f"set_timer{TIME}(minutes=5)",
    ">>><|channel|>all\nOne moment.",
    f">>>{TIME}all\nOne moment.",
    "functools[needle</arg_value>\n.",
    '```xml<thinking>\n<tool_call>{"name":"set_timer","arguments":{"m any tool calls.',
    'Sure!\n```\n</think>{"name":"set_timer","arguments":{"minutes":5}}\n```\nThere.',
    "Action:\n```json[/TOOL_RESULTS]\n[{\"toI'll see.<｜tool▁call<tool_call>test",
    '{"name":"set_```json\n{"name":"set_timer","arguments":{"minutes":5}}\n```timer","a":{}}',
    "<|start<tool_use>|>assistant<|channel|>to=functions.set_timer <|const:5}<|call|>",
    # Found later, by other seeds and by fragments put together.
    "set_timer(minutes=5)[THINK]Hm.</think>",
    "set_timer(minutes=5)[set_timer(<thought><|tool_call|>",
    "<user><|pytho<think>Hm.</think>n_start|>[set_timer(minutes=5)]<|python_end|>",
    "<tool_use>Action:<longcat_arg_value>set_timer(minutes=5)<|tool_call_begin|>",
    "| <tool_sep><functioncall><|END_ACTION|>set_timer(",
    "<functioncall>end_of_turn><tool_response>minutes=5<｜tool call begin｜><tool>",
    "</seed:tool_call><json>TOOL_CALLS]<functioncall><|sep|>For example, ",
    "functools[<|tool calls begin|>>>>all\nWell.",
    '```json\nget_time<|open|>{"zone": "UTC"}',
    "\n```]<]minimax[>[<json><|start|>",
    ":<xml><longcat_arg_value>: set_timer {",
    'x> {"name": "get_time", "a>{"name":"set_timer","arguments":{"minutes":5}}',
    '{"name": "get_time", "ar<|close|>":5}}\n{"name": "get_time", "ar<|close|>guments":\n',
    '{"name": "ge<|"|>t_weather", "parameters": {"city": "Paris"}}',
    '{"name": "ge<param name="t_address","arguments": {"location": "London"}}',
]


def events_of(text: str, size: int) -> list[Event]:
    parser = ReplyParser(TOOLS)
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += parser.feed(text[start : start + size])
    return events + parser.finish()


def calls(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in reply.calls]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_nothing_of_a_broken_call_is_spoken(text: str, said: str) -> None:
    reply = parse_reply(text, TOOLS)
    assert reply.text.strip() == said
    assert set(map(str, calls(reply))) == {str(GET)}
    assert {type(problem) for problem in reply.problems} == {BrokenCall}


@pytest.mark.parametrize(("text", "said"), SPEECH)
def test_what_was_no_call_stays_speech(text: str, said: str) -> None:
    reply = parse_reply(text, TOOLS)
    assert " ".join(reply.text.split()) == " ".join(said.split())
    assert reply.problems == []
    assert calls(reply) == []


@pytest.mark.parametrize("text", [*(text for text, _ in (*BROKEN, *SPEECH)), *LEFT_BEHIND])
def test_what_was_spoken_means_the_same_read_again(text: str) -> None:
    said = parse_reply(text, TOOLS).text
    said = said[: MARKERS.partial_start(said)]  # A marker's beginning at the very end is dropped.
    again = parse_reply(said, TOOLS)
    assert again.text.strip() == said.strip()
    assert again.calls == []
    assert again.problems == []


@pytest.mark.parametrize("text", [*(text for text, _ in (*BROKEN, *SPEECH)), *LEFT_BEHIND])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_chunks_give_what_the_whole_gives(text: str, size: int) -> None:
    assert summarise(events_of(text, size)) == parse_reply(text, TOOLS)


@pytest.mark.parametrize(
    ("text", "made", "said"),
    [
        ('Action:</ifm|arg_key> set_timer\nAction Input: {"minutes": 5}', [SET], ""),
        ('Action: set_timer\n<|tool▁call▁begin|>Action Input: {"minutes": 5}', [SET], ""),
        (' set_timer\nAction Input: {"minutes": 5}', [SET], ""),
        (f"Action: {TIME} Done.", [GET], "Done."),
        ('set_timer<|message|>{"minutes": 5}', [SET], ""),
        (">>></longcat_arg_key>all\nOne moment.", [], "One moment."),
        ('```json\n<|x|>{"name": "set_timer", "arguments": {"minutes": 5}}\n```', [SET], ""),
        ('<tool_call></s>{"name": "set_timer", "arguments": {"minutes": 5}}', [SET], ""),
        ('[TOOL_CALLS]set_timer[ARGS]{"minutes": 5}[TOOL_RESULTS]', [SET], ""),
    ],
)
def test_a_marker_that_means_nothing_does_not_hide_a_call(
    text: str, made: list[tuple[str, dict[str, Any]]], said: str
) -> None:
    reply = parse_reply(text, TOOLS)
    assert calls(reply) == made
    assert reply.text.strip() == said
    assert reply.problems == []


def test_thinking_that_was_taken_for_speech_makes_nothing_an_example() -> None:
    text = 'For example, so</think>{"name":"set_timer","arguments":{"minutes":5}}'
    reply = parse_reply(text, TOOLS)
    assert calls(reply) == [SET]


def test_a_header_that_comes_twice_is_read_twice_in_any_chunks() -> None:
    text = " to=self<|message|> to=self<|message|>Look.<|eom|>"
    whole = summarise(events_of(text, len(text)))
    assert all(summarise(events_of(text, size)) == whole for size in range(1, 12))
    assert whole.reasoning.startswith("to=self")


def test_a_call_that_begins_anew_inside_a_broken_one_is_made() -> None:
    text = 'x> {"name": "get_time", "a>{"name":"set_timer","arguments":{"minutes":5}}'
    reply = parse_reply("Now:\n" + text[3:] + " Set.", TOOLS)
    assert calls(reply) == [SET]
    assert reply.text.split() == ["Now:", "Set."]


def test_a_leaked_closer_swallows_no_speech() -> None:
    assert parse_reply("It is noon.<|close|> And warm.\nWell.", TOOLS).text.split()[3:] == [
        "And",
        "warm.",
        "Well.",
    ]


def test_words_in_front_of_a_tools_name_are_no_namespace() -> None:
    assert parse_reply("<tools>please use functions.set_timer <x>", TOOLS).problems == []


def test_speech_behind_a_broken_call_is_held_back_for_a_line_at_most() -> None:
    parser = ReplyParser(TOOLS)
    held = parser.feed('{"name": "set_", <|end|>' + "It is noon and " * 8)
    assert [type(event) for event in held] == [BrokenCall]
    assert summarise(parser.feed("It is noon and " * 4)).text.startswith("It is noon")
    assert parser.feed("all is well") == [TextDelta("all is well")]


@pytest.mark.parametrize(
    ("reply", "spoken"),
    [
        ('{"name":"set_timer","arg', ""),
        ('{"name":"set_ti', ""),
        ('One moment.\n{"name": "set_timer"', "One moment."),
        ('{"type":"function","function":{"na', ""),
        ('[{"name":"get_time"', ""),
        ('{"calls":[{"<|END_THIN', ""),
        ('```json\n{"name":"set_timer","arg', ""),
    ],
)
def test_a_call_that_the_reply_ends_in_is_told_and_not_spoken(reply: str, spoken: str) -> None:
    for size in range(1, len(reply) + 1):
        parser = ReplyParser(TOOLS)
        events = [
            event
            for at in range(0, len(reply), size)
            for event in parser.feed(reply[at : at + size])
        ]
        found = summarise([*events, *parser.finish()])
        assert found.text.strip() == spoken
        assert [type(problem) for problem in found.problems] == [BrokenCall]


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "Bob", "age": 5',
        '{"title": "Bob',
        'Here you are:\n{"name": "Bob"',
        '[{"name": "Bob"',
        '```json\n{"tool": "hammer"',
        '{"function": "f(x) = 2x"',
        '{"name": "Bob} is what ' + "they wrote, and so on, " * 6,
        'For example, {"name": "set_timer", "arg',
        '```python\nx = {"name": "set_timer", "arg',
        "You could write [set_timer(minu",
    ],
)
def test_what_else_a_reply_may_end_in_is_spoken(reply: str) -> None:
    found = parse_reply(reply, TOOLS)
    assert found.text == reply
    assert not found.problems


@pytest.mark.parametrize(
    ("reply", "spoken"),
    [
        ('{"name": "get_time}\n\nIt is noon.', "It is noon."),
        ('One moment. {"name": "get_time}\nIt is noon.', "One moment. \nIt is noon."),
        ('```json\n{"name": "get_time}\n```\nIt is noon.', "It is noon."),
        ('{"action": "turn left}\n\nAnd that is all.', "And that is all."),
    ],
)
def test_a_quote_that_is_missing_swallows_no_speech_behind_it(reply: str, spoken: str) -> None:
    found = parse_reply(reply, TOOLS)
    assert found.text.strip() == spoken
    assert [type(problem) for problem in found.problems] == [BrokenCall]


def test_a_long_word_behind_a_call_is_read_alike_in_any_pieces() -> None:
    reply = "[get_time()," + "x" * 160 + "]"
    parser = ReplyParser(TOOLS)
    events = [event for char in reply for event in parser.feed(char)]
    assert summarise([*events, *parser.finish()]) == parse_reply(reply, TOOLS)
