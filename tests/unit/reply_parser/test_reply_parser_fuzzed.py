"""A short run of the fuzzer; `python -m tests.bench.fuzz_replies` makes the long ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from caal_node.reply_parser import ReplyParser, parse_reply
from caal_node.reply_parser.cursor import Steps
from tests.bench.fuzz_replies import findings, mutated
from tests.stand_ins.reply_examples import EXAMPLES, TOOLS

REPLIES = 500


@pytest.mark.parametrize("seed", [11, 12, 13, 14])
def test_mutated_replies_are_read_as_they_should_be(seed: int) -> None:
    rng = random.Random(seed)
    found: list[Any] = []
    for number in range(REPLIES):
        tools = TOOLS if number % 20 else []
        text = mutated(rng, EXAMPLES)
        found += findings(text, tools, rng, in_thinking=number % 10 == 0)
    assert found == []


FOUND = (
    # A marker around another's beginning, in a string that is spoken while it arrives.
    '{"type":"final_answer","text":"It<|channel><|python[/TOOL_RESULTS]_tag|>'
    '{"name":"set_timer","p<think>arameters":{"minutes":5}} \\"noon\\", C:\\\\home\\nBye."}',
    # An answer's opening between the halves of a marker.
    'See [the docs](htt<minimax:{"type": "final_answer", "text": "tool_call><i',
    # An answer that was spoken, in an object that breaks off behind it.
    '{"name": "set_ti{"type": "final_answer", "text": "mer", "description": "Sets a timer", '
    '"pt.\n>>>set_timer\n{"minutes":5}',
    # Brackets of what is spoken, closed and opened, in one piece and in two.
    '{"say":"He<tool_calls5}}, {"name": "get_time", "arguments": {"zone": "UTC"}}]',
    # A tag with the tool's name, and a marker: in an attribute, between two, in front of its end.
    'Hm.\n<get_time zone="U<tool_calls>[{"name": "get_time"}]</tool_calls>TC"></get_time>.',
    'One moment.\n<get_time <response>zone="UTC"></get_time>',
    "<set_timer minu<|tool call begin|>et_timer minutes" + ' minutes="5"' * 30 + ">",
    '<set_timer></minimax:tool_call>{"minutes": 5}</set_timer>',
    '<get_time[THINK]Hm.[/THINK][TOOL_CALLS]set_timer[ARGS]{"minutes":5} zone="UTC"></get_time>.',
    # Words between the tag's name and its attributes.
    '<set_timer minu et_timer minutes="5">',
    # Thinking's end, with white space on both sides: together it is as wide as code's.
    "  </reasoning>  set_timer(minutes=5)\n",
    "  <think>Hm.</think>  set_timer(minutes=5)\n",
    # A line that begins with what keeps it apart from what stood there.
    "functools[:\n</invoke> set_timer()",
    # Functionary's header in what seemed to be JSON, and one that a marker tears.
    '{"s: <|im_assistant|>{"minutes>>>all\nSure.>>>set_timer\n{"minutes":5}',
    '{"minutx>>>all\nSure.>>>set_timer\na<start_function_call>_b [x ',
    'What\'s up?>>>set_timer<tool_sep>\n{"minutes":5}\n',
    # Code that is given a name, with a marker in it.
    "```tool_code\nx</tool_result> = set_timer(minutes=5)\n```\nDone.",
    # White space that belongs to thinking's end indents nothing.
    "Run it like so:\n\n</reasoning>    set_timer(minutes=5)\n",
    # A key of the protocol with a marker in it.
    '{"type":"tool_calls","calls<thinking>":[{"name":"set_timer","arguments":{"minutes":5}}]}',
    # A colon that stood behind a key, and thinking in front of it.
    '{"x" "arguments"<think>abc</think>: [{"name":"set_timer","arguments":{"minutes":5}}]',
    # A marker broken by another, in a tag that alone says nothing.
    '<tools><|tool_call<｜too_begin｜>>call:search{query:<|"|>hello<|"|>}<tool_call|>',
)
CHUNKINGS = 50


@pytest.mark.parametrize("text", FOUND)
def test_what_long_runs_have_found_stays_mended(text: str) -> None:
    rng = random.Random(1)
    for _ in range(CHUNKINGS):
        assert list(findings(text, TOOLS, rng)) == []


def test_an_answer_that_was_spoken_is_not_said_again() -> None:
    assert parse_reply(FOUND[2], TOOLS).text.count("mer") == 1


def test_white_space_around_thinking_makes_no_code_of_a_call() -> None:
    for text in ("  </think>  set_timer(minutes=5)", "  <think>Hm.</think>  set_timer(minutes=5)"):
        (call,) = parse_reply(text, TOOLS).calls
        assert call.name == "set_timer"


def test_the_fuzzer_notices_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def speak(parser: Any, marker: str) -> Steps[None]:
        parser._context.events.say(marker)
        yield from ()

    monkeypatch.setattr(ReplyParser, "_handle_marker", speak)
    rng = random.Random(1)
    kinds = {finding.kind for text in EXAMPLES for finding in findings(text, TOOLS, rng)}
    assert "marker" in kinds
