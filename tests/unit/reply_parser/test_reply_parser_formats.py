"""Every format, from samples of its own: what is called, what is said, what is thought."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from caal_node.reply_parser import (
    Event,
    Reply,
    ReplyParser,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    parse_reply,
    summarise,
)
from caal_node.reply_parser.formats import FORMATS, MARKERS
from caal_node.reply_parser.markers import THINKING_BLOCKS, THINKING_CLOSERS
from tests.stand_ins.reply_examples import CASES, TOOLS


def streamed(text: str, size: int, *, in_thinking: bool = False) -> tuple[Reply, list[Event]]:
    parser = ReplyParser(TOOLS, in_thinking=in_thinking)
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += parser.feed(text[start : start + size])
    events += parser.finish()
    return summarise(events), events


def squeezed(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}: {case['text'][:40]}")
def test_a_reply_means_what_its_format_says(case: dict[str, Any]) -> None:
    reply = parse_reply(case["text"], TOOLS, in_thinking=case["in_thinking"])
    assert [[call.name, call.arguments] for call in reply.calls] == case["calls"]
    assert squeezed(reply.text) == squeezed(case["say"])
    assert reply.reasoning == case["think"]
    assert reply.problems == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}: {case['text'][:40]}")
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_chunks_give_what_the_whole_gives(case: dict[str, Any], size: int) -> None:
    whole = parse_reply(case["text"], TOOLS, in_thinking=case["in_thinking"])
    assert streamed(case["text"], size, in_thinking=case["in_thinking"])[0] == whole


def test_speech_is_passed_on_exactly() -> None:
    for case in CASES:
        if case["family"] == "speech":
            assert parse_reply(case["text"], TOOLS).text == case["text"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']}: {case['text'][:40]}")
def test_a_call_starts_right_in_front_of_its_end(case: dict[str, Any]) -> None:
    _, events = streamed(case["text"], 1, in_thinking=case["in_thinking"])
    for before, event in itertools.pairwise([None, *events, None]):
        if isinstance(event, ToolCallEnd):
            assert before == ToolCallStart(event.id, event.name)
        else:
            assert not isinstance(before, ToolCallStart)


def test_plain_text_goes_out_at_once() -> None:
    parser = ReplyParser(TOOLS)
    for char in "Hello, this is plain speech.":
        assert parser.feed(char) == [TextDelta(char)]


def test_only_what_may_become_a_marker_is_held_back() -> None:
    parser = ReplyParser(TOOLS)
    assert parser.feed("So a ") == [TextDelta("So a ")]
    assert parser.feed("<tool_") == []
    assert parser.feed("box> ") == [TextDelta("<tool_box> ")]


def test_a_final_answer_streams_while_it_arrives() -> None:
    parser = ReplyParser(TOOLS)
    parser.feed('{"type":"final_answer","text":"It is')
    assert parser.feed(" noon") == [TextDelta(" noon")]
    assert parser.feed("\\u00e") == []
    assert parser.feed("9") == [TextDelta("é")]


def test_order_of_speech_and_calls_is_kept() -> None:
    _, events = streamed(
        'One. <tool_call>{"name": "get_time", "arguments": {}}</tool_call> Two.', 1000
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["TextDelta", "ToolCallStart", "ToolCallEnd", "TextDelta"]


def test_ids_are_the_same_from_start_to_end_and_unique() -> None:
    _, events = streamed('[get_time(zone="UTC"), get_time(zone="CET")]', 5)
    starts = [event.id for event in events if isinstance(event, ToolCallStart)]
    ends = [event.id for event in events if isinstance(event, ToolCallEnd)]
    assert starts == ends
    assert len(set(ends)) == 2


def test_without_tools_any_name_is_allowed() -> None:
    reply = parse_reply('<tool_call>{"name": "fly", "arguments": {"to": "Rome"}}</tool_call>', [])
    assert [(call.name, call.arguments) for call in reply.calls] == [("fly", {"to": "Rome"})]


def test_no_marker_is_the_beginning_of_another() -> None:
    # The scanner would take the shorter one before the longer has arrived.
    names = sorted({*MARKERS.openers, *THINKING_BLOCKS, *THINKING_CLOSERS})
    clashes = [(a, b) for a, b in itertools.pairwise(names) if b.startswith(a)]
    assert clashes == []


def test_formats_are_found_by_being_there() -> None:
    families = {each.name for each in FORMATS}
    assert {"hermes", "mistral", "gemma", "harmony", "kimi-k3", "minimax-m3"} <= families
