"""A reply that ends in the middle of a call: what was cut is no call, what stood before it is."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from caal_node.reply_parser import BrokenCall, ReplyParser, parse_reply, summarise
from tests.stand_ins.reply_examples import CASES, PEERS, TOOLS

pytestmark = pytest.mark.long

MAX_CUTS: Final = 400
"""Cuts of one reply: all of them, but for the few replies that are longer."""
Call = tuple[str, str]


def calls(text: str, tools: list[dict[str, Any]], *, in_thinking: bool = False) -> list[Call]:
    """The calls of a reply, their arguments as JSON, in which 1 is not true."""
    reply = parse_reply(text, tools, in_thinking=in_thinking)
    return [(call.name, json.dumps(call.arguments)) for call in reply.calls]


def calls_in_pieces(
    text: str, size: int, tools: list[dict[str, Any]], *, in_thinking: bool = False
) -> list[Call]:
    parser = ReplyParser(tools, in_thinking=in_thinking)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    found = summarise([*events, *parser.finish()]).calls
    return [(call.name, json.dumps(call.arguments)) for call in found]


def run_wrongly(
    text: str, tools: list[dict[str, Any]], *, in_thinking: bool = False
) -> list[tuple[str, list[Call]]]:
    """The cuts of a reply whose calls are none of the reply's, and those calls."""
    whole = calls(text, tools, in_thinking=in_thinking)
    found: list[tuple[str, list[Call]]] = []
    for end in range(1, len(text), 1 + len(text) // MAX_CUTS):
        cut = calls(text[:end], tools, in_thinking=in_thinking)
        if cut != whole[: len(cut)]:
            found.append((text[:end], cut))
    return found


def test_no_cut_of_a_known_reply_runs_wrongly() -> None:
    with_calls = [case for case in CASES if case["calls"]]
    assert len(with_calls) > 100
    wrong = [
        cut
        for case in with_calls
        for cut in run_wrongly(case["text"], TOOLS, in_thinking=case["in_thinking"])
    ]
    assert wrong == []


@pytest.mark.skipif(not PEERS, reason="there is no collection of peers' replies")
def test_no_cut_of_a_reply_of_another_project_runs_wrongly() -> None:
    wrong = [
        cut
        for case in PEERS
        if case["expected"]
        for cut in run_wrongly(
            case["text"], case["tools"], in_thinking=bool(case.get("think_prefill"))
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("size", [1, 3, 64])
def test_a_cut_reply_in_pieces_makes_the_calls_of_the_whole_cut(size: int) -> None:
    for case in CASES:
        text, in_thinking = case["text"], case["in_thinking"]
        for end in range(len(text) // 2, len(text), 7):
            cut = text[:end]
            assert calls_in_pieces(cut, size, TOOLS, in_thinking=in_thinking) == calls(
                cut, TOOLS, in_thinking=in_thinking
            )


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n<function=set_timer>\n<parameter=minutes>\n5",
        "<tool_call><function=set_timer><parameter=minutes>5</parameter>",
        "<tool_call><function=set_timer><parameter=minutes>5</parameter><para",
        '<tool_call><function=set_timer><parameter=label>print("</function>")',
        "<tool_call>set_timer\n<arg_key>minutes</arg_key>\n<arg_value>5</arg_value>\n<a",
        "<tool_call>set_timer minutes=5",
        '<tool_call>{"name":"set_timer","arguments":{"minutes":5',
        '<tool_call>{"name":"set_timer","arguments":{"minutes":5,"label":"</tool_call>',
        "{'name': 'set_timer', 'arguments': {'minutes': 5}",
        '{"name":"set_timer","arguments":{"minutes":5,"label":"tea',
        '[TOOL_CALLS]set_timer[ARGS]{"minutes": 5',
        "[set_timer(minutes=5",
        "<|tool_call>call:set_timer{minutes:5",
        '<set_timer minutes="5"',
    ],
)
def test_a_call_without_its_end_is_not_made(text: str) -> None:
    assert calls(text, TOOLS) == []


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call><function=set_timer><parameter=minutes>5</parameter>",
        '<tool_call>{"name":"set_timer","arguments":{"minutes":5,"label":"</tool_call>',
        '[TOOL_CALLS]set_timer[ARGS]{"minutes": 5',
    ],
)
def test_a_cut_call_is_reported(text: str) -> None:
    (problem,) = parse_reply(text, TOOLS).problems
    assert isinstance(problem, BrokenCall)
    assert (problem.name, problem.problem) == ("set_timer", "The call was cut off.")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"set_timer","arguments":{"minutes":5}}',
        '<tool_call>{"name":"set_timer","arguments":{"minutes":5}',
        "<tool_call><function=set_timer><parameter=minutes>5</parameter></function>",
        '[TOOL_CALLS]set_timer[ARGS]{"minutes": 5}',
        "<|tool_call>call:set_timer{minutes:5}",
        "<function=set_timer><parameter=minutes>5</function>\nSet.",
    ],
)
def test_a_call_whose_own_end_is_there_is_made(text: str) -> None:
    assert calls(text, TOOLS) == [("set_timer", '{"minutes": 5}')]


# -- any values, in the ways in which models write them -----------------------------------------

NAME: Final = "make_note"
NOTE_TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "more": {"type": "object"},
                },
            },
        },
    },
    *TOOLS,
]
_ANY_WORDS: Final = st.lists(
    st.sampled_from(
        (
            *(
                "milk",
                " and ",
                "\n",
                "\n\n",
                '"',
                "'",
                "\\",
                "{",
                "}",
                "[",
                "]",
                "<",
                ">",
                ",",
                ":",
            ),
            *("</tool_call>", "</function>", "</parameter>", "</arg_value>", "<tool_call>", "```"),
            *("<parameter=count>", "}}", '"}}', "[/TOOL_CALLS]", "set_timer(minutes=5)", "=", "é"),
            '{"name": "set_timer", "arguments": {"minutes": 5}}',
            "<function=set_timer><parameter=minutes>5</parameter></function>",
            "\n[set_timer(minutes=5)]",
        )
    ),
    max_size=6,
).map("".join)
# A text cut behind `}}</tool_call>` is the same as a call whose last quote is missing.
_WORDS: Final = _ANY_WORDS.filter(lambda words: not re.search(r"\}\s*(?:</|\[/|```)", words))
_VALUES: Final = st.fixed_dictionaries(
    {},
    optional={
        "text": _WORDS,
        "count": st.integers(-99_999, 99_999),
        "tags": st.lists(_WORDS, max_size=3),
        "more": st.fixed_dictionaries(
            {}, optional={"name": _WORDS, "arguments": st.dictionaries(_WORDS, _WORDS, max_size=2)}
        ),
    },
)


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _object(given: dict[str, Any]) -> str:
    return json.dumps({"name": NAME, "arguments": given})


def _keywords(given: dict[str, Any]) -> str:
    return f"{NAME}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def _attributes(given: dict[str, Any]) -> str:
    plain = {k: v for k, v in given.items() if not isinstance(v, list | dict)}
    written = " ".join(f'{k}="{html.escape(_bare(v))}"' for k, v in plain.items())
    return f"<{NAME} {written}/>"


def _elements(given: dict[str, Any]) -> str:
    inner = "".join(f"<parameter={k}>\n{_bare(v)}\n</parameter>\n" for k, v in given.items())
    return f"<function={NAME}>\n{inner}</function>"


def _pairs(given: dict[str, Any]) -> str:
    return NAME + "".join(
        f"\n<arg_key>{k}</arg_key>\n<arg_value>{_bare(v)}</arg_value>" for k, v in given.items()
    )


def _gemma(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_gemma(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_gemma, value)) + "]"
    return f'<|"|>{value}<|"|>' if isinstance(value, str) else json.dumps(value)


def _dsml(given: dict[str, Any]) -> str:
    inner = "".join(
        f'<｜DSML｜parameter name="{k}" string="{"true" if isinstance(v, str) else "false"}">'
        f"{_bare(v)}</｜DSML｜parameter>\n"
        for k, v in given.items()
    )
    invoke = f'<｜DSML｜invoke name="{NAME}">\n{inner}</｜DSML｜invoke>\n'
    return f"<｜DSML｜tool_calls>\n{invoke}</｜DSML｜tool_calls>"


_STYLES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "hermes": lambda given: f"<tool_call>\n{_object(given)}\n</tool_call>",
    "bare": _object,
    "fence": lambda given: f"```json\n{_object(given)}\n```",
    "mistral": lambda given: f"[TOOL_CALLS]{NAME}[ARGS]{json.dumps(given)}",
    "mistral list": lambda given: f"[TOOL_CALLS][{_object(given)}]",
    "llama": lambda given: f"<|python_tag|>{_object(given)}<|eom_id|>",
    "harmony": lambda given: (
        f"<|start|>assistant<|channel|>commentary to=functions.{NAME}<|message|>"
        f"{json.dumps(given)}<|call|>"
    ),
    "protocol": lambda given: json.dumps({"calls": [{"name": NAME, "arguments": given}]}),
    "named": lambda given: f"{NAME} {json.dumps(given)}",
    "qwen": lambda given: f"<tool_call>\n{_elements(given)}\n</tool_call>",
    "elements": _elements,
    "glm": lambda given: f"<tool_call>{_pairs(given)}\n</tool_call>",
    "python": _keywords,
    "python list": lambda given: f"[{_keywords(given)}]",
    "python code": lambda given: f"```tool_code\nprint({_keywords(given)})\n```",
    "arguments first": lambda given: json.dumps({"arguments": given, "name": NAME}),
    "encoded": lambda given: json.dumps({"name": NAME, "arguments": json.dumps(given)}),
    "attributes": _attributes,
    "gemma": lambda given: f"<|tool_call>call:{NAME}{_gemma(given)}<tool_call|>",
    "dsml": _dsml,
    "dictionary": lambda given: f"<tool_call>{ {'name': NAME, 'arguments': given}!r}</tool_call>",
}


_CALL_ENDS = {
    "glm": re.compile(r"</tool_call>[^<]*(?:<(?:/[a-z_]*)?)?\Z"),
    "elements": re.compile(r"</function>\s*(?:</tool_call>)?[^<]*(?:<(?:/[a-z_]*)?)?\Z"),
    "qwen": re.compile(r"</function>\s*</tool_call>[^<]*(?:<(?:/p?[a-z]*)?)?\Z"),
}
"""What ends a call also where its last value has no closer: no cut behind it or within that closer
is seen, and what follows it is taken for speech."""


@pytest.mark.parametrize("style", sorted(_STYLES))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(first=_VALUES, second=_VALUES)
@example(first={"text": "buy milk and\ntea"}, second={})
@example(first={}, second={"text": "</tool_call></tool_call>"})
@example(first={}, second={"text": "milk</tool_call></tool_call>"})
@example(first={}, second={"text": "milk</function></tool_call>milk"})
@example(first={"text": '<tool_call>{"name": "x", "arguments": {}}</tool_call>'}, second={})
@example(first={"more": {"name": "x", "arguments": {"a": "b"}}}, second={})
@example(first={"text": 'milk{"name": "set_timer", "arguments": {"minutes": 5}}' * 2}, second={})
@example(
    first={"text": "<function=set_timer><parameter=minutes>5</parameter></function>", "count": 1},
    second={"text": "\n[set_timer(minutes=5)]"},
)
def test_no_cut_runs_wrongly_whatever_the_values_hold(
    style: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    text = "\n".join(map(_STYLES[style], (first, second)))
    whole = calls(text, NOTE_TOOLS)
    wanted = [(NAME, json.dumps(given)) for given in (first, second)]
    # Nothing is escaped in elements, so some values that hold their own closer are read otherwise.
    assume(whole == wanted[: len(whole)] and whole)
    for end in range(1, len(text), 1 + len(text) // 80):
        # GLM leaves out `</arg_value>` in front of a call's end, and Qwen `</parameter>`, also
        # where it writes no `<tool_call>`.
        if style in _CALL_ENDS and _CALL_ENDS[style].search(text[:end]):
            continue
        cut = calls(text[:end], NOTE_TOOLS)
        assert cut == whole[: len(cut)], text[:end]
