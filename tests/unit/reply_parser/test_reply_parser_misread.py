"""Classes of replies that were misread, each as a family of texts and not as one sample.

Every family says what its texts mean. Each text is read whole and in pieces of every size, alone
and behind speech, with the tools known and without.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.reply_parser import Reply, ReplyParser, parse_reply, summarise
from caal_node.reply_parser.markers import THINKING_CLOSERS
from tests.stand_ins.reply_examples import joined

pytestmark = pytest.mark.long


def _tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": schema},
    }


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
TEXTS, WHOLES = {"type": "array", "items": TEXT}, {"type": "array", "items": WHOLE}
TOOLS = [
    _tool("set_timer", ("minutes",), minutes=WHOLE, label=TEXT, tags=TEXTS, days=WHOLES),
    _tool("get_time", zone=TEXT),
    _tool("stop"),
    _tool("model_1.0", x=WHOLE),
]

minutes = st.integers(0, 999)
words = st.from_regex(r"[A-Za-z]{1,8}( [A-Za-z]{1,8}){0,2}", fullmatch=True)
byte_spaces = st.sampled_from([" ", "Ġ", "▁", ""])
Call = tuple[str, dict[str, Any]]


def calls_of(reply: Reply) -> list[Call]:
    return [(call.name, call.arguments) for call in reply.calls]


def read(text: str, size: int, tools: list[dict[str, Any]]) -> Reply:
    """Read `text` in pieces of `size`, and check that it means what it means whole."""
    parser = ReplyParser(tools)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    events += parser.finish()
    whole = ReplyParser(tools)
    assert joined(events) == joined([*whole.feed(text), *whole.finish()])
    return summarise(events)


def family(*names: str) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("form", names)


SIZES = st.integers(1, 9)
BEFORE = st.sampled_from(["", "One moment.\n"])


def element_call(form: str, space: str, number: int) -> str:
    kind, inner = {"function": ("function", "parameter"), "short": ("function", "param")}.get(
        form, ("invoke", "parameter")
    )
    bar = "｜DSML｜" if form == "dsml" else ""
    typed = f'{space}string="false"' if bar else ""
    opened = f'<{bar}{kind}{space}name="set_timer">\n<{bar}{inner}{space}name="minutes"{typed}>'
    call = f"{opened}{number}</{bar}{inner}>\n</{bar}{kind}>"
    wrap = {"dsml": "｜DSML｜function_calls", "wrapped": "tool_call"}.get(form)
    return f"<{wrap}>{call}</{wrap}>" if wrap else call


@family("function", "short", "invoke", "dsml", "wrapped")
@given(byte_spaces, minutes, SIZES, BEFORE)
def test_an_attribute_may_be_glued_to_its_tag_or_stand_behind_a_byte_level_space(
    form: str, space: str, number: int, size: int, before: str
) -> None:
    reply = read(before + element_call(form, space, number), size, TOOLS)
    assert calls_of(reply) == [("set_timer", {"minutes": number})]
    assert reply.text.strip() == before.strip()


@given(st.sampled_from(["▁", "_", " ", "Ġ"]), st.booleans(), st.booleans(), minutes, SIZES)
def test_a_block_of_deepseeks_has_all_its_calls_whether_or_not_its_tools_are_known(
    space: str, old: bool, known: bool, number: int, size: int
) -> None:
    def call(name: str, arguments: dict[str, Any]) -> str:
        sep, text = f"<｜tool{space}sep｜>", json.dumps(arguments)
        inner = f"function{sep}{name}\n```json\n{text}\n```" if old else f"{name}{sep}{text}"
        return f"<｜tool{space}call{space}begin｜>{inner}<｜tool{space}call{space}end｜>"

    made: list[Call] = [("set_timer", {"minutes": number}), ("get_time", {"zone": "UTC"})]
    block = "\n".join(call(*one) for one in made)
    text = f"<｜tool{space}calls{space}begin｜>{block}<｜tool{space}calls{space}end｜>"
    reply = read(text, size, TOOLS if known else [])
    assert (calls_of(reply), reply.text) == (made, "")


@given(
    st.sampled_from(["", " ", "[ARGS]"]),
    st.sampled_from(["", ", ", "[TOOL_CALLS]"]),
    st.booleans(),
    minutes,
    SIZES,
)
def test_a_name_right_in_front_of_its_json_is_a_call_of_mistrals(
    behind_name: str, between: str, known: bool, number: int, size: int
) -> None:
    first = f'[TOOL_CALLS]set_timer{behind_name}{{"minutes": {number}}}'
    text = first + between + f'get_time{behind_name}{{"zone": "UTC"}}'
    reply = read(text, size, TOOLS if known else [])
    assert calls_of(reply) == [("set_timer", {"minutes": number}), ("get_time", {"zone": "UTC"})]
    assert reply.text == ""


@st.composite
def quoted_words(draw: st.DrawFn) -> tuple[str, str]:
    """A Python string with quotes of its own in it, not escaped, and what it means."""
    quote = draw(st.sampled_from("'\""))
    inner = draw(
        st.sampled_from([f"it{quote}s tea", f"say {quote}hi{quote} now", f"the kids{quote} tea"])
    )
    return f"{quote}{inner}{quote}", inner


@family("[{}]", "<|tool_call_start|>[{}]<|tool_call_end|>", "{}\n")
@given(quoted_words(), st.booleans(), minutes, SIZES)
def test_a_quote_that_words_follow_is_a_part_of_its_string(
    form: str, label: tuple[str, str], first: bool, number: int, size: int
) -> None:
    written, meant = label
    parts = [f"label={written}", f"minutes={number}"]
    text = form.format(f"set_timer({', '.join(parts if first else parts[::-1])})")
    assert calls_of(read(text, size, TOOLS)) == [("set_timer", {"label": meant, "minutes": number})]


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from(["'", '"']), minutes, SIZES)
def test_a_set_is_a_list(tags: list[str], quote: str, number: int, size: int) -> None:
    members = ", ".join(f"{quote}{tag}{quote}" for tag in tags)
    text = f"[set_timer(minutes={number}, tags={{{members}}})]"
    assert calls_of(read(text, size, TOOLS)) == [("set_timer", {"minutes": number, "tags": tags})]


IN_MARKERS = (
    '<tool_call>{{"name": "set_timer", "arguments": {{"minutes": {}}}}}</tool_call>',
    "<function=set_timer><parameter=minutes>{}</parameter></function>",
    "<|tool_call>call:set_timer{{minutes:{}}}<tool_call|>",
)


@family(*IN_MARKERS)
@given(st.booleans(), minutes, words, SIZES)
def test_a_call_in_thinking_that_ends_is_a_thought(
    form: str, opened: bool, number: int, thought: str, size: int
) -> None:
    call = form.format(number)
    text = f"{thought} {call} {thought}</think>No, hello."
    if opened:
        reply = read("<think>" + text, size, TOOLS)
    else:
        reply = parse_reply(text, TOOLS, in_thinking=True)
    assert (calls_of(reply), reply.text) == ([], "No, hello.")
    assert reply.reasoning.startswith(thought)
    assert reply.reasoning.endswith(thought)
    unended = read(f"<think>{thought} {call}", size, TOOLS)
    assert calls_of(unended) == [("set_timer", {"minutes": number})]


@family("", "longcat_", "ifm|")
@given(st.sampled_from(["", "\n"]), st.booleans(), minutes, SIZES)
def test_a_type_may_stand_between_a_key_and_its_value(
    form: str, line: str, known: bool, number: int, size: int
) -> None:
    def tag(kind: str, text: str) -> str:
        return f"<{form}{kind}>{text}</{form}{kind}>{line}"

    typed = [("minutes", "integer", number), ("label", "string", number)]
    pairs = "".join(
        tag("arg_key", key) + tag("arg_type", kind) + tag("arg_value", str(value))
        for key, kind, value in typed
    )
    text = f"<{form}tool_call>set_timer\n{pairs}</{form}tool_call>"
    reply = read(text, size, TOOLS if known else [])
    assert calls_of(reply) == [("set_timer", {"minutes": number, "label": str(number)})]


LINES: dict[str, Call] = {
    '{"name": "stop"}': ("stop", {}),
    '{"name": "get_time"}': ("get_time", {}),
    '{"name": "get_time", "zone": "UTC"}': ("get_time", {"zone": "UTC"}),
    '{"name": "set_timer", "minutes": 5}': ("set_timer", {"minutes": 5}),
    '{"name": "set_timer", "arguments": {"minutes": 7}}': ("set_timer", {"minutes": 7}),
}
WHOLE_LINE = '{"name": "get_time", "arguments": {"zone": "UTC"}}'


@given(st.lists(st.sampled_from(list(LINES)), max_size=2), st.sampled_from(list(LINES)), SIZES)
def test_a_json_line_without_an_arguments_key_is_a_call_beside_one(
    behind: list[str], line: str, size: int
) -> None:
    lines = [WHOLE_LINE, line, *behind]
    reply = read("\n".join(lines), size, TOOLS)
    assert calls_of(reply) == [("get_time", {"zone": "UTC"}), *(LINES[one] for one in lines[1:])]
    assert reply.text.strip() == ""


@given(st.sampled_from(['{"name": "stop"}', '{"name": "get_time"}']), st.integers(1, 3), SIZES)
def test_such_lines_may_stand_in_front_of_the_call(line: str, count: int, size: int) -> None:
    reply = read("\n".join([line] * count + [WHOLE_LINE]), size, TOOLS)
    assert len(reply.calls) == count + 1
    assert reply.text == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "stop"}',
        '{"name": "set_timer", "minutes": 5}',
        '{"name": "stop"}\n{"name": "Bob", "age": 3}',
        '{"name": "Bob"}\n{"name": "Ann"}',
        '{"name": "stop", "of": "bus 5"}\n' + '{"line": 5}',
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 500])
def test_such_a_line_by_itself_is_speech(text: str, size: int) -> None:
    reply = read(text, size, TOOLS)
    assert (calls_of(reply), reply.text) == ([], text)


def _repeated(form: str, pairs: list[tuple[str, str]]) -> str:
    match form:
        case "qwen":
            inner = "".join(f"<parameter={k}>\n{v}\n</parameter>" for k, v in pairs)
            return f"<tool_call><function=set_timer>{inner}</function></tool_call>"
        case "invoke":
            inner = "".join(f'<parameter name="{k}">{v}</parameter>' for k, v in pairs)
            return f'<invoke name="set_timer">{inner}</invoke>'
        case "glm":
            inner = "".join(f"<arg_key>{k}</arg_key><arg_value>{v}</arg_value>" for k, v in pairs)
            return f"<tool_call>set_timer\n{inner}</tool_call>"
        case "json":
            inner = ", ".join(f'"{k}": {json.dumps(v)}' for k, v in pairs)
            return f'<tool_call>{{"name": "set_timer", "arguments": {{{inner}}}}}</tool_call>'
        case "python":
            return f"[set_timer({', '.join(f'{k}={v!r}' for k, v in pairs)})]"
        case _:
            inner = ",".join(f'{k}:<|"|>{v}<|"|>' for k, v in pairs)
            return f"<|tool_call>call:set_timer{{{inner}}}<tool_call|>"


@family("qwen", "invoke", "glm", "json", "python", "gemma")
@given(st.lists(words, min_size=2, max_size=4), st.lists(minutes, min_size=2, max_size=3), SIZES)
def test_a_repeated_key_is_a_list_where_its_schema_says_so(
    form: str, tags: list[str], numbers: list[int], size: int
) -> None:
    pairs = [("minutes", str(n)) for n in numbers] + [("tags", tag) for tag in tags]
    pairs += [("days", str(n)) for n in numbers]
    expected = {"minutes": numbers[-1], "tags": tags, "days": numbers}
    assert calls_of(read(_repeated(form, pairs), size, TOOLS)) == [("set_timer", expected)]


@given(
    st.sampled_from(["", "functions.", "default_api:"]),
    st.sampled_from(["set_timer", "model_1.0"]),
    st.sampled_from(["", ":0", ":12", ":1.0", ":1.0.2"]),
    SIZES,
)
def test_a_number_behind_a_name_is_the_calls_own(
    space: str, name: str, number: str, size: int
) -> None:
    text = f'<tool_call>{{"name": "{space}{name}{number}", "arguments": {{"minutes": 1}}}}'
    (call,) = read(text + "</tool_call>", size, TOOLS).calls
    assert call.name == name


RESULTS = (
    '{"type": "tool_observation", "name": "set_timer", "result": {"left": [5, "}"]}}',
    '{"name": "set_timer", "type": "tool_observation", "result": "ok"}',
    '<tool_observation name="set_timer" kind="result">\n{"left": 5}\n</tool_observation>',
    "<tool_response>\nIt rings.\n</tool_response>",
    '{"error": "unknown_tool", "valid": ["set_timer", "get_time"]}',
    "Observation: it rings.\n\n",
)


@pytest.mark.parametrize("result", RESULTS)
@given(st.sampled_from(["", "\n"]), SIZES)
def test_a_result_that_the_model_made_up_is_no_speech(result: str, line: str, size: int) -> None:
    call = IN_MARKERS[0].format(5)
    reply = read(call + line + result + "\nIt is noon.", size, TOOLS)
    assert (calls_of(reply), reply.text.strip()) == ([("set_timer", {"minutes": 5})], "It is noon.")
    parser = ReplyParser(TOOLS)
    parser.feed(call + line)
    assert not parser.invented_result
    parser.feed(result)
    assert parser.invented_result


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "404"}',
        "Observation: the sky is blue.",
        '{"type": "observation", "text": "a bird"}',
        "Result: 5.",
    ],
)
def test_who_tells_of_an_observation_is_heard(text: str) -> None:
    assert read(text, 3, TOOLS).text == text


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            words,
            st.sampled_from(
                [*THINKING_CLOSERS, "<think>", "\n", " ", '{"a": 1}', "[stop()]", "stop {}", "`"]
            ),
            st.sampled_from([form.format(5) for form in IN_MARKERS]),
        ),
        max_size=10,
    ),
    SIZES,
    st.booleans(),
)
def test_text_in_front_of_a_closer_is_thinking_however_it_arrives(
    parts: list[str], size: int, known: bool
) -> None:
    text = "".join(parts)
    reply = read(text, size, TOOLS if known else [])
    assert parse_reply(text, TOOLS if known else []) == reply


@given(words, st.sampled_from([c for c in THINKING_CLOSERS if c != "<channel|>"]), SIZES)
def test_a_streamed_reply_says_so_once_its_closer_has_come(
    thought: str, closer: str, size: int
) -> None:
    reply = read(f"{thought}\n{closer}\n\nHello.", size, TOOLS)
    assert (reply.text, reply.reasoning) == ("Hello.", thought)
