"""A call as each family's template writes it is read back as that call, whatever its values hold.

Where nothing in a value is escaped, some texts can be read in two ways. Which of them is chosen is
in the tests at the end, and the values of the properties leave these texts out.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caal_node.reply_parser import Reply, ReplyParser, ToolCall, parse_reply, summarise
from caal_node.reply_parser.formats import FORMATS, MARKERS

NAME: Final = "make_note"
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "due date": {"type": "string"},
                    "count": {"type": "integer"},
                    "urgent": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    }
]
Arguments = dict[str, Any]


def _plain(value: Any) -> str:
    """A value as templates write it where tags are around it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _hermes(given: Arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': NAME, 'arguments': given})}\n</tool_call>"


def _mistral(given: Arguments) -> str:
    return f"[TOOL_CALLS]{NAME}[ARGS]{json.dumps(given, ensure_ascii=False)}"


def _harmony(given: Arguments) -> str:
    header = f"<|start|>assistant<|channel|>commentary to=functions.{NAME} <|constrain|>json"
    return f"{header}<|message|>{json.dumps(given, ensure_ascii=False)}<|call|>"


def _kimi_k2(given: Arguments) -> str:
    call = f"<|tool_call_begin|>functions.{NAME}:0<|tool_call_argument_begin|>{json.dumps(given)}"
    return f"<|tool_calls_section_begin|>{call}<|tool_call_end|><|tool_calls_section_end|>"


def _deepseek(given: Arguments) -> str:
    call = f"<｜tool▁call▁begin｜>{NAME}<｜tool▁sep｜>{json.dumps(given)}<｜tool▁call▁end｜>"
    return f"<｜tool▁calls▁begin｜>{call}<｜tool▁calls▁end｜>"


def _qwen_coder(given: Arguments) -> str:
    inner = "".join(f"<parameter={k}>\n{_plain(v)}\n</parameter>\n" for k, v in given.items())
    return f"<tool_call>\n<function={NAME}>\n{inner}</function>\n</tool_call>"


def _glm(given: Arguments, space: str = "") -> str:
    pairs = (
        f"<{space}arg_key>{k}</{space}arg_key>\n<{space}arg_value>{_plain(v)}</{space}arg_value>\n"
        for k, v in given.items()
    )
    return f"<{space}tool_call>{NAME}\n{''.join(pairs)}</{space}tool_call>"


def _minimax_m2(given: Arguments) -> str:
    inner = "".join(f'<parameter name="{k}">{_plain(v)}</parameter>\n' for k, v in given.items())
    return f'<minimax:tool_call>\n<invoke name="{NAME}">\n{inner}</invoke>\n</minimax:tool_call>'


def _dsml(given: Arguments, space: str = "") -> str:
    bar = f"｜DSML｜{space}"
    inner = "".join(
        f'<{bar}parameter name="{k}" string="{json.dumps(isinstance(v, str))}">{_plain(v)}'
        f"</{bar}parameter>\n"
        for k, v in given.items()
    )
    call = f'<{bar}invoke name="{NAME}">\n{inner}</{bar}invoke>\n'
    return f"<{bar}function_calls>\n{call}</{bar}function_calls>"


def _kimi_k3(given: Arguments) -> str:
    kinds = {str: "string", int: "integer", bool: "boolean", list: "array"}
    inner = "".join(
        f'<|open|>argument key="{k}" type="{kinds[type(v)]}"<|sep|>{_plain(v)}'
        "<|close|>argument<|sep|>"
        for k, v in given.items()
    )
    call = f'<|open|>call tool="{NAME}" index="1"<|sep|>{inner}<|close|>call<|sep|>'
    return f"<|open|>tools<|sep|>{call}<|close|>tools<|sep|>"


def _gemma_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_gemma_value, value))}]"
    return f'<|"|>{value}<|"|>' if isinstance(value, str) else json.dumps(value)


def _gemma(given: Arguments) -> str:
    inner = ",".join(f"{k}:{_gemma_value(v)}" for k, v in given.items())
    return f"<|tool_call>call:{NAME}{{{inner}}}<tool_call|>"


def _functiongemma(given: Arguments) -> str:
    text = _gemma(given).replace('<|"|>', "<escape>")
    text = text.replace("<|tool_call>", "<start_function_call>", 1)
    return text.removesuffix("<tool_call|>") + "<end_function_call>"


def _minimax_m3_value(name: str, value: Any) -> str:
    mark = "]<]minimax[>["
    if isinstance(value, list):
        inner = "".join(_minimax_m3_value("item", item) for item in value)
        return f"{mark}<{name}>{inner}{mark}</{name}>"
    return f"{mark}<{name}>{_plain(value)}{mark}</{name}>"


def _minimax_m3(given: Arguments) -> str:
    mark = "]<]minimax[>["
    inner = "".join(_minimax_m3_value(k, v) for k, v in given.items())
    call = f'{mark}<invoke name="{NAME}">{inner}{mark}</invoke>'
    return f"{mark}<tool_call>\n{call}\n{mark}</tool_call>"


def _minicpm(given: Arguments) -> str:
    inner = "".join(
        f'<param name="{k}">{f"<![CDATA[{v}]]>" if isinstance(v, str) else json.dumps(v)}</param>'
        for k, v in given.items()
    )
    return f'<function name="{NAME}">{inner}</function>'


def _minicpm_escaped(given: Arguments) -> str:
    inner = "".join(f'<param name="{k}">{html.escape(_plain(v))}</param>' for k, v in given.items())
    return f'<function name="{NAME}">{inner}</function>'


def _step3(given: Arguments) -> str:
    inner = "".join(
        f'<steptml:parameter name="{k}">{_plain(v)}</steptml:parameter>' for k, v in given.items()
    )
    call = f'<steptml:invoke name="{NAME}">{inner}</steptml:invoke>'
    return (
        f"<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>{call}"
        "<｜tool_call_end｜><｜tool_calls_end｜>"
    )


def _lfm(given: Arguments) -> str:
    inner = ", ".join(f"{k}={v!r}" for k, v in given.items() if " " not in k)
    return f"<|tool_call_start|>[{NAME}({inner})]<|tool_call_end|>"


_STYLES: Final[dict[str, tuple[Callable[[Arguments], str], tuple[str, ...]]]] = {
    # What a value may not hold, as it would end there: see the module's docstring.
    "hermes": (_hermes, ()),
    "mistral": (_mistral, ()),
    "harmony": (_harmony, ()),
    "kimi k2": (_kimi_k2, ()),
    "deepseek": (_deepseek, ()),
    "qwen coder": (_qwen_coder, ("</parameter>", "</function>")),
    "glm": (_glm, ("</arg_value>", "<arg_value>", "</arg_key>")),
    "minimax m2": (_minimax_m2, ("</parameter>", "</invoke>")),
    "dsml": (_dsml, ("</｜DSML｜", "</｜DSML｜ ")),
    "dsml with a space": (lambda given: _dsml(given, " "), ("</｜DSML｜", "</｜DSML｜ ")),
    "kimi k3": (_kimi_k3, ("<|close|>argument<|sep|>",)),
    "gemma": (_gemma, ('<|"|>',)),
    "functiongemma": (_functiongemma, ("<escape>", '<|"|>')),
    "minimax m3": (_minimax_m3, ("]<]minimax[>[",)),
    "minicpm": (_minicpm, ("]]>",)),
    "minicpm escaped": (_minicpm_escaped, ()),
    "step3": (_step3, ("</steptml:parameter>", "</steptml:invoke>")),
    "longcat": (
        lambda given: _glm(given, "longcat_"),
        ("</longcat_arg_value>", "<longcat_arg_value>", "</longcat_arg_key>"),
    ),
    "llama": (
        lambda given: f"<|python_tag|>{json.dumps({'name': NAME, 'parameters': given})}",
        (),
    ),
    "mistral list": (
        lambda given: f"[TOOL_CALLS][{json.dumps({'name': NAME, 'arguments': given})}]",
        (),
    ),
    "inkling": (
        lambda given: (
            f"<|message_model|>{NAME}<|content_invoke_tool_json|>"
            f"{json.dumps({'name': NAME, 'args': given})}<|end_message|>"
        ),
        (),
    ),
    "deepseek r1": (
        lambda given: (
            f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{NAME}\n```json\n"
            f"{json.dumps(given)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        (),
    ),
    "cohere": (
        lambda given: (
            "<|START_ACTION|>[\n"
            f"{json.dumps({'tool_call_id': '0', 'tool_name': NAME, 'parameters': given})}"
            "\n]<|END_ACTION|>"
        ),
        (),
    ),
    "lfm": (_lfm, ()),
}
_FRAGMENTS: Final = st.one_of(
    st.sampled_from(
        sorted(
            {marker for each in FORMATS for marker in (*each.openers, *each.closers, *each.strays)}
            | {*MARKERS.all, "<function=x>", "<parameter=x>", '<parameter name="x">', "<|close|>"}
            | {"<|im_end|>", "<|return|>", '{"name": "make_note"}', "call:make_note{", "Ünïcode 💡"}
        )
    ),
    st.sampled_from(("milk", " ", "\n", '"', "'", "{", "}", "[", ")", ",", ":", "\\", "5", "null")),
)
_TEXTS: Final = st.lists(_FRAGMENTS, max_size=5).map(lambda parts: "a " + "".join(parts) + " z")
_ARGUMENTS: Final = st.fixed_dictionaries(
    {},
    optional={
        "urgent": st.booleans(),
        "due date": _TEXTS,
        "count": st.integers(-999, 999),
        "text": _TEXTS,
        "tags": st.lists(st.sampled_from(("tea", "milk and bread")), max_size=2),
    },
)
_BEFORE: Final = "Let me note that."
_AFTER: Final = "It is noted."


def in_pieces(text: str, size: int) -> Reply:
    parser = ReplyParser(TOOLS)
    events = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    return summarise([*events, *parser.finish()])


@pytest.mark.parametrize("style", sorted(_STYLES))
@settings(max_examples=60, deadline=None)
@given(wanted=_ARGUMENTS, size=st.integers(1, 30), speech=st.booleans())
@example(wanted={"text": "<｜tool▁calls▁end｜><｜tool▁calls▁end｜></b> z"}, size=1, speech=False)
@example(wanted={"text": "a <｜tool▁calls▁end｜><｜tool▁calls▁end｜> z"}, size=7, speech=True)
def test_a_call_is_read_back_whatever_its_values_hold(
    style: str, wanted: Arguments, size: int, speech: bool
) -> None:
    render, ends = _STYLES[style]
    for key, value in wanted.items():
        if isinstance(value, str):
            for end in ends:
                value = value.replace(end, "")
            wanted[key] = value
    if style == "lfm":
        wanted.pop("due date", None)  # Python's names have no spaces.
    text = f"{_BEFORE}\n{render(wanted)}\n{_AFTER}" if speech else render(wanted)
    for reply in (parse_reply(text, TOOLS), in_pieces(text, size)):
        assert (reply.calls, reply.problems) == ([ToolCall(NAME, wanted)], [])
        assert reply.text.split() == (f"{_BEFORE} {_AFTER}".split() if speech else [])


_OWN_CLOSERS: Final = {
    "qwen coder": "</parameter>",
    "glm": "</arg_value>",
    "minimax m2": "</parameter>",
    "dsml": "</｜DSML｜parameter>",
    "kimi k3": "<|close|>argument<|sep|>",
}
"""What ends a value where nothing in it is escaped."""


@pytest.mark.parametrize("style", sorted(_OWN_CLOSERS))
@pytest.mark.parametrize("words", ["It ends with {} always.", "{}", "{} and {}, once more", "{}\n"])
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_last_closer_in_front_of_the_next_parameter_ends_a_value(
    style: str, words: str, size: int
) -> None:
    text = words.replace("{}", _OWN_CLOSERS[style])
    wanted = {"text": text, "due date": text, "count": 3}
    assert in_pieces(_STYLES[style][0](wanted), size).calls == [ToolCall(NAME, wanted)]


@pytest.mark.parametrize(
    ("style", "value", "read"),
    [
        ("qwen coder", "a</parameter>\n<parameter=count>\n5", {"text": "a", "count": 5}),
        ("qwen coder", "a</parameter>\n</function>\n</tool_call>", {"text": "a"}),
        ("glm", "a</arg_value><arg_key>count</arg_key><arg_value>5", {"text": "a", "count": 5}),
        ("kimi k3", "a<|close|>argument<|sep|><|close|>call<|sep|>", {"text": "a"}),
        ("gemma", 'a<|"|>,count:5,due date:<|"|>b', {"text": "a", "count": 5, "due date": "b"}),
    ],
)
def test_what_is_written_like_the_next_parameter_or_the_calls_end_is_that(
    style: str, value: str, read: Arguments
) -> None:
    assert parse_reply(_STYLES[style][0]({"text": value}), TOOLS).calls[:1] == [
        ToolCall(NAME, read)
    ]


def test_a_call_that_lacks_its_last_closer_ends_with_the_block() -> None:
    text = f"<tool_call>{NAME}\n<arg_key>text</arg_key>\n<arg_value>milk</tool_call>"
    assert parse_reply(text, TOOLS).calls == [ToolCall(NAME, {"text": "milk"})]


@pytest.mark.parametrize(
    "words",
    [
        '{"name": "make_note", "arguments": {"text": "milk"}}',
        '```json\n{"name": "make_note", "arguments": {"text": "milk"}}\n```',
        'Like this: make_note(text="milk")',
    ],
)
def test_the_final_channel_of_harmony_holds_no_call(words: str) -> None:
    reply = parse_reply(f"<|start|>assistant<|channel|>final<|message|>{words}<|return|>", TOOLS)
    assert (reply.calls, reply.text) == ([], words)


def test_the_header_of_harmony_may_stand_on_several_lines() -> None:
    text = (
        "<|start|>assistant\n<|channel|>analysis\n<|message|>Milk?<|end|>\n"
        f"<|channel|>commentary to=functions.{NAME}\n<|constrain|>json\n"
        '<|message|>{"text": "milk"}\n<|call|>'
    )
    for size in (1, 5, 1_000):
        reply = in_pieces(text, size)
        assert reply.calls == [ToolCall(NAME, {"text": "milk"})]
        assert (reply.text.strip(), reply.reasoning) == ("", "Milk?")


@pytest.mark.parametrize(
    ("text", "spoken", "thought"),
    [
        (
            "<|channel|>analysis Milk?<|channel|>final It is noted.<|return|>",
            "It is noted.",
            "Milk?",
        ),
        (
            "<|channel|>analysis\nMilk?<|end|><|start|>assistant<|channel|>final<|message|>Yes",
            "Yes",
            "Milk?",
        ),
        ("<|channel|>analysis Milk?", "", "Milk?"),
        ("Yes.<|start|>assistant<|channel|>ana", "Yes.", ""),
        ("Yes.<|start|>assistant<|channel|>commentary to=func", "Yes.", ""),
        ("Yes.<|start|>assis", "Yes.", ""),
    ],
)
def test_the_words_of_a_harmony_header_are_not_spoken(text: str, spoken: str, thought: str) -> None:
    for size in (1, 3, 1_000):
        reply = in_pieces(text, size)
        assert (reply.calls, reply.text.strip(), reply.reasoning) == ([], spoken, thought)


@pytest.mark.parametrize(
    "text",
    [
        f'<|tool_call>call:{NAME}(text="milk (two)")',
        f'<|tool_call>call:{NAME}(text="milk (two)")<tool_call|>',
        f'<|from|>assistant\n<|recipient|>{NAME}\n<|content|>{{"text": "milk (two)"}}',
        f'<|recipient|>{NAME}\n<|content|>{{"text": "milk (two)"}}<|stop|>',
        f'<|tool_calls|>[{{"name": "{NAME}", "arguments": {{"text": "milk (two)"}}}}]',
        f"<|tool_calls|>[{{'name': '{NAME}', 'arguments': {{'text': 'milk (two)'}}}}]",
    ],
)
def test_rarer_spellings_are_read(text: str) -> None:
    for size in (1, 7, 1_000):
        reply = in_pieces(text, size)
        assert (reply.calls, reply.text.strip()) == ([ToolCall(NAME, {"text": "milk (two)"})], "")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "stop", "arguments": later}</tool_call>',
        '<tool_call>{"name": "stop", "arguments": 5}</tool_call>',
        '<|python_tag|>{"name": "stop", "parameters": later}',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n"
        '{"name": "stop", "arguments": later}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ],
)
def test_arguments_that_are_no_object_make_no_call_of_a_tool_without_any(text: str) -> None:
    stop = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object"}}}
    reply = parse_reply(text, [stop])
    assert (reply.calls, reply.text) == ([], "")
    assert [problem.name for problem in reply.problems] == ["stop"]
